// Learning-rate schedules: functions of the number of steps made so far, set before each step by
//
//   trainer.optimizer.learning_rate = schedule(trainer.steps());
//
// or, with gradient accumulation, schedule(trainer.updates()). The first step asks for schedule(0). All are computed in
// double, and every schedule stays at its final value beyond its last step.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace tg::optim {
namespace detail {

// From a to b along half a cosine, for x from 0 to 1.
inline double cosine_between(double a, double b, double x) { return b + (a - b) * 0.5 * (1.0 + std::cos(std::numbers::pi * x)); }

}  // namespace detail

// The same rate at every step.
struct ConstantSchedule {
  float rate = 1e-3f;
  float operator()(std::int64_t) const { return rate; }
};

// rate factor^floor(step / every), as torch.optim.lr_scheduler.StepLR.
struct StepDecay {
  float rate = 1e-3f;
  std::int64_t every = 1000;
  float factor = 0.1f;
  float operator()(std::int64_t step) const {
    return static_cast<float>(static_cast<double>(rate) * std::pow(static_cast<double>(factor), static_cast<double>(step / every)));
  }
};

// rate factor^(step / every), without jumps: optax.exponential_decay; for every = 1 torch.optim.lr_scheduler.ExponentialLR.
struct ExponentialDecay {
  float rate = 1e-3f;
  float factor = 0.99f;
  std::int64_t every = 1;
  float operator()(std::int64_t step) const {
    return static_cast<float>(static_cast<double>(rate) * std::pow(static_cast<double>(factor), static_cast<double>(step) / static_cast<double>(every)));
  }
};

// From start at step 0 in a straight line to rate at step `steps`, then constant: optax.linear_schedule.
struct LinearWarmup {
  float rate = 1e-3f;
  std::int64_t steps = 1000;
  float start = 0.0f;
  float operator()(std::int64_t step) const {
    if (step >= steps) return rate;
    const double from = static_cast<double>(start), to = static_cast<double>(rate);
    return static_cast<float>(from + (to - from) * static_cast<double>(step) / static_cast<double>(steps));
  }
};

// `warmup` steps in a straight line from start to rate, then along half a cosine to final at step `steps` (which counts the
// warm-up): optax.warmup_cosine_decay_schedule; without warm-up, torch.optim.lr_scheduler.CosineAnnealingLR.
struct CosineDecay {
  float rate = 1e-3f;
  std::int64_t steps = 1000;
  std::int64_t warmup = 0;
  float start = 0.0f;
  float final = 0.0f;
  float operator()(std::int64_t step) const {
    if (step < warmup) return LinearWarmup{rate, warmup, start}(step);
    if (step >= steps) return final;
    return static_cast<float>(detail::cosine_between(static_cast<double>(rate), static_cast<double>(final),
                                                     static_cast<double>(step - warmup) / static_cast<double>(steps - warmup)));
  }
};

// One cycle (Smith and Topin 2017): up from max_rate / div_factor to max_rate, then down to max_rate / (div_factor
// final_div_factor) at the last step, steps - 1, both along half a cosine. As torch.optim.lr_scheduler.OneCycleLR with
// anneal_strategy "cos", three_phase false and cycle_momentum false: the peak lies at warmup_fraction steps - 1 (its
// pct_start), which need not be an integer. Steps beyond the last, an error there, keep the final rate.
struct OneCycle {
  float max_rate = 1e-2f;
  std::int64_t steps = 1000;
  float warmup_fraction = 0.3f;
  float div_factor = 25.0f;
  float final_div_factor = 1e4f;
  float operator()(std::int64_t step) const {
    const double top = static_cast<double>(max_rate), initial = top / static_cast<double>(div_factor), bottom = initial / static_cast<double>(final_div_factor);
    const double peak = static_cast<double>(warmup_fraction) * static_cast<double>(steps) - 1.0, last = static_cast<double>(steps - 1);
    const double at = static_cast<double>(step);
    if (at >= last) return static_cast<float>(bottom);
    if (at < peak) return static_cast<float>(detail::cosine_between(initial, top, at / peak));
    return static_cast<float>(detail::cosine_between(top, bottom, (at - peak) / (last - peak)));
  }
};

}  // namespace tg::optim
