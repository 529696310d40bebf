// Convolutions of one or two spatial axes. A convolution is a contraction with a view of its input's windows, so that its
// gradients are contractions too and nothing is unfolded in memory.
#pragma once

#include "typegrad/ops/contraction.hpp"
#include "typegrad/ops/rearrange.hpp"

namespace tg {

// As padding: the result has ceil(extent / stride) elements, the smaller half of the zeros in front (JAX's and TensorFlow's
// "SAME"; PyTorch's for stride 1).
inline constexpr int same_padding = -1;

namespace detail {

// What a window along one axis needs.
struct Sliding {
  std::int64_t size = 0, stride = 1, dilation = 1, before = 0, after = 0;
  constexpr std::int64_t reach() const { return (size - 1) * dilation + 1; }
  constexpr std::int64_t positions(std::int64_t extent) const {
    const std::int64_t free = extent + before + after - reach();
    return free < 0 ? 0 : free / stride + 1;
  }
};

constexpr Sliding sliding(std::int64_t extent, std::int64_t size, int stride, int padding, int dilation) {
  Sliding s{size, stride, dilation, padding, padding};
  if (padding == same_padding) {
    const std::int64_t needed = ((extent + stride - 1) / stride - 1) * stride + s.reach() - extent;
    const std::int64_t total = needed > 0 ? needed : 0;
    s.before = total / 2;
    s.after = total - total / 2;
  }
  return s;
}

// Zeros around the spatial axes, from axis `first` on.
constexpr Value pad_around(Value x, int first, const std::array<Sliding, 2>& s) {
  Shape padded = x.shape();
  AttributeList before, steps;
  for (int i = 0; i < x.rank(); ++i) {
    const bool spatial = i >= first;
    if (spatial) padded[i] = padded[i].coefficient + s[static_cast<std::size_t>(i - first)].before + s[static_cast<std::size_t>(i - first)].after;
    before.push(spatial ? s[static_cast<std::size_t>(i - first)].before : 0);
    steps.push(1);
  }
  return build::pad(x, padded, before, steps);
}

constexpr Value windows_of(Value x, int first, const std::array<Sliding, 2>& s) {
  Shape positions = x.shape();
  std::array<build::WindowAxis, max_rank> w{};
  for (int i = first; i < x.rank(); ++i) {
    const Sliding& a = s[static_cast<std::size_t>(i - first)];
    positions[i] = Sliding{a.size, a.stride, a.dilation, 0, 0}.positions(x.shape()[i].coefficient);
    w[static_cast<std::size_t>(i)] = {a.size, a.stride, a.dilation};
  }
  return build::window(x, positions, w);
}

// The sum over channels and windows, [n, o, ...]: x is padded, w is [o, c / groups, ...].
constexpr Value convolve(Value x, Value w, int groups, const std::array<Sliding, 2>& s) {
  const int spatial = x.rank() - 2;
  Shape grouped, weights;
  grouped.push(x.shape()[0]);
  weights.push(x.shape()[0]);
  if (groups > 1) {
    grouped.push(groups);
    weights.push(groups);
  }
  grouped.push(x.shape()[1].coefficient / groups);
  weights.push(w.shape()[0].coefficient / groups);
  for (int i = 2; i < x.rank(); ++i) grouped.push(x.shape()[i]);
  for (int i = 1; i < w.rank(); ++i) weights.push(w.shape()[i]);
  Shape one = weights;
  one[0] = 1;
  const Value windows = windows_of(build::reshape(x, grouped), grouped.rank - spatial, s);
  const Value spread = build::broadcast_to(build::reshape(w, one), weights);
  const Value r = groups > 1 ? spatial == 1 ? build::labelled_dot(spread, "ngock", windows, "ngcxk", "ngox")
                                            : build::labelled_dot(spread, "ngockl", windows, "ngcyxkl", "ngoyx")
                             : spatial == 1 ? build::labelled_dot(spread, "nock", windows, "ncxk", "nox")
                                            : build::labelled_dot(spread, "nockl", windows, "ncyxkl", "noyx");
  Shape result;
  result.push(x.shape()[0]);
  result.push(w.shape()[0]);
  for (int i = r.rank() - spatial; i < r.rank(); ++i) result.push(r.shape()[i]);
  return build::reshape(r, result);
}

template <class X>
consteval bool spatial_static(int spatial) {
  if (X::extents.rank != spatial + 2) return false;
  for (int i = 1; i < X::extents.rank; ++i)
    if (!X::extents[i].is_static()) return false;
  return true;
}

template <int Spatial, int Stride, int Padding, int Dilation, int Groups>
struct Convolution {
  template <class X, class W>
  static constexpr std::array<Sliding, 2> sliding_of() {
    std::array<Sliding, 2> s{};
    for (int i = 0; i < Spatial; ++i)
      s[static_cast<std::size_t>(i)] = sliding(X::extents[2 + i].coefficient, W::extents[2 + i].coefficient, Stride, Padding, Dilation);
    return s;
  }
  template <class X, class W>
  static consteval Message problem() {
    Message m = Message("conv: input ") << X::extents << " and weight " << W::extents << ": ";
    if (!spatial_static<X>(Spatial) || W::extents.rank != Spatial + 2 || !W::extents.size().is_static())
      return m << "expected [n, channels, " << Spatial << " static extents] and [channels out, channels / groups, window]";
    if (Stride < 1 || Dilation < 1 || Groups < 1 || Padding < same_padding) return m << "stride, dilation and groups are at least 1, padding at least 0";
    if (!(X::extents[1].coefficient == W::extents[1].coefficient * Groups) || W::extents[0].coefficient % Groups != 0)
      return m << X::extents[1] << " channels in " << Groups << " groups do not fit";
    const auto s = sliding_of<X, W>();
    for (int i = 0; i < Spatial; ++i)
      if (s[static_cast<std::size_t>(i)].positions(X::extents[2 + i].coefficient) < 1) return m << "the window is larger than the padded input";
    return {};
  }
  template <class X, class W>
  static constexpr Message wrong = problem<X, W>();

  template <class X, class W>
  constexpr auto operator()(const X& x, const W& w) const {
    if constexpr (wrong<X, W>.text[0] != 0) {
      fail<wrong<X, W>, expr_t<X>, expr_t<W>>();
    } else if constexpr (!std::same_as<typename X::value_type, typename W::value_type>) {
      constexpr Message m = Message("conv: dtypes ") << name(X::element) << " and " << name(W::element) << " differ; convert one with tg::cast";
      fail<m, expr_t<X>, expr_t<W>>();
    } else {
      constexpr auto extents = [] {
        Extents e;
        e.push(X::extents[0]);
        e.push(W::extents[0]);
        const auto s = Convolution::template sliding_of<X, W>();
        for (int i = 0; i < Spatial; ++i) e.push(s[static_cast<std::size_t>(i)].positions(X::extents[2 + i].coefficient));
        return e;
      };
      const auto s = sliding_of<X, W>();
      return expr_of<typename X::value_type, decltype(extents)>(convolve(pad_around(x, 2, s), w, Groups, s));
    }
  }
};

template <int Spatial, int Stride, int Padding, int OutputPadding, int Dilation>
struct TransposedConvolution {
  template <class X, class W>
  static consteval Message problem() {
    Message m = Message("conv_transpose: input ") << X::extents << " and weight " << W::extents << ": ";
    if (!spatial_static<X>(Spatial) || W::extents.rank != Spatial + 2 || !W::extents.size().is_static())
      return m << "expected [n, channels, " << Spatial << " static extents] and [channels, channels out, window]";
    if (!(X::extents[1] == W::extents[0])) return m << "channels " << X::extents[1] << " and " << W::extents[0] << " differ";
    if (Stride < 1 || Dilation < 1 || Padding < 0 || OutputPadding < 0 || OutputPadding >= (Stride > Dilation ? Stride : Dilation))
      return m << "stride and dilation are at least 1, output padding is below one of them";
    for (int i = 0; i < Spatial; ++i)
      if (Padding > (W::extents[2 + i].coefficient - 1) * Dilation) return m << "the padding is larger than the window";
    return {};
  }
  template <class X, class W>
  static constexpr Message wrong = problem<X, W>();
  template <class X, class W>
  static constexpr std::int64_t out(int i) {
    return (X::extents[2 + i].coefficient - 1) * Stride - 2 * Padding + Dilation * (W::extents[2 + i].coefficient - 1) + OutputPadding + 1;
  }

  template <class X, class W>
  constexpr auto operator()(const X& x, const W& w) const {
    if constexpr (wrong<X, W>.text[0] != 0) {
      fail<wrong<X, W>, expr_t<X>, expr_t<W>>();
    } else {
      constexpr auto extents = [] {
        Extents e;
        e.push(X::extents[0]);
        e.push(W::extents[1]);
        for (int i = 0; i < Spatial; ++i) e.push(TransposedConvolution::template out<X, W>(i));
        return e;
      };
      std::array<Sliding, 2> s{};
      Shape padded = x.shape();
      AttributeList before, spread, starts, steps;
      for (int i = 0; i < Spatial + 2; ++i) {
        const std::int64_t size = W::extents[i].coefficient;
        before.push(i < 2 ? 0 : (size - 1) * Dilation - Padding);
        spread.push(i < 2 ? 1 : Stride);
        starts.push(i < 2 ? 0 : size - 1);
        steps.push(i < 2 ? 1 : -1);
        if (i < 2) continue;
        s[static_cast<std::size_t>(i - 2)] = {size, 1, Dilation, 0, 0};
        padded[i] = out<X, W>(i - 2) + (size - 1) * Dilation;
      }
      const Value reversed = build::swap_axes(build::slice(w, w.shape(), starts, steps), 0, 1);
      return expr_of<typename X::value_type, decltype(extents)>(convolve(build::pad(x, padded, before, spread), reversed, 1, s));
    }
  }
};

}  // namespace detail

// The convolution (cross-correlation, as everywhere in deep learning) of x [n, channels, length] with w [channels out,
// channels / Groups, window]: result [n, channels out, positions], positions = (length + 2 Padding - Dilation (window - 1)
// - 1) / Stride + 1. Padding is with zeros on both sides, or same_padding. A window that does not fit is a compile error.
// 2 · n · positions · channels out · channels / Groups · window flops; gradients are convolutions of the same cost.
template <int Stride = 1, int Padding = 0, int Dilation = 1, int Groups = 1, Operand X, Operand W>
constexpr auto conv1d(const X& x, const W& w) { return apply<detail::Convolution<1, Stride, Padding, Dilation, Groups>>(x, w); }
// The same of x [n, channels, height, width] with w [channels out, channels / Groups, window height, window width].
template <int Stride = 1, int Padding = 0, int Dilation = 1, int Groups = 1, Operand X, Operand W>
constexpr auto conv2d(const X& x, const W& w) { return apply<detail::Convolution<2, Stride, Padding, Dilation, Groups>>(x, w); }
// The transposed convolution, the gradient of conv in its input as an op: x [n, channels, length], w [channels, channels
// out, window], result length (length - 1) Stride - 2 Padding + Dilation (window - 1) + OutputPadding + 1, as in PyTorch.
template <int Stride = 1, int Padding = 0, int OutputPadding = 0, int Dilation = 1, Operand X, Operand W>
constexpr auto conv_transpose1d(const X& x, const W& w) { return apply<detail::TransposedConvolution<1, Stride, Padding, OutputPadding, Dilation>>(x, w); }
template <int Stride = 1, int Padding = 0, int OutputPadding = 0, int Dilation = 1, Operand X, Operand W>
constexpr auto conv_transpose2d(const X& x, const W& w) { return apply<detail::TransposedConvolution<2, Stride, Padding, OutputPadding, Dilation>>(x, w); }

}  // namespace tg
