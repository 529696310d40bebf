// Reading and writing at positions that are data: take_along_axis, take, index_select, embedding, scatter, scatter_add,
// index_add, bincount, histogram.
#pragma once

#include "typegrad/ops/position.hpp"
#include "typegrad/ops/shape.hpp"

namespace tg {
namespace build {

// The elements of x at row-major positions, which are within its size.
constexpr Value gather(Value x, Value positions) {
  Graph& g = *x.graph;
  if (g[x.id].op == Op::Constant) return constant(g, x.dtype(), positions.shape(), constant_value(g[x.id]));
  return {&g, g.add(Op::Gather, x.dtype(), positions.shape(), x.id, positions.id)};
}
// A vector of `size` elements: at each position the sum of the updates that have it. ScatterMax: the largest of them, which
// are int64, or -1 where there is none. Updates of one position are added in their order, on every device.
constexpr Value scatter(Op op, Value updates, Value positions, Dim size) {
  Graph& g = *updates.graph;
  return {&g, g.add(op, updates.dtype(), Shape{size}, updates.id, positions.id)};
}
// The same for row-major positions in a tensor of a shape.
constexpr Value scatter_to(Op op, Value updates, Value positions, const Shape& s) {
  return reshape(scatter(op, updates, positions, s.size()), s);
}

}  // namespace build

namespace detail {

// Row-major positions in a tensor of shape `in`: the index, checked against the extent of axis `axis`, there, and along the
// other axes the position in `out`, whose axes [axis, axis + width) the index stands for.
constexpr Value positions_of(Value index, const Shape& in, int axis, const Shape& out, int width) {
  Graph& g = *index.graph;
  const Value checked = build::cast(build::unary(Op::CheckIndex, index, in[axis].coefficient), DType::i64);
  Dim inner = 1, outer = in[axis];
  for (int i = axis + 1; i < in.rank; ++i) inner = inner * in[i];
  outer = outer * inner;
  Value total = build::broadcast_to(inner.is(1) ? checked : build::binary(Op::Mul, checked, extent_value(g, inner)), out);
  if (axis + 1 < in.rank) total = build::binary(Op::Add, total, row_major_position(g, out, axis + width, out.rank));
  if (axis > 0) total = build::binary(Op::Add, total, build::binary(Op::Mul, row_major_position(g, out, 0, axis), extent_value(g, outer)));
  return total;
}

// Reads at an index that is known only at run time need an extent to check it against.
template <Message What, class X, class I, int Axis>
consteval void check_index_along() {
  if constexpr (!is_integer(I::element)) {
    constexpr Message m = Message(What) << ": the index has dtype " << name(I::element) << ", expected an integer";
    fail<m, expr_t<X>, expr_t<I>>();
  } else if constexpr (constexpr Extent e = X::extents[normal_axis<Axis, X::extents.rank>()]; !e.is_static() || e.coefficient == 0) {
    constexpr Message m = Message(What) << ": axis " << Axis << " of " << X::extents << (e.is_static() ? " has no elements" : " is known only at run time");
    fail<m, expr_t<X>, expr_t<I>>();
  }
}

// Whether the index has x's shape but for the axis.
template <class X, class I, int Axis>
consteval bool indexes_along() {
  if (X::extents.rank != I::extents.rank) return false;
  for (int i = 0; i < X::extents.rank; ++i)
    if (i != normal_axis<Axis, X::extents.rank>() && !(X::extents[i] == I::extents[i])) return false;
  return true;
}

template <int Axis>
struct TakeAlongAxis {
  template <class X, class I>
  constexpr auto operator()(const X& x, const I& index) const {
    check_index_along<Message("take_along_axis"), X, I, Axis>();
    if constexpr (!indexes_along<X, I, Axis>()) {
      constexpr Message m = Message("take_along_axis: ") << X::extents << " at " << I::extents << " along axis " << Axis << ": the other axes differ";
      fail<m, expr_t<X>, expr_t<I>>();
    } else {
      constexpr int axis = normal_axis<Axis, X::extents.rank>();
      return expr_of<typename X::value_type, decltype([] { return I::extents; })>(
          build::gather(x, positions_of(index, x.shape(), axis, index.shape(), 1)));
    }
  }
};

template <class X, class I, int Axis>
consteval Extents taken_extents() {
  Extents e;
  for (int i = 0; i < X::extents.rank; ++i) {
    if (i != normal_axis<Axis, X::extents.rank>()) e.push(X::extents[i]);
    else
      for (int k = 0; k < I::extents.rank; ++k) e.push(I::extents[k]);
  }
  return e;
}

// The positions of whole slices of x along an axis, and of the slices' elements.
template <int Axis, class X, class I>
constexpr Value slice_positions(const X& x, const I& index) {
  constexpr int axis = normal_axis<Axis, X::extents.rank>();
  const Shape out = to_shape(*x.graph, taken_extents<X, I, Axis>());
  Shape spread;
  for (int i = 0; i < out.rank; ++i) spread.push(i >= axis && i < axis + I::extents.rank ? out[i] : Dim(1));
  return positions_of(build::reshape(index, spread), x.shape(), axis, out, I::extents.rank);
}

template <int Axis>
struct Take {
  template <class X, class I>
  constexpr auto operator()(const X& x, const I& index) const {
    check_index_along<Message("take"), X, I, Axis>();
    return expr_of<typename X::value_type, decltype([] { return taken_extents<X, I, Axis>(); })>(build::gather(x, slice_positions<Axis>(x, index)));
  }
};

// Whether updates have the index's shape and x's dtype; if not, the compiler says so.
template <Message What, class X, class I, class U, int Axis>
consteval bool check_updates() {
  check_index_along<What, X, I, Axis>();
  constexpr bool fit = indexes_along<X, I, Axis>() && U::extents == I::extents && std::same_as<typename X::value_type, typename U::value_type>;
  if constexpr (!fit) {
    constexpr Message m = Message(What) << ": " << name(U::element) << " " << U::extents << " to " << name(X::element) << " " << X::extents << " at "
                                        << I::extents << " along axis " << Axis;
    fail<m, expr_t<X>, expr_t<I>, expr_t<U>>();
  }
  return fit;
}

template <int Axis>
struct ScatterAdd {
  template <class X, class I, class U>
  constexpr auto operator()(const X& x, const I& index, const U& updates) const {
    if constexpr (check_updates<Message("scatter_add"), X, I, U, Axis>()) {
      constexpr int axis = normal_axis<Axis, X::extents.rank>();
      const Value at = positions_of(index, x.shape(), axis, index.shape(), 1);
      return expr_t<X>(build::binary(Op::Add, x, build::scatter_to(Op::ScatterAdd, updates, at, x.shape())));
    }
  }
};

template <int Axis>
struct Scatter {
  template <class X, class I, class U>
  constexpr auto operator()(const X& x, const I& index, const U& updates) const {
    if constexpr (check_updates<Message("scatter"), X, I, U, Axis>()) {
      constexpr int axis = normal_axis<Axis, X::extents.rank>();
      Graph& g = *x.graph;
      const Value at = positions_of(index, x.shape(), axis, index.shape(), 1);
      // Each element learns which update is the last that goes to it, and reads that one.
      const Value order = build::broadcast_to(row_major_position(g, index.shape(), 0, index.rank()), index.shape());
      const Value last = build::scatter_to(Op::ScatterMax, order, at, x.shape());
      const Value none = build::constant_like(last, 0.0);
      const Value written = build::binary(Op::LessEqual, none, last);
      return expr_t<X>(build::select(written, build::gather(updates, build::binary(Op::Max, last, none)), x));
    }
  }
};

template <int Axis>
struct IndexAdd {
  template <class X, class I, class U>
  constexpr auto operator()(const X& x, const I& index, const U& updates) const {
    check_index_along<Message("index_add"), X, I, Axis>();
    constexpr Extents expected = taken_extents<X, I, Axis>();
    if constexpr (!(U::extents == expected) || !std::same_as<typename X::value_type, typename U::value_type>) {
      constexpr Message m = Message("index_add: ") << name(U::element) << " " << U::extents << " to " << name(X::element) << " " << X::extents << " at "
                                                   << I::extents << " along axis " << Axis << ": expected updates " << expected;
      fail<m, expr_t<X>, expr_t<I>, expr_t<U>>();
    } else {
      const Value at = slice_positions<Axis>(x, index);
      return expr_t<X>(build::binary(Op::Add, x, build::scatter_to(Op::ScatterAdd, updates, at, x.shape())));
    }
  }
};

template <int Classes>
struct Bincount {
  template <class I>
  constexpr auto operator()(const I& index) const {
    static_assert(is_integer(I::element) && Classes > 0, "typegrad: bincount takes integers and counts at least one class");
    const Value at = build::cast(build::unary(Op::CheckIndex, index, Classes), DType::i64);
    return Expr<std::int64_t, Classes>(build::scatter(Op::ScatterAdd, build::constant_like(at, 1.0), at, Dim(Classes)));
  }
};

template <int Bins>
struct Histogram {
  template <class X>
  constexpr auto operator()(const X& x, const auto& low, const auto& high) const {
    static_assert(is_floating(X::element) && Bins > 0, "typegrad: histogram takes floating-point numbers and has at least one bin");
    const auto inside = x >= low && x <= high;
    const auto bin = cast<std::int64_t>(floor((where(inside, x, low) - low) / (high - low) * Bins));
    const Value at = minimum(bin, Bins - 1);
    return Expr<std::int64_t, Bins>(build::scatter(Op::ScatterAdd, cast<std::int64_t>(inside), at, Dim(Bins)));
  }
};

}  // namespace detail

// An index is of any integer dtype and counts from 0; one outside of the axis is a tg::Error when the program runs. The
// axis it indexes is static.

// The elements of x at index along one axis (torch.gather, numpy.take_along_axis): result[i][j] = x[index[i][j]][j] for
// axis 0. The index has x's extents along the other axes. Gradient: scatter_add.
template <int Axis, Operand X, Operand I>
constexpr auto take_along_axis(const X& x, const I& index) { return apply<detail::TakeAlongAxis<Axis>>(x, index); }
// Whole slices of x along one axis, for each element of an index of any shape, whose axes take the axis's place.
template <int Axis, Operand X, Operand I>
constexpr auto take(const X& x, const I& index) { return apply<detail::Take<Axis>>(x, index); }
// take with an index of one axis, as PyTorch calls it.
template <int Axis, Operand X, Operand I>
constexpr auto index_select(const X& x, const I& index) { return apply<detail::Take<Axis>>(x, index); }
// The rows of a table [V, D] that belong to ids: [..., D]. The gradients of one row are added in the order of the ids, so
// that it is the same on every device and for every number of threads.
template <Operand W, Operand I>
constexpr auto embedding(const W& table, const I& ids) { return apply<detail::Take<0>>(table, ids); }
// x with updates added at index along one axis; several updates of one element are added in their order. Index and
// updates have one shape, x's but for the axis.
template <int Axis, Operand X, Operand I, Operand U>
constexpr auto scatter_add(const X& x, const I& index, const U& updates) { return apply<detail::ScatterAdd<Axis>>(x, index, updates); }
// x with updates written at index along one axis; of several the last one counts, and it alone has a gradient (PyTorch
// leaves the choice open).
template <int Axis, Operand X, Operand I, Operand U>
constexpr auto scatter(const X& x, const I& index, const U& updates) { return apply<detail::Scatter<Axis>>(x, index, updates); }
// x with whole slices added along one axis: the opposite of take, with updates in the shape of take<Axis>(x, index).
template <int Axis, Operand X, Operand I, Operand U>
constexpr auto index_add(const X& x, const I& index, const U& updates) { return apply<detail::IndexAdd<Axis>>(x, index, updates); }
// How often each of 0 ... Classes - 1 occurs, as int64 [Classes].
template <int Classes, Operand I>
constexpr auto bincount(const I& index) { return apply<detail::Bincount<Classes>>(index); }
// How many elements lie in each of Bins equal parts of [low, high], the last of which includes high (numpy.histogram).
// Others, and NaN, are not counted.
template <int Bins, Operand X>
constexpr auto histogram(const X& x, double low, double high) { return apply<detail::Histogram<Bins>>(x, low, high); }

}  // namespace tg
