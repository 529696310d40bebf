// Value: an untyped handle to a graph node, and the functions that append each primitive with its shape rule.
// Gradient rules are written with it; the typed Expr derives from it.
#pragma once

#include <initializer_list>
#include <string_view>

#include "typegrad/graph/graph.hpp"

namespace tg {

struct Value {
  Graph* graph = nullptr;
  int id = -1;

  // A copy: adding nodes moves the shapes of the graph.
  constexpr Shape shape() const { return graph->shape(id); }
  constexpr DType dtype() const { return (*graph)[id].dtype; }
  constexpr int rank() const { return shape().rank; }
};

// What each function throws is a compile error while tracing; typed expressions have checked before.
namespace build {

constexpr Value constant(Graph& g, DType t, const Shape& s, double value) {
  return {&g, g.add(Op::Constant, t, s, -1, -1, -1, constant_bits(t, value))};
}
constexpr Value constant_like(Value x, double value) { return constant(*x.graph, x.dtype(), x.shape(), value); }

// An input of the program; inputs are numbered by position.
constexpr Value input(Graph& g, DType t, const Shape& s, std::int64_t position) {
  return {&g, g.add(Op::Input, t, s, -1, -1, -1, position)};
}

// The number of elements of a shape with run-time extents, as a scalar.
constexpr Value size(Graph& g, DType t, const Shape& counted) {
  return {&g, g.add(Op::Size, t, Shape{}, -1, -1, -1, g.intern(counted))};
}

// The NumPy rule; an extent known only at run time is never broadcast.
constexpr Shape broadcast_shapes(const Shape& a, const Shape& b) {
  Shape r;
  r.rank = (std::max)(a.rank, b.rank);
  for (int i = 1; i <= r.rank; ++i) {
    const Dim x = i <= a.rank ? a[a.rank - i] : Dim(1);
    const Dim y = i <= b.rank ? b[b.rank - i] : Dim(1);
    if (!(x == y) && !x.is(1) && !y.is(1)) throw "shapes do not broadcast";
    r[r.rank - i] = x.is(1) ? y : x;
  }
  return r;
}

constexpr Value broadcast_to(Value x, const Shape& s) {
  if (x.shape() == s) return x;
  Graph& g = *x.graph;
  if (g[x.id].op == Op::Constant) return constant(g, x.dtype(), s, constant_value(g[x.id]));
  const Shape& from = x.shape();
  for (int i = 1; i <= from.rank; ++i)
    if (i > s.rank || !(from[from.rank - i] == s[s.rank - i] || from[from.rank - i].is(1)))
      throw "broadcast_to: the shape does not broadcast to the one asked for";
  return {&g, g.add(Op::Broadcast, x.dtype(), s, x.id)};
}

constexpr Value reshape(Value x, const Shape& s) {
  if (x.shape() == s) return x;
  if (!(x.shape().size() == s.size())) throw "reshape: the number of elements changes";
  Graph& g = *x.graph;
  if (g[x.id].op == Op::Constant) return constant(g, x.dtype(), s, constant_value(g[x.id]));
  if (g[x.id].op == Op::Reshape) return reshape({&g, g[x.id].in[0]}, s);
  return {&g, g.add(Op::Reshape, x.dtype(), s, x.id)};
}

// 0, 1, 2, ... along one axis: a vector, seen through views.
constexpr Value iota(Graph& g, DType t, const Shape& s, int axis) {
  Shape along;
  for (int i = 0; i < s.rank; ++i) along.push(i == axis ? s[i] : Dim(1));
  return broadcast_to(reshape({&g, g.add(Op::Iota, t, Shape{s[axis]})}, along), s);
}

// Axis i of the result is axis permutation[i] of x.
constexpr Value transpose(Value x, const AttributeList& permutation) {
  Graph& g = *x.graph;
  Shape s;
  bool identity = true;
  for (int i = 0; i < permutation.size; ++i) {
    s.push(x.shape()[static_cast<int>(permutation[i])]);
    identity = identity && permutation[i] == i;
  }
  if (identity) return x;
  return {&g, g.add(Op::Transpose, x.dtype(), s, x.id, -1, -1, g.intern(permutation))};
}

constexpr Value swap_axes(Value x, int a, int b) {
  AttributeList p;
  for (int i = 0; i < x.rank(); ++i) p.push(i == a ? b : i == b ? a : i);
  return transpose(x, p);
}

// Elements starts[i] + j * steps[i] of axis i, for j below extents[i]; steps may be negative.
constexpr Value slice(Value x, const Shape& extents, const AttributeList& starts, const AttributeList& steps) {
  Graph& g = *x.graph;
  AttributeList a;
  bool identity = x.shape() == extents;
  for (int i = 0; i < starts.size; ++i) {
    a.push(starts[i]);
    identity = identity && starts[i] == 0 && steps[i] == 1;
  }
  for (int i = 0; i < steps.size; ++i) a.push(steps[i]);
  if (identity) return x;
  return {&g, g.add(Op::Slice, x.dtype(), extents, x.id, -1, -1, g.intern(a))};
}

// How windows move along one axis. Size 0: the axis has none.
struct WindowAxis {
  std::int64_t size = 0, step = 0, dilation = 0;  // all zero on an axis without windows (g++ 12 loses other defaults)
};

// Every window of x: element (i..., k...) is x at i * step + k * dilation along each axis that has windows. The axes of
// the positions come first, with the given extents, then one axis for each windowed axis. At most five axes.
constexpr Value window(Value x, const Shape& positions, const std::array<WindowAxis, max_rank>& windows) {
  Graph& g = *x.graph;
  if (x.rank() > 5) throw "window: a tensor has at most five axes";
  Shape s = positions;
  AttributeList a;
  for (int i = 0; i < x.rank(); ++i) {
    const WindowAxis& w = windows[static_cast<std::size_t>(i)];
    if (w.size > 0) s.push(w.size);
    a.push(w.size);
    a.push(w.size > 0 ? w.step : 1);
    a.push(w.size > 0 ? w.dilation : 1);
  }
  return {&g, g.add(Op::Window, x.dtype(), s, x.id, -1, -1, g.intern(a))};
}

// Zeros before, after and between the elements of each axis (as HLO's pad with a zero value).
constexpr Value pad(Value x, const Shape& extents, const AttributeList& before, const AttributeList& steps) {
  Graph& g = *x.graph;
  if (x.shape() == extents) return x;
  AttributeList a;
  for (int i = 0; i < before.size; ++i) a.push(before[i]);
  for (int i = 0; i < steps.size; ++i) a.push(steps[i]);
  return {&g, g.add(Op::Pad, x.dtype(), extents, x.id, -1, -1, g.intern(a))};
}

constexpr Value concat(Value a, Value b, int axis) {
  Shape s = a.shape();
  const Dim x = a.shape()[axis], y = b.shape()[axis];
  if (x.symbols != y.symbols) throw "concat: extents along the axis cannot be added";
  s[axis] = Dim(x.coefficient + y.coefficient, x.symbols);
  Graph& g = *a.graph;
  return {&g, g.add(Op::Concat, a.dtype(), s, a.id, b.id, -1, axis)};
}

constexpr Value cast(Value x, DType t) {
  if (x.dtype() == t) return x;
  Graph& g = *x.graph;
  if (g[x.id].op == Op::Constant) return constant(g, t, x.shape(), constant_value(g[x.id]));
  return {&g, g.add(Op::Cast, t, x.shape(), x.id)};
}

constexpr DType result_dtype(Op op, DType operand) {
  return (op >= Op::Less && op <= Op::NotEqual) ? DType::boolean : operand;
}

constexpr Value unary(Op op, Value x, std::int64_t attribute = 0) {
  return {x.graph, x.graph->add(op, x.dtype(), x.shape(), x.id, -1, -1, attribute)};
}

constexpr Value binary(Op op, Value a, Value b) {
  const Shape s = broadcast_shapes(a.shape(), b.shape());
  a = broadcast_to(a, s);
  b = broadcast_to(b, s);
  return {a.graph, a.graph->add(op, result_dtype(op, a.dtype()), s, a.id, b.id)};
}

constexpr Value select(Value condition, Value a, Value b) {
  const Shape s = broadcast_shapes(condition.shape(), broadcast_shapes(a.shape(), b.shape()));
  condition = broadcast_to(condition, s);
  a = broadcast_to(a, s);
  b = broadcast_to(b, s);
  return {a.graph, a.graph->add(Op::Select, a.dtype(), s, condition.id, a.id, b.id)};
}

// Reduces the axes in the mask; each stays as an extent of 1.
constexpr Value reduce(Op op, Value x, std::int64_t axes) {
  if (axes == 0) return x;
  Shape s = x.shape();
  for (int i = 0; i < s.rank; ++i)
    if ((axes >> i) & 1) s[i] = 1;
  return {x.graph, x.graph->add(op, x.dtype(), s, x.id, -1, -1, axes)};
}

constexpr Shape without_axes(const Shape& s, std::int64_t axes) {
  Shape r;
  for (int i = 0; i < s.rank; ++i)
    if (!((axes >> i) & 1)) r.push(s[i]);
  return r;
}

constexpr Shape dot_shape(const Shape& a, const Shape& b, const DotAxes& axes) {
  Shape s;
  for (int i = 0; i < axes.batch; ++i) s.push(a[axes.lhs_batch[static_cast<std::size_t>(i)]]);
  for (int i = 0; i < a.rank; ++i)
    if (axes.role(true, i) == 'f') s.push(a[i]);
  for (int i = 0; i < b.rank; ++i)
    if (axes.role(false, i) == 'f') s.push(b[i]);
  return s;
}

constexpr Value dot(Value a, Value b, const DotAxes& axes) {
  Graph& g = *a.graph;
  return {&g, g.add(Op::Dot, a.dtype(), dot_shape(a.shape(), b.shape(), axes), a.id, b.id, -1, g.intern(axes.encode()))};
}

// The sum of products of two tensors whose axes are named by characters, each once per tensor: an axis that the result
// does not name is summed, one that both operands and the result name is batched. A name that only one operand has is in
// the result.
constexpr Value labelled_dot(Value a, std::string_view la, Value b, std::string_view lb, std::string_view result) {
  DotAxes axes;
  std::array<char, 2 * max_rank> order{};
  std::size_t n = 0;
  for (std::size_t i = 0; i < la.size(); ++i) {
    const std::size_t j = lb.find(la[i]);
    if (j == std::string_view::npos) continue;
    if (result.find(la[i]) != std::string_view::npos) {
      axes.lhs_batch[static_cast<std::size_t>(axes.batch)] = static_cast<int>(i);
      axes.rhs_batch[static_cast<std::size_t>(axes.batch++)] = static_cast<int>(j);
      order[n++] = la[i];
    } else {
      axes.lhs_contract[static_cast<std::size_t>(axes.contract)] = static_cast<int>(i);
      axes.rhs_contract[static_cast<std::size_t>(axes.contract++)] = static_cast<int>(j);
    }
  }
  for (char c : la)
    if (lb.find(c) == std::string_view::npos) order[n++] = c;
  for (char c : lb)
    if (la.find(c) == std::string_view::npos) order[n++] = c;
  const std::string_view found(order.data(), n);
  const auto arrange = [](Value x, std::string_view from, std::string_view to) {
    AttributeList p;
    for (char c : to) p.push(static_cast<std::int64_t>(from.find(c)));
    return transpose(x, p);
  };
  if (axes.contract > 0) return arrange(dot(a, b, axes), found, result);
  // Nothing is summed: a product of broadcast operands is a map, not a contraction.
  const auto spread = [&](Value x, std::string_view labels) {
    std::array<char, 2 * max_rank> own{};
    std::size_t k = 0;
    Shape s;
    for (char c : result) {
      const std::size_t i = labels.find(c);
      s.push(i == std::string_view::npos ? Dim(1) : x.shape()[static_cast<int>(i)]);
      if (i != std::string_view::npos) own[k++] = c;
    }
    return reshape(arrange(x, labels, std::string_view(own.data(), k)), s);
  };
  return binary(Op::Mul, spread(a, la), spread(b, lb));
}

// NumPy's matmul for ranks of at least 2: leading axes are batched and broadcast; a right operand of rank 2 is
// shared by all batches without being copied.
constexpr Value matmul(Value a, Value b) {
  DotAxes axes;
  if (b.rank() == 2) {
    axes.contract = 1;
    axes.lhs_contract[0] = a.rank() - 1;
    axes.rhs_contract[0] = 0;
    return dot(a, b, axes);
  }
  Shape lead_a, lead_b;
  for (int i = 0; i < a.rank() - 2; ++i) lead_a.push(a.shape()[i]);
  for (int i = 0; i < b.rank() - 2; ++i) lead_b.push(b.shape()[i]);
  const Shape lead = broadcast_shapes(lead_a, lead_b);
  Shape sa = lead, sb = lead;
  for (int i = 2; i > 0; --i) {
    sa.push(a.shape()[a.rank() - i]);
    sb.push(b.shape()[b.rank() - i]);
  }
  a = broadcast_to(a, sa);
  b = broadcast_to(b, sb);
  axes.batch = lead.rank;
  for (int i = 0; i < lead.rank; ++i) axes.lhs_batch[static_cast<std::size_t>(i)] = axes.rhs_batch[static_cast<std::size_t>(i)] = i;
  axes.contract = 1;
  axes.lhs_contract[0] = lead.rank + 1;
  axes.rhs_contract[0] = lead.rank;
  return dot(a, b, axes);
}

}  // namespace build
}  // namespace tg
