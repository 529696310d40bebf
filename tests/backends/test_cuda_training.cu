// Whole training steps of the CUDA back end against the reference, as captured graphs.
#include "compare.hpp"

#include "typegrad/cuda.hpp"

using namespace test;
using tg::Cuda;
using tg::dyn;

namespace {
struct Mlp {
  tg::nn::Linear<6, 16> hidden;
  tg::nn::Linear<16, 3> head;
  constexpr auto operator()(auto x) const { return head(tg::relu(hidden(x))); }
  static constexpr auto members = tg::members("hidden", &Mlp::hidden, "head", &Mlp::head);
};
constexpr auto loss = [](auto model, auto x, auto y) {
  const auto logits = model(x);
  return std::tuple(tg::cross_entropy(logits, y), tg::accuracy(logits, y));
};
using X = Tensor<Cpu, float, dyn<"batch">, 6>;
using Y = Tensor<Cpu, std::int32_t, dyn<"batch">>;

std::pair<X, Y> batch(std::int64_t n, std::uint64_t seed) {
  X x = random<float, dyn<"batch">, 6>({n, 6}, seed, -1, 1);
  Y y = Y::zeros({n});
  for (std::int64_t i = 0; i < n; ++i) y.data()[i] = x.at(i, 0) > 0.3f ? 2 : x.at(i, 1) > 0 ? 1 : 0;
  return {x, y};
}
using Gpu = tg::Trainer<Cuda, Mlp, loss>;
}  // namespace

TEST_CASE("cuda: training follows the reference") {
  Gpu gpu({.learning_rate = 0.01f}, 3);
  tg::Trainer<Reference, Mlp, loss> reference({.learning_rate = 0.01f}, 3);
  for (std::uint64_t i = 0; i < 6; ++i) {
    const auto [x, y] = batch(i == 5 ? 7 : 20, i);
    const auto [l, a] = gpu.step(x.template to<Cuda>(), y.template to<Cuda>());
    const auto [rl, ra] = reference.step(x.template to<Reference>(), y.template to<Reference>());
    check_close(l, rl, 1e-5);
    check_close(a, ra, 1e-6);
  }
  check_close(gpu.parameters().flat(), reference.parameters().flat(), 2e-4);
}

TEST_CASE("cuda: a steady state is one captured graph") {
  Gpu gpu({}, 1);
  const auto [hx, hy] = batch(16, 1);
  const auto x = hx.template to<Cuda>();
  const auto y = hy.template to<Cuda>();
  for (int i = 0; i < 6; ++i) {
    const auto [l, a] = gpu.step(x, y);
    CHECK(l.item() > 0);
  }
  auto& executor = Gpu::program(x, y).device_program().executor;
  CHECK(executor.captured() >= 1);
  CHECK(executor.captured() <= 2);
}

TEST_CASE("cuda: a label out of range is reported and changes nothing") {
  Gpu gpu({}, 1);
  auto [x, y] = batch(8, 1);
  y.data()[5] = 3;
  const auto before = gpu.parameters().flat().to_vector();
  const auto dx = x.template to<Cuda>();
  const auto dy = y.template to<Cuda>();
  for (int i = 0; i < 3; ++i) {
    const auto [l, a] = gpu.step(dx, dy);
    CHECK_THROWS_WITH_AS(l.item(), doctest::Contains("index 3 at position 5 is out of range: expected 0 to 2"), tg::Error);
  }
  CHECK(gpu.parameters().flat().to_vector() == before);
}
