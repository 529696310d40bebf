// Normalisation: values brought to mean 0 and variance 1 over a layer, a group, a channel or a batch. None of them scales or
// shifts the result; the layers in nn/normalization.hpp do.
#pragma once

#include "typegrad/ops/reduction.hpp"

namespace tg {
namespace detail {

template <int... Axes>
struct LayerNorm {
  template <class X>
  constexpr auto operator()(const X& x, const auto& eps) const {
    const auto centered = Center<Axes...>{}(x);
    return centered * rsqrt(Mean<true, Axes...>{}(centered * centered) + eps);
  }
};

// The channels, axis 1, in groups; each is normalised together with all axes behind it.
template <int Groups>
struct GroupNorm {
  template <class X>
  constexpr auto operator()(const X& x, const auto& eps) const {
    constexpr Extents e = X::extents;
    constexpr bool fits = [] {
      if (X::extents.rank < 2 || Groups < 1) return false;
      for (int i = 1; i < X::extents.rank; ++i)
        if (!X::extents[i].is_static()) return false;
      return X::extents[1].coefficient % Groups == 0;
    }();
    if constexpr (!fits) {
      constexpr Message m = Message("group_norm: ") << X::extents << " into " << Groups << " groups of channels";
      fail<m, expr_t<X>>();
    } else {
      constexpr auto grouped = [] {
        Extents r;
        r.push(X::extents[0]);
        r.push(Groups);
        Extent n = X::extents[1].coefficient / Groups;
        for (int i = 2; i < X::extents.rank; ++i) n = n * X::extents[i];
        r.push(n);
        return r;
      };
      using R = expr_of<typename X::value_type, decltype(grouped)>;
      const R rows(build::reshape(x, to_shape(*x.graph, grouped())));
      return expr_t<X>(build::reshape(LayerNorm<-1>{}(rows, eps), to_shape(*x.graph, e)));
    }
  }
};

template <int... Axes>
struct RmsNorm {
  template <class X>
  constexpr auto operator()(const X& x, const auto& eps) const {
    return x * rsqrt(Mean<true, Axes...>{}(x * x) + eps);
  }
};

template <class X>
consteval Extents extents_known() {
  if constexpr (Concrete<X>) return X::expr_type::extents;
  else return X::extents;
}

// A mask of all axes but the channels, axis 1.
template <class X>
consteval std::int64_t all_but_channels() {
  if constexpr (X::extents.rank < 2) {
    constexpr Message m = Message("batch_norm: expected [n, channels, ...], got ") << X::extents;
    fail<m, expr_t<X>>();
  }
  return ((std::int64_t{1} << X::extents.rank) - 1) & ~std::int64_t{2};
}
// Calls f.template operator()<axes...>() with all axes but the channels.
template <class X, class F>
constexpr auto over_batch(F f) {
  static_assert(all_but_channels<X>() != 0);
  return [&]<int... I>(std::integer_sequence<int, I...>) { return f.template operator()<0, I + 2 ...>(); }(std::make_integer_sequence<int, X::extents.rank - 2>{});
}

struct BatchNorm {
  template <class X>
  constexpr auto operator()(const X& x, const auto& eps) const {
    return over_batch<X>([&]<int... Axes>() { return LayerNorm<Axes...>{}(x, eps); });
  }
};

// A vector of one number for each channel of x [n, channels, ...], so that it broadcasts with x.
template <class X, class V>
constexpr auto per_channel(const X&, const V& v) {
  if constexpr (X::extents.rank < 2 || V::extents.rank != 1 || !(X::extents[1] == V::extents[0])) {
    constexpr Message m = Message("batch_norm: ") << V::extents << " is not one number for each channel of " << X::extents;
    fail<m, expr_t<X>, expr_t<V>>();
  } else {
    constexpr auto extents = [] {
      Extents e = V::extents;
      for (int i = 2; i < X::extents.rank; ++i) e.push(1);
      return e;
    };
    return expr_of<typename V::value_type, decltype(extents)>(build::reshape(v, to_shape(*v.graph, extents())));
  }
}

struct BatchNormWith {
  template <class X, class M, class V>
  constexpr auto operator()(const X& x, const M& mean, const V& var, const auto& eps) const {
    return (x - per_channel(x, mean)) * per_channel(x, rsqrt(var + eps));
  }
};

}  // namespace detail

// (x - mean) / sqrt(var + eps) along one axis (Ba et al. 2016), without scale and shift.
template <int Axis = -1, Operand X>
constexpr auto layer_norm(const X& x, double eps = 1e-5) { return apply<detail::LayerNorm<Axis>>(x, eps); }
// x / sqrt(mean(x²) + eps) along one axis (Zhang and Sennrich 2019), without scale.
template <int Axis = -1, Operand X>
constexpr auto rms_norm(const X& x, double eps = 1e-6) { return apply<detail::RmsNorm<Axis>>(x, eps); }

// x [N, C, ...] with mean 0 and variance 1 over each group of channels and all axes behind them (Wu and He 2018), without
// scale and shift.
template <int Groups, Operand X>
constexpr auto group_norm(const X& x, double eps = 1e-5) { return apply<detail::GroupNorm<Groups>>(x, eps); }
// x [N, C, ...] with mean 0 and variance 1 over the axes behind each channel (Ulyanov et al. 2016), without scale and shift.
template <Operand X>
constexpr auto instance_norm(const X& x, double eps = 1e-5) {
  constexpr auto channels = static_cast<int>(detail::extents_known<X>()[1].coefficient);
  return group_norm<channels>(x, eps);
}
// x [N, C, ...] with mean 0 and variance 1 over the batch and all axes behind the channels (Ioffe and Szegedy 2015); the
// second form takes the mean and the variance of each channel, [C].
template <Operand X>
constexpr auto batch_norm(const X& x, double eps = 1e-5) { return apply<detail::BatchNorm>(x, eps); }
template <Operand X, Operand M, Operand V>
constexpr auto batch_norm(const X& x, const M& mean, const V& var, double eps = 1e-5) { return apply<detail::BatchNormWith>(x, mean, var, eps); }

}  // namespace tg
