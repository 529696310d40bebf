// Scans along an axis: cumsum, cumprod, and the linear recurrence both of them, moving averages and state space models
// are made of.
#pragma once

#include "typegrad/ops/shape.hpp"

namespace tg {
namespace build {

// Running sums along the last axis, from its end if reverse.
constexpr Value cumsum(Value x, bool reverse) {
  return {x.graph, x.graph->add(Op::CumSum, x.dtype(), x.shape(), x.id, -1, -1, reverse)};
}
// h[t] = a[t] h[t - 1] + b[t] along the last axis (reverse: h[t + 1]); h before the first element is 0.
constexpr Value linear_scan(Value a, Value b, bool reverse) {
  return {b.graph, b.graph->add(Op::LinearScan, b.dtype(), b.shape(), a.id, b.id, -1, reverse)};
}
// The last axis moved by one element, towards its end or its beginning; 0 comes in.
constexpr Value shift(Value x, bool forward) {
  const int last = x.rank() - 1;
  Shape rest = x.shape();
  if (!rest[last].is_static()) throw "linear_scan: the axis is static";
  if (rest[last].is(0)) return x;
  rest[last] = rest[last].coefficient - 1;
  AttributeList starts, before, ones;
  for (int i = 0; i <= last; ++i) {
    starts.push(i == last && !forward);
    before.push(i == last && forward);
    ones.push(1);
  }
  return pad(slice(x, rest, starts, ones), x.shape(), before, ones);
}

}  // namespace build

namespace detail {

constexpr Value cumsum_gradient(Value g, bool reverse) { return build::cumsum(g, !reverse); }
// The gradients in a and b: b's is the same recurrence backwards, with a's factors one step ahead.
constexpr std::array<Value, 2> linear_scan_gradient(Value a, Value out, Value g, bool reverse) {
  const Value db = build::linear_scan(build::shift(a, reverse), g, !reverse);
  return {build::binary(Op::Mul, db, build::shift(out, !reverse)), db};
}

// Applies f to a value whose axis has become the last one.
template <class F>
constexpr Value along_last(Value x, int axis, F f) {
  const int last = x.rank() - 1;
  return build::swap_axes(f(build::swap_axes(x, axis, last)), axis, last);
}

template <int Axis, bool Reverse>
struct CumSum {
  template <class X>
  constexpr auto operator()(const X& x) const {
    constexpr int axis = normal_axis<Axis, X::extents.rank>();
    using T = std::conditional_t<is_floating(X::element), typename X::value_type, std::int64_t>;
    return expr_of<T, decltype([] { return X::extents; })>(
        along_last(build::cast(x, dtype_of<T>), axis, [](Value v) { return build::cumsum(v, Reverse); }));
  }
};

template <int Axis, bool Reverse>
struct LinearScan {
  template <class A, class B>
  constexpr auto operator()(const A& a, const B& b) const {
    if constexpr (!std::same_as<typename A::value_type, typename B::value_type> || !(A::extents == B::extents)) {
      constexpr Message m = Message("linear_scan: factors ") << name(A::element) << " " << A::extents << " and terms " << name(B::element) << " "
                                                             << B::extents << " differ";
      fail<m, expr_t<A>, expr_t<B>>();
    } else {
      constexpr int axis = normal_axis<Axis, B::extents.rank>();
      if constexpr (!B::extents[axis].is_static()) {
        constexpr Message m = Message("linear_scan: axis ") << Axis << " of " << B::extents << " is known only at run time";
        fail<m, expr_t<A>, expr_t<B>>();
      }
      const Value factors = build::swap_axes(a, axis, B::extents.rank - 1);
      return expr_t<B>(along_last(b, axis, [&](Value v) { return build::linear_scan(factors, v, Reverse); }));
    }
  }
};

template <int Axis>
struct CumProd {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto wide = [&] {
      if constexpr (is_floating(X::element)) return x;
      else return cast<std::int64_t>(x);
    }();
    const auto first = iota_like<std::int64_t, Axis>(x) == 0;
    // Adding -0 keeps the sign of a product that is 0.
    if constexpr (is_floating(X::element)) return LinearScan<Axis, false>{}(where(first, 0.0, wide), where(first, wide, -0.0));
    else return LinearScan<Axis, false>{}(where(first, 0, wide), where(first, wide, 0));
  }
};

}  // namespace detail

// Running sums along one axis (Reverse: from its end): element t is the sum of the elements up to it. Integers and bool
// give int64. Gradient: running sums the other way.
template <int Axis = -1, bool Reverse = false, Operand X>
constexpr auto cumsum(const X& x) { return apply<detail::CumSum<Axis, Reverse>>(x); }
// Running products along one static axis. Its gradient is exact where factors are 0.
template <int Axis = -1, Operand X>
constexpr auto cumprod(const X& x) { return apply<detail::CumProd<Axis>>(x); }
// h[t] = a[t] h[t - 1] + b[t] along one static axis, h before the first element being 0 (Reverse: from the end). Rows run
// side by side; a GPU also scans the parts of one, so that its last bits may differ.
template <int Axis = -1, bool Reverse = false, Operand A, Operand B>
constexpr auto linear_scan(const A& a, const B& b) { return apply<detail::LinearScan<Axis, Reverse>>(a, b); }

}  // namespace tg
