// Learning-rate schedules against values computed by hand, at their ends and beyond.
#include <doctest/doctest.h>

#include "typegrad/optim/schedules.hpp"

using namespace tg::optim;

namespace {

bool near(float found, double expected) { return std::fabs(static_cast<double>(found) - expected) <= 1e-6 * std::fabs(expected) + 1e-12; }

}  // namespace

TEST_CASE("constant, step and exponential decay") {
  CHECK(ConstantSchedule{0.1f}(0) == 0.1f);
  CHECK(ConstantSchedule{0.1f}(1'000'000) == 0.1f);

  const StepDecay steps{.rate = 0.8f, .every = 3, .factor = 0.5f};
  const double expected[] = {0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2};
  for (int i = 0; i < 7; ++i) CHECK(near(steps(i), expected[i]));

  const ExponentialDecay decay{.rate = 0.5f, .factor = 0.25f, .every = 4};
  CHECK(near(decay(0), 0.5));
  CHECK(near(decay(2), 0.25));  // sqrt(0.25) of 0.5
  CHECK(near(decay(4), 0.125));
  CHECK(near(decay(8), 0.03125));
  CHECK(near(ExponentialDecay{.rate = 1.0f, .factor = 0.5f}(10), 1.0 / 1024));
}

TEST_CASE("linear warm-up") {
  const LinearWarmup warmup{.rate = 1.0f, .steps = 4, .start = 0.2f};
  const double expected[] = {0.2, 0.4, 0.6, 0.8, 1.0, 1.0};
  for (int i = 0; i < 6; ++i) CHECK(near(warmup(i), expected[i]));
  CHECK(LinearWarmup{.rate = 1.0f, .steps = 10}(0) == 0.0f);
  CHECK(LinearWarmup{.rate = 1.0f, .steps = 0}(0) == 1.0f);
}

TEST_CASE("cosine decay, with and without warm-up") {
  const CosineDecay plain{.rate = 1.0f, .steps = 6, .final = 0.2f};
  // 0.2 + 0.8 (1 + cos(pi i / 6)) / 2
  const double half = std::sqrt(3.0) / 2;
  const double expected[] = {1.0, 0.6 + 0.4 * half, 0.8, 0.6, 0.4, 0.6 - 0.4 * half, 0.2, 0.2};
  for (int i = 0; i < 8; ++i) CHECK(near(plain(i), expected[i]));

  const CosineDecay warm{.rate = 1.0f, .steps = 10, .warmup = 4, .start = 0.1f, .final = 0.0f};
  CHECK(near(warm(0), 0.1));
  CHECK(near(warm(2), 0.55));
  CHECK(near(warm(4), 1.0));
  CHECK(near(warm(6), 0.75));  // a third of the decay: (1 + cos(pi / 3)) / 2
  CHECK(near(warm(7), 0.5));
  CHECK(near(warm(9), (1 + std::cos(std::numbers::pi * 5 / 6)) / 2));
  CHECK(warm(10) == 0.0f);
  CHECK(warm(11) == 0.0f);
  CHECK(warm(1'000'000'000'000) == 0.0f);
  CHECK(CosineDecay{.rate = 1.0f, .steps = 0, .final = 0.5f}(0) == 0.5f);
  // Nothing but warm-up.
  CHECK(near(CosineDecay{.rate = 1.0f, .steps = 4, .warmup = 4, .final = 0.5f}(3), 0.75));
  CHECK(CosineDecay{.rate = 1.0f, .steps = 4, .warmup = 4, .final = 0.5f}(4) == 0.5f);
}

TEST_CASE("one cycle") {
  // As OneCycleLR(max_lr=1, total_steps=20, pct_start=0.3): the peak lies at step 5, the last step is 19.
  const OneCycle cycle{.max_rate = 1.0f, .steps = 20};
  CHECK(near(cycle(0), 0.04));
  CHECK(near(cycle(5), 1.0));
  CHECK(near(cycle(12), 0.5 * (1 + 4e-6)));  // the middle of the way down
  CHECK(near(cycle(19), 4e-6));
  CHECK(near(cycle(20), 4e-6));
  CHECK(near(cycle(1000), 4e-6));
  for (int i = 0; i < 5; ++i) CHECK(cycle(i) < cycle(i + 1));
  for (int i = 5; i < 19; ++i) CHECK(cycle(i) > cycle(i + 1));
  // A peak between two steps: 0.3 * 15 - 1 = 3.5.
  const OneCycle between{.max_rate = 1.0f, .steps = 15};
  CHECK(near(between(3), 0.04 + 0.96 * (1 - std::cos(std::numbers::pi * 3 / 3.5)) / 2));
  CHECK(near(between(4), 4e-6 + (1 - 4e-6) * (1 + std::cos(std::numbers::pi * 0.5 / 10.5)) / 2));
  // Cycles too short to rise, and of a single step.
  CHECK(near(OneCycle{.max_rate = 1.0f, .steps = 4, .warmup_fraction = 0.25f}(0), 1.0));
  CHECK(near(OneCycle{.max_rate = 1.0f, .steps = 1}(0), 4e-6));
}
