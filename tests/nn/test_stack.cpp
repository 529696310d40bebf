// Stacks: as a loop over an array computes, at a compile time that does not depend on the number of blocks.
#include <doctest/doctest.h>

#include <cmath>

#include "typegrad/typegrad.hpp"

namespace {

using tg::Cpu;

struct Block {
  tg::nn::LayerNorm<8> norm;
  tg::nn::Linear<8, 16> up;
  tg::nn::Linear<16, 8> down;
  constexpr auto operator()(auto x) const { return x + down(tg::gelu(up(norm(x)))); }
  // The scale is a parameter that all blocks share.
  constexpr auto operator()(auto x, auto scale) const { return x + scale * down(tg::gelu(up(norm(x)))); }
  static constexpr auto members = tg::members("norm", &Block::norm, "up", &Block::up, "down", &Block::down);
};

template <int N>
struct Looped {
  std::array<Block, N> h;
  tg::nn::Linear<8, 3> head;
  constexpr auto operator()(auto x) const {
    for (const auto& block : h) x = block(x);
    return head(x);
  }
  static constexpr auto members = tg::members("h", &Looped::h, "head", &Looped::head);
};
template <int N>
struct Stacked {
  tg::nn::Stack<Block, N> h;
  tg::nn::Linear<8, 3> head;
  constexpr auto operator()(auto x) const { return head(h(x)); }
  static constexpr auto members = tg::members("h", &Stacked::h, "head", &Stacked::head);
};
template <int N>
struct Iterated {
  tg::nn::Stack<Block, N> h;
  tg::nn::Linear<8, 3> head;
  constexpr auto operator()(auto x) const {
    for (const auto& block : h) x = block(x);
    return head(x);
  }
  static constexpr auto members = tg::members("h", &Iterated::h, "head", &Iterated::head);
};

constexpr auto loss = [](const auto& model, auto x, auto y) { return tg::cross_entropy(model(x), y); };

using X = tg::Tensor<Cpu, float, 4, 8>;
using Y = tg::Tensor<Cpu, std::int32_t, 4>;
X inputs() {
  X x;
  for (int i = 0; i < 32; ++i) x.data()[i] = std::sin(0.7f * static_cast<float>(i));
  return x;
}

template <class M, auto Loss = loss>
std::vector<float> train() {
  tg::Trainer<Cpu, M, Loss> t({.learning_rate = 0.01f}, 3);
  const X x = inputs();
  const Y y({0, 1, 2, 1});
  std::vector<float> r;
  for (int i = 0; i < 4; ++i) r.push_back(std::get<0>(std::tuple(t.step(x, y))).item());
  r.push_back(std::get<0>(std::tuple(t.evaluate(x, y))).item());
  const auto values = t.parameters().flat().to_vector();
  r.insert(r.end(), values.begin(), values.end());
  return r;
}

template <class M, auto Loss = loss>
using Step = typename std::remove_reference_t<decltype(tg::Trainer<Cpu, M, Loss>::program(std::declval<const X&>(), std::declval<const Y&>()))>::tracer;

template <class M>
std::vector<std::string> names() {
  std::vector<std::string> r;
  for (const tg::Slot& s : tg::ParameterLayout<M>::slots()) r.push_back(s.path);
  return r;
}

}  // namespace

TEST_CASE("a stack computes what a loop over an array of blocks does") {
  CHECK(names<Stacked<5>>() == names<Looped<5>>());
  CHECK(names<Stacked<5>>()[2] == "h.0.up.weight");
  CHECK(names<Stacked<5>>()[6 * 4 + 5] == "h.4.down.bias");
  const auto expected = train<Looped<5>>();
  CHECK(train<Stacked<5>>() == expected);
  CHECK(train<Iterated<5>>() == expected);
  CHECK(train<Stacked<2>>() == train<Looped<2>>());
}

TEST_CASE("the regions of a stack do not depend on its depth") {
  static_assert(tg::Regions<Step<Stacked<40>>>::shortened);
  static_assert(!tg::Regions<Step<Looped<3>>>::shortened);
  CHECK(tg::Regions<Step<Stacked<40>>>::size == tg::Regions<Step<Stacked<9>>>::size);
  const tg::Plan& deep = tg::plan_of<Step<Stacked<40>>>().plan;
  CHECK(deep.kernels.size() > 40 * 5);
  // One region more at most: the zeros in place of the gradients of the blocks that are not traced.
  CHECK(tg::Regions<Step<Stacked<40>>>::size <= tg::regions_of(deep).size() + 1);
  CHECK(std::isfinite(train<Stacked<40>>()[0]));
}

namespace {

// What crosses the blocks: a shared parameter, a sum over the blocks, dropout, running statistics.
template <class Blocks>
struct Crossing {
  Blocks h;
  tg::Param<float, 8> scale{tg::init::ones()};
  tg::nn::Linear<8, 3> head;
  template <class Input>
  constexpr auto operator()(const Input& input) const {
    auto x = input + 0.0f * input;
    tg::Expr<float> penalty(tg::build::constant(*x.graph, tg::DType::f32, tg::Shape{}, 0));
    for (const auto& block : h) {
      x = block(x, scale);
      penalty = penalty + tg::mean(x * x);
    }
    return std::tuple(head(x), penalty);
  }
  static constexpr auto members = tg::members("h", &Crossing::h, "scale", &Crossing::scale, "head", &Crossing::head);
};
constexpr auto crossing_loss = [](const auto& model, auto x, auto y) {
  const auto [logits, penalty] = model(x);
  return tg::cross_entropy(logits, y) + 0.01f * penalty;
};

struct Noisy {
  tg::nn::Linear<8, 8> linear;
  tg::nn::BatchNorm<8> norm;
  tg::nn::Dropout dropout{0.25};
  constexpr auto operator()(auto x) const { return x + dropout(tg::relu(norm(linear(x)))); }
  static constexpr auto members = tg::members("linear", &Noisy::linear, "norm", &Noisy::norm, "dropout", &Noisy::dropout);
};
template <class Blocks>
struct NoisyModel {
  Blocks h;
  tg::nn::Linear<8, 3> head;
  constexpr auto operator()(auto x) const {
    for (const auto& block : h) x = block(x);
    return head(x);
  }
  static constexpr auto members = tg::members("h", &NoisyModel::h, "head", &NoisyModel::head);
};

}  // namespace

TEST_CASE("what crosses the blocks of a stack") {
  CHECK(train<Crossing<tg::nn::Stack<Block, 7>>, crossing_loss>() == train<Crossing<std::array<Block, 7>>, crossing_loss>());
  CHECK(train<NoisyModel<tg::nn::Stack<Noisy, 6>>>() == train<NoisyModel<std::array<Noisy, 6>>>());
}
