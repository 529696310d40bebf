// Normalisation layers: a norm of ops/normalization.hpp, scaled by a weight (at first 1) and shifted by a bias (at first 0).
#pragma once

#include "typegrad/nn/training.hpp"
#include "typegrad/ops/normalization.hpp"

namespace tg::nn {

// Over the last axis, of extent Size.
template <int Size, class T = float>
struct LayerNorm {
  Param<T, Size> weight{init::ones()};
  Param<T, Size> bias{init::zeros()};
  double eps = 1e-5;
  constexpr auto operator()(auto x) const { return layer_norm(x, eps) * weight + bias; }
  static constexpr auto members = tg::members("weight", &LayerNorm::weight, "bias", &LayerNorm::bias);
};

// Over the last axis, of extent Size; no bias.
template <int Size, class T = float>
struct RmsNorm {
  Param<T, Size> weight{init::ones()};
  double eps = 1e-6;
  constexpr auto operator()(auto x) const { return rms_norm(x, eps) * weight; }
  static constexpr auto members = tg::members("weight", &RmsNorm::weight);
};

// x [n, Channels, ...] over groups of channels and the axes behind them.
template <int Groups, int Channels, class T = float>
struct GroupNorm {
  Param<T, Channels> weight{init::ones()};
  Param<T, Channels> bias{init::zeros()};
  double eps = 1e-5;
  constexpr auto operator()(auto x) const {
    return group_norm<Groups>(x, eps) * tg::detail::per_channel(x, weight) + tg::detail::per_channel(x, bias);
  }
  static constexpr auto members = tg::members("weight", &GroupNorm::weight, "bias", &GroupNorm::bias);
};

// x [n, Channels, ...] over the batch and the axes behind the channels. A training step normalises with the statistics of
// its batch and moves the running ones towards them, running = (1 - momentum) running + momentum batch, the variance with
// Bessel's correction (n - 1; of a single number 0); everything else normalises with the running statistics. Names and
// numbers are PyTorch's.
template <int Channels, class T = float>
struct BatchNorm {
  Param<T, Channels> weight{init::ones()};
  Param<T, Channels> bias{init::zeros()};
  Buffer<T, Channels> running_mean{init::zeros()};
  Buffer<T, Channels> running_var{init::ones()};
  double momentum = 0.1;
  double eps = 1e-5;

  template <class X>
  constexpr auto operator()(X x) const {
    using R = expr_t<X>;
    const auto scaled = [&](const R& normal) { return normal * tg::detail::per_channel(x, weight) + tg::detail::per_channel(x, bias); };
    if (!is_training(x)) return scaled(batch_norm(x, running_mean, running_var, eps));
    constexpr std::int64_t mask = tg::detail::all_but_channels<X>();
    const auto [mean, variance] = tg::detail::over_batch<X>([&]<int... Axes>() {
      return std::pair(tg::mean<Axes...>(x), var<0, Axes...>(x));
    });
    const Value n = tg::detail::count_of(x, mask);
    using Statistic = Expr<T, Channels>;
    const Statistic unbiased(variance * (n / tg::maximum(n - 1.0, 1.0)));
    const auto moved = [&](const auto& running, const Statistic& batch) {
      const Statistic before = latest(running);
      update(running, Statistic(before + (batch - before) * momentum));
    };
    moved(running_mean, Statistic(mean));
    moved(running_var, unbiased);
    return scaled(batch_norm(x, eps));
  }
  static constexpr auto members = tg::members("weight", &BatchNorm::weight, "bias", &BatchNorm::bias, "running_mean", &BatchNorm::running_mean,
                                              "running_var", &BatchNorm::running_var);
};

}  // namespace tg::nn
