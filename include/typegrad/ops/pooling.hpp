// Pooling over windows of one or two spatial axes, global and adaptive pooling, upsampling.
#pragma once

#include "typegrad/ops/convolution.hpp"
#include "typegrad/ops/reduction.hpp"

namespace tg {
namespace detail {

// The windows of x [n, c, spatial...] as [n, c, positions..., window...]; a reshape where they tile the axes exactly.
template <class X, int Size, int Stride>
constexpr Value pooling_windows(const X& x) {
  constexpr int spatial = X::extents.rank - 2;
  constexpr bool tiles = [] {
    for (int i = 2; i < X::extents.rank; ++i)
      if (Size != Stride || X::extents[i].coefficient % Size != 0) return false;
    return true;
  }();
  if constexpr (tiles) {
    Shape s;
    AttributeList p;
    for (int i = 0; i < 2; ++i) s.push(x.shape()[i]);
    for (int i = 0; i < spatial; ++i) {
      s.push(x.shape()[2 + i].coefficient / Size);
      s.push(Size);
    }
    p.push(0);
    p.push(1);
    for (int i = 0; i < spatial; ++i) p.push(2 + 2 * i);
    for (int i = 0; i < spatial; ++i) p.push(3 + 2 * i);
    return build::transpose(build::reshape(x, s), p);
  } else {
    return windows_of(x, 2, {Sliding{Size, Stride, 1, 0, 0}, Sliding{Size, Stride, 1, 0, 0}});
  }
}

template <int Spatial, int Size, int Stride, int Padding, class X>
consteval Message pooling_problem() {
  Message m = Message("pool: input ") << X::extents << ", window " << Size << ": ";
  if (!spatial_static<X>(Spatial)) return m << "expected [n, channels, " << Spatial << " static extents]";
  if (Size < 1 || Stride < 1 || Padding < 0 || Padding > Size / 2) return m << "window and stride are at least 1, padding at most half the window";
  for (int i = 2; i < X::extents.rank; ++i)
    if (X::extents[i].coefficient + 2 * Padding < Size) return m << "the window is larger than the padded input";
  return {};
}

template <int Spatial, int Size, int Stride, int Padding, class X>
consteval Extents pooled() {
  Extents e = X::extents;
  for (int i = 2; i < e.rank; ++i) e[i] = Sliding{Size, Stride, 1, Padding, Padding}.positions(e[i].coefficient);
  return e;
}

template <int Spatial, int Size, int Stride, int Padding>
struct MaxPool {
  template <class X>
  static constexpr Message wrong = pooling_problem<Spatial, Size, Stride, Padding, X>();

  template <class X>
  constexpr auto operator()(const X& x) const {
    if constexpr (wrong<X>.text[0] != 0) {
      fail<wrong<X>, expr_t<X>>();
    } else {
      constexpr auto extents = [] { return pooled<Spatial, Size, Stride, Padding, X>(); };
      using R = expr_of<typename X::value_type, decltype(extents)>;
      if constexpr (Padding > 0) {
        const auto rows = PadAxis<-1, Padding, Padding, PadMode::constant>{}(x, -std::numeric_limits<double>::infinity());
        if constexpr (Spatial == 1) return R(first_largest(rows));
        else return R(first_largest(PadAxis<-2, Padding, Padding, PadMode::constant>{}(rows, -std::numeric_limits<double>::infinity())));
      } else {
        return R(first_largest(x));
      }
    }
  }

 private:
  // The largest element of each window; its gradient goes to the first of equals in row-major order, NaN is the largest.
  template <class P>
  static constexpr Value first_largest(const P& x) {
    const Value w = pooling_windows<P, Size, Stride>(x);
    const int rank = w.rank();
    std::int64_t axes = 0;
    for (int i = rank - Spatial; i < rank; ++i) axes |= std::int64_t{1} << i;
    Value place = build::iota(*w.graph, DType::i64, w.shape(), rank - 1);
    if (Spatial == 2) place = build::iota(*w.graph, DType::i64, w.shape(), rank - 2) * static_cast<double>(Size) + place;
    const Value best = stop_gradient(build::reduce(Op::ReduceMax, w, axes));
    const Value hit = w == best || w != w;
    const Value first = build::reduce(Op::ReduceMin, where(hit, place, static_cast<double>(Size * Size)), axes);
    const Value sum = build::reduce(Op::ReduceSum, where(place == first, w, 0.0), axes);
    return build::reshape(sum, build::without_axes(sum.shape(), axes));
  }
};

template <int Spatial, int Size, int Stride, int Padding>
struct AvgPool {
  template <class X>
  static constexpr Message wrong = pooling_problem<Spatial, Size, Stride, Padding, X>();

  template <class X>
  constexpr auto operator()(const X& x) const {
    if constexpr (wrong<X>.text[0] != 0) {
      fail<wrong<X>, expr_t<X>>();
    } else {
      constexpr auto extents = [] { return pooled<Spatial, Size, Stride, Padding, X>(); };
      using R = expr_of<typename X::value_type, decltype(extents)>;
      const auto padded = pad_expr(x);
      const Value w = pooling_windows<std::remove_cvref_t<decltype(padded)>, Size, Stride>(padded);
      std::int64_t axes = 0;
      double count = 1;
      for (int i = 0; i < Spatial; ++i) {
        axes |= std::int64_t{1} << (w.rank() - 1 - i);
        count *= Size;
      }
      const Value sum = build::reduce(Op::ReduceSum, w, axes);
      return R(build::reshape(sum, build::without_axes(sum.shape(), axes)) / count);
    }
  }

 private:
  template <class X>
  static constexpr auto pad_expr(const X& x) {
    constexpr auto extents = [] {
      Extents e = X::extents;
      for (int i = 2; i < e.rank; ++i) e[i] = e[i].coefficient + 2 * Padding;
      return e;
    };
    return expr_of<typename X::value_type, decltype(extents)>(
        pad_around(x, 2, {Sliding{Size, Stride, 1, Padding, Padding}, Sliding{Size, Stride, 1, Padding, Padding}}));
  }
};

template <int Out>
struct AdaptiveAvgPool2d {
  template <class X>
  constexpr auto operator()(const X& x) const {
    constexpr bool fits = spatial_static<X>(2) && Out > 0 && X::extents[2].coefficient % Out == 0 && X::extents[3] == X::extents[2];
    if constexpr (!fits) {
      constexpr Message m = Message("adaptive_avg_pool2d: square extents of ") << X::extents << " that " << Out << " divides";
      fail<m, expr_t<X>>();
    } else {
      constexpr auto size = static_cast<int>(X::extents[2].coefficient / Out);
      return AvgPool<2, size, size, 0>{}(x);
    }
  }
};

struct GlobalAvgPool2d {
  constexpr auto operator()(const auto& x) const { return Mean<false, -2, -1>{}(x); }
};

template <int Factor>
struct UpsampleNearest2d {
  constexpr auto operator()(const auto& x) const { return Repeat<-2, Factor, true>{}(Repeat<-1, Factor, true>{}(x)); }
};

}  // namespace detail

// The largest element of each window of x [n, channels, length], padded with -infinity. The gradient goes to the first of
// equal elements in row-major order; NaN counts as the largest. Stride is the window unless given, as in PyTorch.
template <int Size, int Stride = Size, int Padding = 0, Operand X>
constexpr auto max_pool1d(const X& x) { return apply<detail::MaxPool<1, Size, Stride, Padding>>(x); }
// The same over square windows of x [n, channels, height, width].
template <int Size, int Stride = Size, int Padding = 0, Operand X>
constexpr auto max_pool2d(const X& x) { return apply<detail::MaxPool<2, Size, Stride, Padding>>(x); }
// The mean of each window; zeros of the padding count, as is PyTorch's default.
template <int Size, int Stride = Size, int Padding = 0, Operand X>
constexpr auto avg_pool1d(const X& x) { return apply<detail::AvgPool<1, Size, Stride, Padding>>(x); }
template <int Size, int Stride = Size, int Padding = 0, Operand X>
constexpr auto avg_pool2d(const X& x) { return apply<detail::AvgPool<2, Size, Stride, Padding>>(x); }
// The mean over Out by Out equal blocks of a square image whose extent Out divides.
template <int Out, Operand X>
constexpr auto adaptive_avg_pool2d(const X& x) { return apply<detail::AdaptiveAvgPool2d<Out>>(x); }
// The mean over the image: [n, channels, height, width] to [n, channels].
template <Operand X>
constexpr auto global_avg_pool2d(const X& x) { return apply<detail::GlobalAvgPool2d>(x); }
// Each pixel as a Factor by Factor block.
template <int Factor, Operand X>
constexpr auto upsample_nearest2d(const X& x) { return apply<detail::UpsampleNearest2d<Factor>>(x); }

}  // namespace tg
