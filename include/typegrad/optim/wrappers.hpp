// Optimizers made of optimizers: gradient clipping, averaged weights and gradient accumulation, inside the same program.
//
// Each derives from the optimizer it wraps, so that trainer.optimizer.learning_rate stays where it is:
//
//   using Optimizer = tg::optim::Accumulate<tg::optim::WithEma<tg::optim::ClipByGlobalNorm<tg::optim::AdamW>>>;
//   tg::Trainer<tg::Cpu, Mlp, loss, Optimizer> trainer;
//   trainer.optimizer.learning_rate = 1e-3f;
//   trainer.optimizer.max_norm = 1.0f;
//
// They nest in this order only: clipping innermost, then averaging, accumulation outermost. With constructors instead of
// assignments: tg::optim::ClipByGlobalNorm{tg::optim::AdamW{.learning_rate = 1e-3f}, 1.0f}.
#pragma once

#include <limits>

#include "typegrad/optim/optimizers.hpp"

namespace tg::optim {
namespace detail {

template <class Inner>
inline constexpr std::size_t numbers_of = std::tuple_size_v<decltype(Inner{}.hyperparameters(1))>;

// The numbers of the inner optimizer, which keep their places, and then those of the wrapper.
template <std::size_t N, class... More>
std::array<float, N + sizeof...(More)> append(const std::array<float, N>& numbers, More... more) {
  std::array<float, N + sizeof...(More)> r{};
  for (std::size_t i = 0; i < N; ++i) r[i] = numbers[i];
  std::size_t n = N;
  ((r[n++] = more), ...);
  return r;
}

template <std::size_t N, class P, std::size_t S>
constexpr std::array<P, N> first_states(const std::array<P, S>& state) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::array<P, N>{state[I]...}; }(std::make_index_sequence<N>{});
}
template <class P, std::size_t S>
constexpr std::array<P, S + 1> with_state(const std::array<P, S>& state, const P& last) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::array<P, S + 1>{state[I]..., last}; }(std::make_index_sequence<S>{});
}

// The update where the condition holds, the values before it elsewhere. A choice, not a product: what is not chosen may
// be NaN.
template <class C, class P, std::size_t S>
constexpr Updated<P, S> update_if(const C& condition, const Updated<P, S>& after, const P& p, const std::array<P, S>& state) {
  Updated<P, S> r{where(condition, after.parameters, p), state};
  for (std::size_t i = 0; i < S; ++i) r.state[i] = where(condition, after.state[i], state[i]);
  return r;
}

template <class Optimizer>
inline constexpr bool averages = requires { Optimizer::average; };
template <class Optimizer>
inline constexpr bool accumulates = requires { Optimizer::accumulated; };

}  // namespace detail

// Clips every element of the gradient to [-max_value, max_value], as torch.nn.utils.clip_grad_value_, but a step whose
// gradient has an infinity or a NaN anywhere leaves parameters and state as they are (it still counts as a step).
template <class Inner>
struct ClipByValue : Inner {
  static_assert(!detail::averages<Inner> && !detail::accumulates<Inner>, "typegrad: clipping goes inside WithEma and Accumulate");
  float max_value = 1.0f;

  static constexpr std::size_t states = Inner::states;
  auto hyperparameters(std::int64_t step) const { return detail::append(Inner::hyperparameters(step), max_value); }
  template <class P, class H>
  static constexpr auto update(const P& p, const P& g, const std::array<P, states>& state, H h) {
    const auto limit = h(static_cast<int>(detail::numbers_of<Inner>));
    const auto finite = (max)(abs(g)) < std::numeric_limits<double>::infinity();  // false for NaN, too
    const P clipped = maximum(minimum(g, limit), -limit);
    return detail::update_if(finite, Inner::update(p, clipped, state, h), p, state);
  }
};
template <class Inner>
ClipByValue(Inner, float) -> ClipByValue<Inner>;

// Scales the gradient of all parameters together by max_norm / norm where its Euclidean norm exceeds max_norm, as
// optax.clip_by_global_norm (torch.nn.utils.clip_grad_norm_ adds 1e-6 to the norm). A step whose gradient has an infinity
// or a NaN leaves parameters and state as they are (it still counts as a step).
//
// One pass sums the squares of 2^-40 g / max_norm, so that the norm does not overflow where the squares of g would: only
// above 2^104 max_norm (2e31 max_norm) is it taken for infinite. Elements below 2^-23 max_norm do not contribute, which
// cannot decide whether to clip. max_norm is positive; infinity clips nothing. Norms of 16-bit gradients are float.
template <class Inner>
struct ClipByGlobalNorm : Inner {
  static_assert(!detail::averages<Inner> && !detail::accumulates<Inner>, "typegrad: clipping goes inside WithEma and Accumulate");
  float max_norm = 1.0f;

  static constexpr std::size_t states = Inner::states;
  auto hyperparameters(std::int64_t step) const { return detail::append(Inner::hyperparameters(step), static_cast<float>(1.0 / static_cast<double>(max_norm))); }
  template <class P, class H>
  static constexpr auto update(const P& p, const P& g, const std::array<P, states>& state, H h) {
    using T = typename P::value_type;
    using C = compute_t<T>;
    constexpr double scale = 0x1p-40;
    const auto wide = cast<C>(g);
    const auto scaled = wide * scale * cast<C>(h(static_cast<int>(detail::numbers_of<Inner>)));
    const auto squares = sum(scaled * scaled);
    const auto finite = squares < std::numeric_limits<double>::infinity();  // false for NaN, too
    const auto factor = where(squares > scale * scale, scale / sqrt(squares), 1.0);
    return detail::update_if(finite, Inner::update(p, P(cast<T>(wide * factor)), state, h), p, state);
  }
};
template <class Inner>
ClipByGlobalNorm(Inner, float) -> ClipByGlobalNorm<Inner>;

// Keeps an exponential moving average of the parameters, updated after each step: average = decay average +
// (1 - decay) parameters, beginning with the parameters after the first step, as torch.optim.swa_utils.AveragedModel with
// get_ema_multi_avg_fn(decay). Trainer::averaged() gives it.
template <class Inner>
struct WithEma : Inner {
  static_assert(!detail::averages<Inner> && !detail::accumulates<Inner>, "typegrad: WithEma goes inside Accumulate, and once");
  float decay = 0.999f;

  static constexpr std::size_t states = Inner::states + 1;
  static constexpr std::size_t average = Inner::states;  // the state that holds it
  auto hyperparameters(std::int64_t step) const {
    return detail::append(Inner::hyperparameters(step), step == 1 ? 1.0f : static_cast<float>(1.0 - static_cast<double>(decay)));
  }
  template <class P, class H>
  static constexpr auto update(const P& p, const P& g, const std::array<P, states>& state, H h) {
    const auto inner = Inner::update(p, g, detail::first_states<Inner::states>(state), h);
    const P mean = state[average] + h(static_cast<int>(detail::numbers_of<Inner>)) * (inner.parameters - state[average]);
    return Updated<P, states>{inner.parameters, detail::with_state(inner.state, mean)};
  }
};
template <class Inner>
WithEma(Inner, float) -> WithEma<Inner>;

// Collects the gradients of `every` steps and then makes one update with their mean, as optax.MultiSteps: for a loss that
// is a mean, and steps on batches of one size, the update of one step on all of them together. The steps between leave
// parameters and the inner state as they are; the inner optimizer and its schedules count updates (Trainer::updates()).
// The sum is part of the state, so a checkpoint may be taken between two updates. `every` is to be changed only after an
// update.
template <class Inner>
struct Accumulate : Inner {
  static_assert(!detail::accumulates<Inner>, "typegrad: Accumulate goes outside, and once");
  std::int64_t every = 1;

  static constexpr std::size_t states = Inner::states + 1;
  static constexpr std::size_t accumulated = Inner::states;  // the state that holds the sum
  // How many updates that many steps have made.
  std::int64_t updates(std::int64_t steps) const { return steps / every; }
  auto hyperparameters(std::int64_t step) const {
    return detail::append(Inner::hyperparameters((step + every - 1) / every), static_cast<float>(1.0 / static_cast<double>(every)), step % every == 0 ? 1.0f : 0.0f);
  }
  template <class P, class H>
  static constexpr auto update(const P& p, const P& g, const std::array<P, states>& state, H h) {
    constexpr int first = static_cast<int>(detail::numbers_of<Inner>);
    const auto due = h(first + 1) != 0.0;
    const P total = state[accumulated] + h(first) * g;
    const auto before = detail::first_states<Inner::states>(state);
    const auto after = detail::update_if(due, Inner::update(p, total, before, h), p, before);
    return Updated<P, states>{after.parameters, detail::with_state(after.state, P(where(due, 0.0, total)))};
  }
};
template <class Inner>
Accumulate(Inner, int) -> Accumulate<Inner>;

}  // namespace tg::optim
