// Order along an axis: argsort, sort, topk, median, searchsorted.
#pragma once

#include "typegrad/ops/gather.hpp"
#include "typegrad/ops/reduction.hpp"

namespace tg {

// The order of sorting, of numbers and of expressions: NaN comes after everything, -0 and 0 are equal.
template <class T>
constexpr auto sort_less(const T& a, const T& b) {
  return a < b || (b != b && a == a);
}

namespace build {

// The positions of the first `count` elements of each row, sorted along the last axis.
constexpr Value argsort(Value x, std::int64_t count, bool descending) {
  Shape s = x.shape();
  s[s.rank - 1] = count;
  return {x.graph, x.graph->add(Op::ArgSort, DType::i64, s, x.id, -1, -1, SortAttribute{count, descending}.bits())};
}

}  // namespace build

namespace detail {

template <int Axis, bool Descending, std::int64_t Count>  // Count -1: all
struct ArgSort {
  template <class X>
  static consteval Extents extents() {
    Extents e = X::extents;
    if (Count >= 0) e[normal_axis<Axis, X::extents.rank>()] = Count;
    return e;
  }
  template <class X>
  constexpr auto operator()(const X& x) const {
    constexpr int axis = normal_axis<Axis, X::extents.rank>();
    constexpr Extent whole = X::extents[axis];
    if constexpr (!whole.is_static() || Count > whole.coefficient) {
      constexpr Message m = Message(Count < 0 ? "sort" : "topk") << ": axis " << Axis << " of " << X::extents
                                                                 << (whole.is_static() ? " has too few elements" : " is known only at run time");
      fail<m, expr_t<X>>();
    } else {
      const int last = x.rank() - 1;
      const Value order = build::argsort(build::swap_axes(x, axis, last), Count < 0 ? whole.coefficient : Count, Descending);
      return expr_of<std::int64_t, decltype([] { return extents<X>(); })>(build::swap_axes(order, axis, last));
    }
  }
};

template <int Axis, bool Descending>
struct Sort {
  template <class X>
  constexpr auto operator()(const X& x) const {
    return TakeAlongAxis<Axis>{}(x, ArgSort<Axis, Descending, -1>{}(x));
  }
};

template <int Axis, bool Keep>
struct Median {
  template <class X>
  constexpr auto operator()(const X& x) const {
    static_assert(is_floating(X::element), "typegrad: median takes floating-point numbers");
    constexpr int axis = normal_axis<Axis, X::extents.rank>();
    constexpr std::int64_t n = X::extents[axis].coefficient;
    const auto order = ArgSort<Axis, false, n / 2 + 1>{}(x);
    const auto middle = TakeAlongAxis<Axis>{}(x, SliceAxis<Axis, (n - 1) / 2, n / 2 + 1, 1>{}(order));
    return Mean<Keep, Axis>{}(middle) + stop_gradient(Reduce<Op::ReduceSum, Keep, Axis>{}(where(x == x, 0.0, x)));
  }
};

template <bool Right>
struct SearchSorted {
  template <class S, class V>
  constexpr auto operator()(const S& sorted, const V& values) const {
    if constexpr (S::extents.rank != 1 || !S::extents[0].is_static() || !std::same_as<typename S::value_type, typename V::value_type>) {
      constexpr Message m = Message("searchsorted: ") << name(V::element) << " " << V::extents << " in " << name(S::element) << " " << S::extents
                                                      << ": expected a vector of static extent and one dtype";
      fail<m, expr_t<S>, expr_t<V>>();
    } else {
      // Bisection by halving steps: all values take the same number of reads.
      constexpr std::int64_t n = S::extents[0].coefficient;
      using I = expr_of<std::int64_t, decltype([] { return V::extents; })>;
      I found(build::constant(*values.graph, DType::i64, values.shape(), 0.0));
      std::int64_t step = 1;
      while (2 * step <= n) step *= 2;
      for (; n > 0 && step > 0; step /= 2) {
        const I next(found + step);
        const V there(build::gather(sorted, minimum(next, n) - 1));
        const auto before = [&] {
          if constexpr (Right) return !comes_first(values, there);
          else return comes_first(there, values);
        }();
        found = I(where(next <= n && before, next, found));
      }
      return found;
    }
  }

 private:
  template <class X>
  static constexpr auto comes_first(const X& a, const X& b) {
    if constexpr (is_floating(X::element)) return sort_less(a, b);
    else return a < b;
  }
};

}  // namespace detail

// Sorting is stable, and NaN counts as larger than every number (NumPy, PyTorch). The axis is static.

// The positions (int64) that sort x along one axis.
template <int Axis = -1, bool Descending = false, Operand X>
constexpr auto argsort(const X& x) { return apply<detail::ArgSort<Axis, Descending, -1>>(x); }
// x sorted along one axis. The gradient goes where the elements came from.
template <int Axis = -1, bool Descending = false, Operand X>
constexpr auto sort(const X& x) { return apply<detail::Sort<Axis, Descending>>(x); }
// The positions (int64) of the K largest elements along one axis, the largest first; the elements themselves are
// take_along_axis<Axis>(x, argtopk<K, Axis>(x)).
template <int K, int Axis = -1, Operand X>
constexpr auto argtopk(const X& x) { return apply<detail::ArgSort<Axis, true, K>>(x); }
// The K largest elements along one axis and their positions. In traced functions.
template <int K, int Axis = -1, TypedExpr X>
constexpr auto topk(const X& x) {
  const auto positions = detail::ArgSort<Axis, true, K>{}(x);
  return std::pair(detail::TakeAlongAxis<Axis>{}(x, positions), positions);
}
// The middle element along one axis, the mean of two if their number is even (NumPy; PyTorch takes the lower one). NaN if
// any element is. Gradient: to the middle elements.
template <int Axis = -1, Operand X, class K = detail::DropDims>
constexpr auto median(const X& x, K = {}) { return apply<detail::Median<Axis, detail::keeps<K>>>(x); }
// Where each value would be inserted into a sorted vector to keep it sorted: before elements that equal it, or behind them
// (Right). About log2(n) reads for each value.
template <bool Right = false, Operand S, Operand V>
constexpr auto searchsorted(const S& sorted, const V& values) { return apply<detail::SearchSorted<Right>>(sorted, values); }

}  // namespace tg
