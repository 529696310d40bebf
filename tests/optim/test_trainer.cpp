// Training: every optimizer against the reference, checkpoints, and no allocation in a steady state.
#include <cstdlib>
#include <fstream>

#include "../backends/compare.hpp"

using namespace test;
using tg::dyn;

namespace {

std::atomic<long> allocations{0};
std::atomic<bool> counting{false};

struct Mlp {
  tg::nn::Linear<6, 16> hidden;
  tg::nn::Linear<16, 3> head;
  constexpr auto operator()(auto x) const { return head(tg::tanh(hidden(x))); }
  static constexpr auto members = tg::members("hidden", &Mlp::hidden, "head", &Mlp::head);
};

struct Cube {
  tg::Param<double, 3> p{};
  static constexpr auto members = tg::members("p", &Cube::p);
};

struct Other {
  tg::nn::Linear<6, 16> hidden;
  tg::nn::Linear<16, 4> head;
  static constexpr auto members = tg::members("hidden", &Other::hidden, "head", &Other::head);
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

template <class Optimizer>
void same_as_reference(Optimizer optimizer) {
  tg::Trainer<Cpu, Mlp, loss, Optimizer> cpu(optimizer, 3);
  tg::Trainer<Reference, Mlp, loss, Optimizer> reference(optimizer, 3);
  CHECK(cpu.parameters().flat().to_vector() == reference.parameters().flat().to_vector());
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto [x, y] = batch(i == 4 ? 7 : 20, i);
    const auto [l, a] = cpu.step(x, y);
    const auto [rl, ra] = reference.step(x.template to<Reference>(), y.template to<Reference>());
    check_close(l, rl, 1e-5);
    check_close(a, ra, 1e-6);
  }
  check_close(cpu.parameters().flat(), reference.parameters().flat(), 2e-4);
}

}  // namespace

// Every allocation of this program goes through malloc and is counted.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t n) {
  if (counting) ++allocations;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  if (counting) ++allocations;
  return std::aligned_alloc(static_cast<std::size_t>(a), (n + static_cast<std::size_t>(a) - 1) / static_cast<std::size_t>(a) * static_cast<std::size_t>(a));
}
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }

TEST_CASE("each optimizer takes the reference's steps") {
  same_as_reference(tg::optim::Sgd{.learning_rate = 0.1f});
  same_as_reference(tg::optim::Sgd{.learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f, .nesterov = true});
  same_as_reference(tg::optim::Adam{.learning_rate = 0.01f, .weight_decay = 0.01f});
  same_as_reference(tg::optim::AdamW{.learning_rate = 0.01f, .weight_decay = 0.1f});
}

TEST_CASE("optimizers follow their published algorithms") {
  static constexpr auto cube = [](auto m) { return tg::sum(m.p * m.p * m.p / 3.0); };
  auto run = [](auto optimizer) {
    tg::Trainer<Cpu, Cube, cube, decltype(optimizer)> t(optimizer);
    auto flat = t.parameters().flat();
    flat.assign(std::vector<double>{1, -2, 3});
    for (int i = 0; i < 3; ++i) t.step();
    return t.parameters().flat().to_vector();
  };
  auto expect = [](const std::vector<double>& found, std::array<double, 3> expected) {
    for (std::size_t i = 0; i < 3; ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  };
  // p = [1, -2, 3], loss = sum(p³ / 3), so that the gradient is p²; three steps, against plain scalar code.
  auto scalar = [](auto update) {
    std::array<double, 3> r{1, -2, 3};
    for (double& p : r) {
      double m = 0, v = 0;
      for (int t = 1; t <= 3; ++t) update(p, p * p, m, v, t);
    }
    return r;
  };
  expect(run(tg::optim::Sgd{.learning_rate = 0.01f, .momentum = 0.9f}), scalar([](double& p, double g, double& b, double&, int) {
           b = static_cast<double>(0.9f) * b + g;
           p -= static_cast<double>(0.01f) * b;
         }));
  expect(run(tg::optim::AdamW{.learning_rate = 0.01f, .weight_decay = 0.1f}), scalar([](double& p, double g, double& m, double& v, int t) {
           p *= 1 - static_cast<double>(0.01f) * static_cast<double>(0.1f);
           m = 0.9 * m + 0.1 * g;
           v = 0.999 * v + 0.001 * g * g;
           p -= 0.01 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
         }));
}

TEST_CASE("a checkpoint brings back parameters, state and step") {
  const auto path = std::filesystem::temp_directory_path() / "typegrad_test_trainer.safetensors";
  tg::Trainer<Cpu, Mlp, loss> a({.learning_rate = 0.05f}, 1), b({.learning_rate = 0.05f}, 2);
  const auto [x, y] = batch(32, 9);
  for (int i = 0; i < 3; ++i) a.step(x, y);
  a.save(path);
  b.load(path);
  CHECK(b.steps() == 3);
  for (int i = 0; i < 3; ++i) {
    a.step(x, y);
    b.step(x, y);
  }
  CHECK(a.parameters().flat().to_vector() == b.parameters().flat().to_vector());

  tg::Parameters<Cpu, Other> other(5);
  const auto before = other.flat().to_vector();
  CHECK_THROWS_WITH_AS(other.load(path), doctest::Contains("parameter 'head.weight': expected float [4, 16], found float [3, 16]"), tg::Error);
  CHECK(other.flat().to_vector() == before);
  std::filesystem::remove(path);
}

TEST_CASE("after the first step nothing is allocated") {
  tg::Trainer<Cpu, Mlp, loss> t({}, 1);
  const auto [x, y] = batch(64, 1);
  t.step(x, y);
  t.step(x, y);
  allocations = 0;
  counting = true;
  for (int i = 0; i < 10; ++i) t.step(x, y);
  counting = false;
  CHECK(allocations == 0);
}

TEST_CASE("bad labels and extents are reported") {
  tg::Trainer<Cpu, Mlp, loss> t({}, 1);
  auto [x, y] = batch(8, 1);
  y.data()[5] = 3;
  const auto before = t.parameters().flat().to_vector();
  CHECK_THROWS_WITH_AS(t.step(x, y), doctest::Contains("index 3 at position 5"), tg::Error);
  CHECK(t.parameters().flat().to_vector() == before);
  CHECK_THROWS_WITH_AS(t.evaluate(x, y), doctest::Contains("index 3 at position 5 is out of range: expected 0 to 2"), tg::Error);
  CHECK_THROWS_WITH_AS(t.evaluate(x, Y::zeros({7})), doctest::Contains("extent 'batch' is 7 here, expected 8"), tg::Error);
}

TEST_CASE("a step fuses to the kernels it needs") {
  using P = std::remove_reference_t<decltype(tg::Trainer<Cpu, Mlp, loss>::program(std::declval<X>(), std::declval<Y>()))>;
  int contractions = 0, maps = 0;
  for (const tg::Kernel& k : P::plan().kernels) {
    contractions += k.kind == tg::KernelKind::Contract;
    maps += k.kind == tg::KernelKind::Map;
  }
  CHECK(contractions == 5);
  CHECK(maps <= 2);  // the optimizer, and the gradient of the logits
}
