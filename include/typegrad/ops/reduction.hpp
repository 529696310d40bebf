// Reductions over any axes, and what is made of them: mean, var, softmax, logsumexp, argmax.
#pragma once

#include "typegrad/ops/activation.hpp"
#include "typegrad/ops/shape.hpp"

namespace tg {

// Passed to a reduction, it keeps each reduced axis with extent 1.
struct KeepDims {};
inline constexpr KeepDims keepdims{};

namespace detail {

template <class X, int... Axes>
consteval std::int64_t mask_of() { return axes_mask<X::extents.rank, Axes...>(); }

template <class X, std::int64_t Mask, bool Keep>
consteval Extents reduced_extents() {
  Extents e;
  for (int i = 0; i < X::extents.rank; ++i) {
    if (!((Mask >> i) & 1)) e.push(X::extents[i]);
    else if (Keep) e.push(1);
  }
  return e;
}

template <Op O, bool Keep, int... Axes>
struct Reduce {
  template <class X>
  constexpr auto operator()(const X& x) const {
    constexpr std::int64_t mask = mask_of<X, Axes...>();
    using T = typename X::value_type;
    // Sums and products of integers are int64; of bool too, so that a sum counts.
    constexpr bool widen = (O == Op::ReduceSum || O == Op::ReduceProd) && !is_floating(dtype_of<T>);
    using R = std::conditional_t<widen, std::int64_t, T>;
    if constexpr (O == Op::ReduceMax || O == Op::ReduceMin) {
      constexpr bool empty = [] {
        for (int i = 0; i < X::extents.rank; ++i)
          if (((mask >> i) & 1) && X::extents[i].is(0)) return true;
        return false;
      }();
      if constexpr (empty) {
        constexpr Message m = Message(name(O)) << ": " << X::extents << ": max of an empty axis has no value";
        fail<m, expr_t<X>>();
      }
    }
    const Value r = build::reduce(O, build::cast(x, dtype_of<R>), mask);
    constexpr auto extents = [] { return reduced_extents<X, mask_of<X, Axes...>(), Keep>(); };
    if constexpr (Keep) return expr_of<R, decltype(extents)>(r);
    else return expr_of<R, decltype(extents)>(build::reshape(r, build::without_axes(r.shape(), mask)));
  }
};

// The number of elements that are reduced to one, as an expression: a constant unless an extent is known only at run time.
template <class X>
constexpr Value count_of(const X& x, std::int64_t mask) {
  Dim n = 1;
  for (int i = 0; i < x.rank(); ++i)
    if ((mask >> i) & 1) n = n * x.shape()[i];
  if (n.is_static()) return build::constant(*x.graph, x.dtype(), Shape{}, static_cast<double>(n.coefficient));
  Shape counted;
  for (int i = 0; i < x.rank(); ++i)
    if ((mask >> i) & 1) counted.push(x.shape()[i]);
  return build::size(*x.graph, x.dtype(), counted);
}

template <bool Keep, int... Axes>
struct Mean {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto total = Reduce<Op::ReduceSum, Keep, Axes...>{}(x);
    using R = std::remove_cvref_t<decltype(total)>;
    return R(build::binary(Op::Div, total, count_of(x, mask_of<X, Axes...>())));
  }
};

// x minus its mean. The rounding of a large mean is taken out by centering the result once more; that mean is 0 as a
// function of x, so no gradient belongs to it.
template <int... Axes>
struct Center {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto once = x - Mean<true, Axes...>{}(x);
    return once - stop_gradient(Mean<true, Axes...>{}(once));
  }
};

template <bool Keep, int Correction, int... Axes>
struct Var {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto centered = Center<Axes...>{}(x);
    const auto total = Reduce<Op::ReduceSum, Keep, Axes...>{}(centered * centered);
    using R = std::remove_cvref_t<decltype(total)>;
    const Value n = count_of(x, mask_of<X, Axes...>());
    const Value divisor = build::binary(Op::Sub, n, build::constant(*x.graph, x.dtype(), Shape{}, Correction));
    return R(build::binary(Op::Div, total, divisor));
  }
};

// x is shifted by its maximum; an infinite maximum must not become inf - inf.
template <int... Axes>
struct ShiftByMax {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto m = Reduce<Op::ReduceMax, true, Axes...>{}(x);
    return stop_gradient(where(abs(m) < std::numeric_limits<double>::infinity(), m, 0.0));
  }
};

template <int... Axes>
struct Softmax {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto m = stop_gradient(Reduce<Op::ReduceMax, true, Axes...>{}(x));
    const auto e = exp(x - m);
    return e / Reduce<Op::ReduceSum, true, Axes...>{}(e);
  }
};

template <bool Keep, int... Axes>
struct LogSumExp {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto m = ShiftByMax<Axes...>{}(x);
    const auto r = log(Reduce<Op::ReduceSum, true, Axes...>{}(exp(x - m))) + m;
    if constexpr (Keep) {
      return r;
    } else {
      constexpr auto extents = [] { return reduced_extents<X, mask_of<X, Axes...>(), false>(); };
      return expr_of<typename X::value_type, decltype(extents)>(
          build::reshape(r, build::without_axes(r.shape(), mask_of<X, Axes...>())));
    }
  }
};

template <int... Axes>
struct LogSoftmax {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto m = stop_gradient(Reduce<Op::ReduceMax, true, Axes...>{}(x));
    const auto shifted = x - m;
    return shifted - log(Reduce<Op::ReduceSum, true, Axes...>{}(exp(shifted)));
  }
};

template <Op O, int Axis, bool Keep>
struct ArgReduce {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto best = Reduce<O, true, Axis>{}(x);
    const auto position = iota_like<std::int64_t, Axis>(x);
    const auto hit = x == best || x != x;  // NaN counts as the best, as in NumPy
    return Reduce<Op::ReduceMin, Keep, Axis>{}(where(hit, position, (std::numeric_limits<std::int32_t>::max)()));
  }
};

template <bool Keep, int... Axes>
struct Norm2 {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto total = Reduce<Op::ReduceSum, Keep, Axes...>{}(x * x);
    return where(total == 0.0, 0.0, sqrt(total));
  }
};

template <bool Keep, int Correction, int... Axes>
struct Stddev {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto v = Var<Keep, Correction, Axes...>{}(x);
    return where(v == 0.0, 0.0, sqrt(v));
  }
};
template <bool Keep, int... Axes>
struct Norm1 {
  constexpr auto operator()(const auto& x) const { return Reduce<Op::ReduceSum, Keep, Axes...>{}(abs(x)); }
};
template <bool Keep, int... Axes>
struct NormInf {
  constexpr auto operator()(const auto& x) const { return Reduce<Op::ReduceMax, Keep, Axes...>{}(abs(x)); }
};

template <class K>
inline constexpr bool keeps = std::same_as<K, KeepDims>;
struct DropDims {};

}  // namespace detail

// Sum over the named axes (all when none is named), which are dropped unless tg::keepdims is passed. Floating types
// accumulate in at least float; integers and bool give int64. An empty sum is 0.
template <int... Axes, Operand X, class K = detail::DropDims>
constexpr auto sum(const X& x, K = {}) { return apply<detail::Reduce<Op::ReduceSum, detail::keeps<K>, Axes...>>(x); }
// Product; the empty product is 1.
template <int... Axes, Operand X, class K = detail::DropDims>
constexpr auto prod(const X& x, K = {}) { return apply<detail::Reduce<Op::ReduceProd, detail::keeps<K>, Axes...>>(x); }
// Largest element, NaN if any is NaN. Elements that tie for it share the gradient equally.
template <int... Axes, Operand X, class K = detail::DropDims>
constexpr auto (max)(const X& x, K = {}) { return apply<detail::Reduce<Op::ReduceMax, detail::keeps<K>, Axes...>>(x); }
// Smallest element, NaN if any is NaN. Elements that tie for it share the gradient equally.
template <int... Axes, Operand X, class K = detail::DropDims>
constexpr auto (min)(const X& x, K = {}) { return apply<detail::Reduce<Op::ReduceMin, detail::keeps<K>, Axes...>>(x); }
// Whether any, or every, element of a bool tensor is true.
template <int... Axes, Operand X, class K = detail::DropDims>
constexpr auto any(const X& x, K = {}) { return apply<detail::Reduce<Op::ReduceMax, detail::keeps<K>, Axes...>>(x); }
template <int... Axes, Operand X, class K = detail::DropDims>
constexpr auto all(const X& x, K = {}) { return apply<detail::Reduce<Op::ReduceMin, detail::keeps<K>, Axes...>>(x); }
// Arithmetic mean; of an empty extent NaN.
template <int... Axes, Operand X, class K = detail::DropDims>
constexpr auto mean(const X& x, K = {}) { return apply<detail::Mean<detail::keeps<K>, Axes...>>(x); }
// Variance in two passes, divided by n - Correction (PyTorch's default is 1, here 0 as in NumPy and JAX).
template <int Correction = 0, int... Axes, Operand X, class K = detail::DropDims>
constexpr auto var(const X& x, K = {}) { return apply<detail::Var<detail::keeps<K>, Correction, Axes...>>(x); }
// Euclidean norm; its gradient at the zero vector is 0, a subgradient.
template <int... Axes, Operand X, class K = detail::DropDims>
constexpr auto norm2(const X& x, K = {}) { return apply<detail::Norm2<detail::keeps<K>, Axes...>>(x); }
// Square root of var; its gradient where the variance is 0 is 0, a subgradient.
template <int Correction = 0, int... Axes, Operand X, class K = detail::DropDims>
constexpr auto stddev(const X& x, K = {}) { return apply<detail::Stddev<detail::keeps<K>, Correction, Axes...>>(x); }
// Sum of the absolute values; the largest absolute value.
template <int... Axes, Operand X, class K = detail::DropDims>
constexpr auto norm1(const X& x, K = {}) { return apply<detail::Norm1<detail::keeps<K>, Axes...>>(x); }
template <int... Axes, Operand X, class K = detail::DropDims>
constexpr auto norm_inf(const X& x, K = {}) { return apply<detail::NormInf<detail::keeps<K>, Axes...>>(x); }
// log(sum(exp(x))) without overflow.
template <int... Axes, Operand X, class K = detail::DropDims>
constexpr auto logsumexp(const X& x, K = {}) { return apply<detail::LogSumExp<detail::keeps<K>, Axes...>>(x); }
// exp(x) / sum(exp(x)) along the named axes, by default the last.
template <int Axis = -1, Operand X>
constexpr auto softmax(const X& x) { return apply<detail::Softmax<Axis>>(x); }
// log(softmax(x)) without underflow.
template <int Axis = -1, Operand X>
constexpr auto log_softmax(const X& x) { return apply<detail::LogSoftmax<Axis>>(x); }
// Index (int64) of the first largest element along one axis; NaN counts as the largest.
template <int Axis = -1, Operand X, class K = detail::DropDims>
constexpr auto argmax(const X& x, K = {}) { return apply<detail::ArgReduce<Op::ReduceMax, Axis, detail::keeps<K>>>(x); }
// Index (int64) of the first smallest element along one axis; NaN counts as the smallest.
template <int Axis = -1, Operand X, class K = detail::DropDims>
constexpr auto argmin(const X& x, K = {}) { return apply<detail::ArgReduce<Op::ReduceMin, Axis, detail::keeps<K>>>(x); }

}  // namespace tg
