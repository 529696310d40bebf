// Averaged weights and gradient accumulation: their formulas, their state in checkpoints, and one program without allocation.
#include <cstdlib>

#include "../backends/compare.hpp"

using namespace test;
using namespace tg::optim;
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
constexpr auto loss = [](auto model, auto x, auto y) { return tg::mse_loss(model(x), y); };

struct Line {
  tg::Param<float, 3> p{tg::init::ones()};
  static constexpr auto members = tg::members("p", &Line::p);
};
constexpr auto product = [](auto model, auto g) { return tg::sum(model.p * g); };

using X = Tensor<Cpu, float, dyn<"batch">, 6>;
using Y = Tensor<Cpu, float, dyn<"batch">, 3>;
using Clipped = WithEma<ClipByGlobalNorm<AdamW>>;
using All = Accumulate<Clipped>;

// Rows first to first + n of one data set.
std::pair<X, Y> batch(std::int64_t first, std::int64_t n) {
  const X x = random<float, dyn<"batch">, 6>({64, 6}, 1, -1, 1);
  const Y y = random<float, dyn<"batch">, 3>({64, 3}, 2, -1, 1);
  return {X::from({x.data() + first * 6, static_cast<std::size_t>(n * 6)}, {n, 6}), Y::from({y.data() + first * 3, static_cast<std::size_t>(n * 3)}, {n, 3})};
}

Clipped inner() { return WithEma{ClipByGlobalNorm{AdamW{.learning_rate = 0.01f, .weight_decay = 0.1f}, 0.5f}, 0.75f}; }
All all() { return Accumulate{inner(), 4}; }

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

TEST_CASE("the average begins with the first step's parameters and follows its formula") {
  tg::Trainer<Cpu, Line, product, WithEma<Sgd>> t(WithEma{Sgd{.learning_rate = 0.1f}, 0.75f});
  CHECK(t.averaged().flat().to_vector() == std::vector<float>{1, 1, 1});
  double p = 1, average = 0;
  for (int step = 1; step <= 5; ++step) {
    t.step(Tensor<Cpu, float, 3>::full(static_cast<float>(step)));
    p -= 0.1 * step;
    average = step == 1 ? p : 0.75 * average + 0.25 * p;
    CHECK(static_cast<double>(t.averaged().flat().at(1)) == doctest::Approx(average));
  }
  CHECK(static_cast<double>(t.parameters().flat().at(1)) == doctest::Approx(p));
  const auto kept = t.averaged();
  t.step(Tensor<Cpu, float, 3>::full(1.0f));
  CHECK(kept.flat().to_vector() != t.averaged().flat().to_vector());  // a copy
  t.optimizer.learning_rate = 0;
  CHECK(t.optimizer.hyperparameters(2)[0] == 0.0f);
}

TEST_CASE("four small batches make the update of one large batch") {
  tg::Trainer<Cpu, Mlp, loss, All> small(all(), 3);
  tg::Trainer<Reference, Mlp, loss, All> reference(all(), 3);
  tg::Trainer<Cpu, Mlp, loss, Clipped> large(inner(), 3);
  for (int update = 0; update < 3; ++update) {
    const auto before = small.parameters().flat().to_vector(), average = small.averaged().flat().to_vector();
    double mean = 0;
    for (int part = 0; part < 4; ++part) {
      CHECK(small.parameters().flat().to_vector() == before);
      CHECK(small.averaged().flat().to_vector() == average);
      const auto [x, y] = batch(4 * part, 4);
      mean += static_cast<double>(small.step(x, y).item()) / 4;
      reference.step(x.to<Reference>(), y.to<Reference>());
    }
    const auto [x, y] = batch(0, 16);
    CHECK(static_cast<double>(large.step(x, y).item()) == doctest::Approx(mean).epsilon(1e-5));
    CHECK(small.updates() == large.updates());
    CHECK(small.updates() == update + 1);
    check_close(small.parameters().flat(), large.parameters().flat(), 1e-4);
    check_close(small.averaged().flat(), large.averaged().flat(), 1e-4);
    check_close(small.parameters().flat(), reference.parameters().flat(), 1e-4);
    auto flat = small.parameters().flat();
    if (update == 0) CHECK(flat.to_vector() != before);
  }
  CHECK(small.steps() == 12);
}

TEST_CASE("a bad batch spoils its own update alone") {
  tg::Trainer<Cpu, Mlp, loss, All> t(all(), 3);
  const auto [x, y] = batch(0, 4);
  const auto start = t.parameters().flat().to_vector();
  X bad = x.clone();
  bad.data()[5] = std::numeric_limits<float>::quiet_NaN();
  for (int part = 0; part < 4; ++part) t.step(part == 1 ? bad : x, y);
  CHECK(t.parameters().flat().to_vector() == start);
  CHECK(t.averaged().flat().to_vector() == start);
  for (int part = 0; part < 4; ++part) t.step(x, y);
  for (const float p : t.parameters().flat().to_vector()) CHECK(std::isfinite(p));
  CHECK(t.parameters().flat().to_vector() != start);
}

TEST_CASE("a checkpoint between two updates brings back average and collected gradients") {
  const auto path = std::filesystem::temp_directory_path() / "typegrad_test_wrappers.safetensors";
  tg::Trainer<Cpu, Mlp, loss, All> a(all(), 1), b(all(), 2);
  const auto [x, y] = batch(0, 16);
  for (int i = 0; i < 6; ++i) a.step(x, y);
  a.save(path);
  b.load(path);
  CHECK(b.steps() == 6);
  CHECK(b.updates() == 1);
  CHECK(a.averaged().flat().to_vector() == b.averaged().flat().to_vector());
  for (int i = 0; i < 3; ++i) {
    a.step(x, y);
    b.step(x, y);
  }
  CHECK(a.updates() == 2);
  CHECK(a.parameters().flat().to_vector() == b.parameters().flat().to_vector());
  CHECK(a.averaged().flat().to_vector() == b.averaged().flat().to_vector());
  // The average as a model of its own.
  a.averaged().save(path);
  tg::Parameters<Cpu, Mlp> average(7);
  average.load(path);
  CHECK(average.apply<loss>(x, y).item() == a.averaged().apply<loss>(x, y).item());
  CHECK(average.apply<loss>(x, y).item() != a.evaluate(x, y).item());
  std::filesystem::remove(path);
}

TEST_CASE("after the first step nothing is allocated, with every wrapper") {
  tg::Trainer<Cpu, Mlp, loss, All> t(all(), 1);
  const auto [x, y] = batch(0, 16);
  t.step(x, y);
  t.step(x, y);
  allocations = 0;
  counting = true;
  for (int i = 0; i < 10; ++i) t.step(x, y);
  counting = false;
  CHECK(allocations == 0);
}

TEST_CASE("the norm costs one reduction") {
  using P = std::remove_reference_t<decltype(tg::Trainer<Cpu, Mlp, loss, All>::program(std::declval<X>(), std::declval<Y>()))>;
  int whole = 0, maps = 0;
  for (const tg::Kernel& k : P::plan().kernels) {
    whole += k.kind == tg::KernelKind::Row && k.kept == 1 && k.extents[0].is(1) && k.extents[1].is(tg::Parameters<Cpu, Mlp>::count);
    maps += k.kind == tg::KernelKind::Map;
  }
  MESSAGE("kernels: " << P::plan().kernels.size() << ", maps: " << maps);
  CHECK(whole == 1);
}
