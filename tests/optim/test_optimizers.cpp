// Every optimizer and both ways of clipping against plain scalar code and the reference, and their edge cases.
#include "../backends/compare.hpp"

using namespace test;
using namespace tg::optim;

namespace {

constexpr int count = 37;  // no multiple of any packet size
constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

template <class T>
struct Vec {
  tg::Param<T, count> p{};
  static constexpr auto members = tg::members("p", &Vec::p);
};
// The gradient of this loss is its input.
constexpr auto product = [](auto model, auto g) { return tg::sum(model.p * g); };

template <class Device, class Optimizer, class T = float>
using VecTrainer = tg::Trainer<Device, Vec<T>, product, Optimizer>;
using Gradient = Tensor<Cpu, float, count>;

Gradient gradient(std::uint64_t seed, double scale = 1) { return random<float, count>({count}, seed, -scale, scale); }

template <class Trainer>
void set(const Trainer& t, const std::vector<typename Trainer::T>& values) {
  auto flat = t.parameters().flat();
  flat.assign(values);
}

double wide(float x) { return static_cast<double>(x); }

// Six steps on the CPU, on the reference, and of update(p, g, a, b, step) with two numbers a, b of state in double.
template <class Optimizer, class Update>
void follows(Optimizer optimizer, Update update) {
  VecTrainer<Cpu, Optimizer> cpu(optimizer);
  VecTrainer<Reference, Optimizer> reference(optimizer);
  const std::vector<float> start = gradient(99).to_vector();
  set(cpu, start);
  set(reference, start);
  std::vector<double> p(start.begin(), start.end()), a(count), b(count);
  for (int step = 1; step <= 6; ++step) {
    const Gradient g = gradient(static_cast<std::uint64_t>(step));
    cpu.step(g);
    reference.step(g.to<Reference>());
    for (int i = 0; i < count; ++i) {
      const auto k = static_cast<std::size_t>(i);
      update(p[k], wide(g.data()[i]), a[k], b[k], step);
    }
  }
  check_close(cpu.parameters().flat(), reference.parameters().flat(), 1e-4);
  check_close(cpu.parameters().flat(), Tensor<Reference, double, count>::from(p), 1e-4);
}

// What one element becomes in a first step from p with gradient g.
template <class Optimizer>
float after_one_step(Optimizer optimizer, float p, float g) {
  VecTrainer<Cpu, Optimizer> t(optimizer);
  set(t, std::vector<float>(count, p));
  t.step(Gradient::full(g));
  return t.parameters().flat().at(20);
}

// A gradient with one bad element, between good ones, is as if the step had not been.
template <class Device, class Optimizer>
void skips_bad_gradients(Optimizer optimizer) {
  for (const float bad : {infinity, -infinity, nan}) {
    VecTrainer<Device, Optimizer> with(optimizer), without(optimizer);
    set(with, std::vector<float>(count, 2.0f));
    set(without, std::vector<float>(count, 2.0f));
    for (const std::uint64_t seed : {1, 2, 3}) {
      Gradient g = gradient(seed);
      if (seed == 2) g.data()[seed * 11] = bad;
      with.step(g.to<Device>());
      if (seed != 2) without.step(g.to<Device>());
      CHECK(with.parameters().flat().to_vector() == without.parameters().flat().to_vector());
    }
    CHECK(with.steps() == 3);
  }
}

}  // namespace

TEST_CASE("RMSprop") {
  const RmsProp o{.learning_rate = 0.05f, .alpha = 0.9f, .momentum = 0.8f, .weight_decay = 0.1f};
  follows(o, [&](double& p, double g, double& v, double& b, int) {
    g += wide(o.weight_decay) * p;
    v = wide(o.alpha) * v + (1 - wide(o.alpha)) * g * g;
    b = wide(o.momentum) * b + g / (std::sqrt(v) + wide(o.epsilon));
    p -= wide(o.learning_rate) * b;
  });
}

TEST_CASE("Adagrad") {
  const Adagrad o{.learning_rate = 0.1f, .learning_rate_decay = 0.05f, .initial_accumulator = 0.1f, .weight_decay = 0.01f};
  follows(o, [&](double& p, double g, double& s, double&, int t) {
    if (t == 1) s = wide(o.initial_accumulator);
    g += wide(o.weight_decay) * p;
    s += g * g;
    p -= wide(o.learning_rate) / (1 + (t - 1) * wide(o.learning_rate_decay)) * g / (std::sqrt(s) + wide(o.epsilon));
  });
}

TEST_CASE("Lion") {
  const Lion o{.learning_rate = 0.01f, .weight_decay = 0.1f};
  follows(o, [&](double& p, double g, double& m, double&, int) {
    const double c = wide(o.beta1) * m + (1 - wide(o.beta1)) * g;
    p -= wide(o.learning_rate) * ((c > 0) - (c < 0) + wide(o.weight_decay) * p);
    m = wide(o.beta2) * m + (1 - wide(o.beta2)) * g;
  });
  CHECK(after_one_step(Lion{.learning_rate = 0.01f}, 1.0f, 0.0f) == 1.0f);
}

TEST_CASE("Adam, AdamW with tiny gradients and with none") {
  const Adam adam{.learning_rate = 1e-3f, .epsilon = 1e-8f};
  // The step is rate g / (|g| + epsilon) whatever the size of g.
  CHECK(wide(after_one_step(adam, 0.0f, 1e-12f)) == doctest::Approx(-9.999e-8).epsilon(1e-3));
  const float tiny = after_one_step(adam, 0.0f, 1e-25f);  // its square is 0
  CHECK(std::isfinite(tiny));
  CHECK(wide(tiny) == doctest::Approx(-1e-20).epsilon(1e-3));
  CHECK(after_one_step(adam, 1.0f, 0.0f) == 1.0f);
  CHECK(after_one_step(AdamW{.learning_rate = 0.1f, .weight_decay = 0.1f}, 1.0f, 0.0f) == doctest::Approx(0.99));
}

TEST_CASE("clipping by value") {
  const ClipByValue<Sgd> o{Sgd{.learning_rate = 0.1f, .momentum = 0.9f}, 0.25f};
  follows(o, [&](double& p, double g, double& b, double&, int) {
    b = 0.9 * b + std::clamp(g, -0.25, 0.25);
    p -= 0.1 * b;
  });
  CHECK(wide(after_one_step(o, 0.0f, 1e30f)) == doctest::Approx(-0.025));
  skips_bad_gradients<Cpu>(o);
  skips_bad_gradients<Reference>(o);
}

TEST_CASE("clipping by the global norm") {
  const ClipByGlobalNorm<Sgd> o{Sgd{.learning_rate = 0.1f, .momentum = 0.9f}, 2.0f};
  auto norm = [](const Gradient& g) {
    double s = 0;
    for (int i = 0; i < count; ++i) s += wide(g.data()[i]) * wide(g.data()[i]);
    return std::sqrt(s);
  };
  // Gradients of norms about 3.5 and about 0.35: scaled, and left alone.
  for (const double scale : {1.0, 0.1}) {
    VecTrainer<Cpu, ClipByGlobalNorm<Sgd>> cpu(o);
    VecTrainer<Reference, ClipByGlobalNorm<Sgd>> reference(o);
    std::vector<double> p(count), b(count);
    for (std::uint64_t step = 1; step <= 4; ++step) {
      const Gradient g = gradient(step, scale);
      const double factor = std::fmin(1.0, 2.0 / norm(g));
      CHECK((factor < 1) == (scale == 1.0));
      cpu.step(g);
      reference.step(g.to<Reference>());
      for (std::size_t i = 0; i < count; ++i) {
        b[i] = 0.9 * b[i] + factor * wide(g.data()[i]);
        p[i] -= 0.1 * b[i];
      }
    }
    check_close(cpu.parameters().flat(), reference.parameters().flat(), 1e-4);
    check_close(cpu.parameters().flat(), Tensor<Reference, double, count>::from(p), 1e-4);
  }
  // Gradients whose squares overflow, and some whose squares are 0; 37 elements alike make a norm of sqrt(37) times one.
  const double each = -0.1 * 2.0 / std::sqrt(static_cast<double>(count));
  for (const float g : {1e10f, 1e19f, 1e25f, 1e30f}) CHECK(wide(after_one_step(o, 0.0f, g)) == doctest::Approx(each).epsilon(1e-5));
  CHECK(wide(after_one_step(o, 0.0f, 1e-3f)) == doctest::Approx(-1e-4).epsilon(1e-5));
  CHECK(wide(after_one_step(o, 0.0f, 1e-30f)) == doctest::Approx(-1e-31).epsilon(1e-5));
  CHECK(after_one_step(o, 1.0f, 0.0f) == 1.0f);
  CHECK(after_one_step(o, 1.0f, 3e38f) == 1.0f);  // as if it were infinite
  CHECK(wide(after_one_step(ClipByGlobalNorm{Sgd{.learning_rate = 0.1f}, infinity}, 0.0f, 10.0f)) == doctest::Approx(-1.0));
  skips_bad_gradients<Cpu>(o);
  skips_bad_gradients<Reference>(o);
}

TEST_CASE("clipping by the global norm in double and in 16 bits") {
  VecTrainer<Cpu, ClipByGlobalNorm<Sgd>, double> t(ClipByGlobalNorm{Sgd{.learning_rate = 1.0f}, 1.0f});
  t.step(Tensor<Cpu, double, count>::full(1e160));
  CHECK(t.parameters().flat().at(3) == doctest::Approx(-1.0 / std::sqrt(static_cast<double>(count))));

  // The squares of these gradients do not fit into 16 bits.
  VecTrainer<Cpu, ClipByGlobalNorm<Sgd>, tg::f16> half(ClipByGlobalNorm{Sgd{.learning_rate = 1.0f}, 1.0f});
  half.step(Tensor<Cpu, tg::f16, count>::full(tg::f16(1000.0f)));
  CHECK(wide(static_cast<float>(half.parameters().flat().at(3))) == doctest::Approx(-1.0 / std::sqrt(static_cast<double>(count))).epsilon(2e-3));
}
