// Reverse-mode differentiation as a function from graph to graph (Griewank and Walther 2008, chapter 3).
#pragma once

#include <utility>
#include <vector>

#include "typegrad/ops/loss.hpp"

namespace tg {
namespace detail {

using GradientRule = Value (*)(int, Value, const Operands&, Value);

// The rules of the element-wise primitives, by op code.
inline constexpr auto gradient_rules = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<GradientRule, sizeof...(I)>{[](int operand, Value g, const Operands& in, Value out) {
    return Primitive<static_cast<Op>(static_cast<std::size_t>(Op::Neg) + I)>::gradient(operand, g, in, out);
  }...};
}(std::make_index_sequence<static_cast<std::size_t>(Op::Select) - static_cast<std::size_t>(Op::Neg) + 1>{});

constexpr bool is_zero(const Graph& g, int id) { return g[id].op == Op::Constant && constant_value(g[id]) == 0.0; }

// A gradient of the form select(condition, value, 0) or select(condition, 0, value).
struct Mask {
  int condition = -1;
  bool taken = true;
  bool operator==(const Mask&) const = default;
};

class Reverse {
 public:
  constexpr Reverse(Graph& g, int loss) : graph_(g), adjoint_(static_cast<std::size_t>(g.size()), -1) {
    const int end = g.size();
    adjoint_[static_cast<std::size_t>(loss)] = build::constant_like({&g, loss}, 1.0).id;
    for (int id = end - 1; id >= 0; --id)
      if (adjoint_[static_cast<std::size_t>(id)] >= 0) propagate(id);
  }

  // The gradient of the loss in the node; zeros if the loss does not depend on it.
  constexpr Value of(int id) const {
    const int a = adjoint_[static_cast<std::size_t>(id)];
    return a >= 0 ? Value{&graph_, a} : build::constant_like({&graph_, id}, 0.0);
  }

 private:
  constexpr Value value(int id) const { return {&graph_, id}; }

  constexpr Mask mask_of(int id) const {
    const Node& n = graph_[id];
    if (n.op != Op::Select) return {};
    if (is_zero(graph_, n.in[2])) return {n.in[0], true};
    if (is_zero(graph_, n.in[1])) return {n.in[0], false};
    return {};
  }
  constexpr Value unmasked(int id) const { return value(graph_[id].in[mask_of(id).taken ? 1 : 2]); }
  constexpr Value masked(Mask m, Value v) const {
    return m.taken ? build::select(value(m.condition), v, build::constant_like(v, 0.0))
                   : build::select(value(m.condition), build::constant_like(v, 0.0), v);
  }

  constexpr void accumulate(int id, Value part) {
    if (part.graph == nullptr || is_zero(graph_, part.id)) return;
    int& a = adjoint_[static_cast<std::size_t>(id)];
    if (a < 0) {
      a = part.id;
      return;
    }
    // Two parts under one mask stay masked, so that the mask keeps moving outward.
    const Mask m = mask_of(a), n = mask_of(part.id);
    if (m.condition >= 0 && m.condition == n.condition && m.taken == n.taken)
      a = masked(m, build::binary(Op::Add, unmasked(a), unmasked(part.id))).id;
    else
      a = build::binary(Op::Add, value(a), part).id;
  }

  constexpr void propagate(int id) {
    const Node n = graph_[id];
    const Value g = value(adjoint_[static_cast<std::size_t>(id)]);
    if (!is_floating(n.dtype)) return;
    if (is_elementwise(n.op)) return elementwise(id, n, g);
    const Value x = value(n.in[0]);
    switch (n.op) {
      case Op::Broadcast: return accumulate(x.id, sum_to(g, x.shape()));
      case Op::Reshape: return accumulate(x.id, build::reshape(g, x.shape()));
      case Op::Transpose: {
        const AttributeList p = graph_.list(id);
        AttributeList inverse = p;
        for (int i = 0; i < p.size; ++i) inverse.values[static_cast<std::size_t>(p[i])] = i;
        return accumulate(x.id, build::transpose(g, inverse));
      }
      case Op::Slice: return accumulate(x.id, unslice(g, x.shape(), AttributeList(graph_.list(id))));
      case Op::Pad: {
        const AttributeList a = graph_.list(id);
        AttributeList before, steps;
        for (int i = 0; i < x.rank(); ++i) {
          before.push(a[i]);
          steps.push(a[x.rank() + i]);
        }
        return accumulate(x.id, build::slice(g, x.shape(), before, steps));
      }
      case Op::Concat: {
        const int axis = static_cast<int>(n.attribute);
        accumulate(x.id, part_of(g, x.shape(), axis, 0));
        return accumulate(n.in[1], part_of(g, Shape(graph_.shape(n.in[1])), axis, x.shape()[axis].coefficient));
      }
      case Op::ReduceSum: return accumulate(x.id, build::broadcast_to(g, x.shape()));
      case Op::ReduceMax:
      case Op::ReduceMin: {
        const Value hit = x == build::broadcast_to(value(id), x.shape());
        const Value ties = build::reduce(Op::ReduceSum, build::cast(hit, n.dtype), n.attribute);
        return accumulate(x.id, where(hit, build::broadcast_to(g / ties, x.shape()), 0.0));
      }
      case Op::ReduceProd: return accumulate(x.id, product_gradient(x, value(id), g, n.attribute));
      case Op::Dot: return contraction(id, n, g);
      default: return;
    }
  }

  constexpr void elementwise(int id, const Node& n, Value g) {
    const Mask m = mask_of(g.id);
    // The rule sees the gradient without its mask and the mask is put around what it gives: zero stays zero
    // however infinite the derivative is (tests/autodiff/test_masks.cpp).
    const bool carry = m.condition >= 0 && n.op != Op::Select;
    const Value seed = carry ? unmasked(g.id) : g;
    Operands in;
    for (int i = 0; i < arity(n.op); ++i) in[static_cast<std::size_t>(i)] = value(n.in[static_cast<std::size_t>(i)]);
    for (int i = 0; i < arity(n.op); ++i) {
      if (!is_floating(in[static_cast<std::size_t>(i)].dtype())) continue;
      const Value part = gradient_rules[static_cast<std::size_t>(n.op) - static_cast<std::size_t>(Op::Neg)](i, seed, in, value(id));
      accumulate(in[static_cast<std::size_t>(i)].id, carry && part.graph != nullptr ? masked(m, part) : part);
    }
  }

  // The adjoint of a broadcast.
  constexpr Value sum_to(Value g, const Shape& to) const {
    const Shape from = g.shape();
    std::int64_t axes = 0;
    for (int i = 0; i < from.rank; ++i) {
      const int j = i - (from.rank - to.rank);
      if (j < 0 || !(to[j] == from[i])) axes |= std::int64_t{1} << i;
    }
    return build::reshape(build::reduce(Op::ReduceSum, g, axes), to);
  }

  constexpr Value part_of(Value g, const Shape& extents, int axis, std::int64_t start) const {
    AttributeList starts, steps;
    for (int i = 0; i < extents.rank; ++i) {
      starts.push(i == axis ? start : 0);
      steps.push(1);
    }
    return build::slice(g, extents, starts, steps);
  }

  // The adjoint of a slice: its elements spread over zeros. A negative step is a reversal first.
  constexpr Value unslice(Value g, const Shape& to, const AttributeList& a) const {
    const int rank = to.rank;
    AttributeList starts, steps, before, spread;
    for (int i = 0; i < rank; ++i) {
      const std::int64_t start = a[i], step = a[rank + i];
      const std::int64_t last = g.shape()[i].coefficient - 1;
      starts.push(step < 0 ? last : 0);
      steps.push(step < 0 ? -1 : 1);
      before.push(step < 0 ? start + step * last : start);
      spread.push(step < 0 ? -step : step);
    }
    return build::pad(build::slice(g, g.shape(), starts, steps), to, before, spread);
  }

  // Right where factors are 0, which out / x is not.
  constexpr Value product_gradient(Value x, Value out, Value g, std::int64_t axes) const {
    const Value zero = x == 0.0;
    const Value zeros = build::broadcast_to(build::reduce(Op::ReduceSum, build::cast(zero, x.dtype()), axes), x.shape());
    const Value others = build::broadcast_to(build::reduce(Op::ReduceProd, where(zero, 1.0, x), axes), x.shape());
    const Value whole = build::broadcast_to(out, x.shape());
    return build::broadcast_to(g, x.shape()) *
           where(zero, where(zeros == 1.0, others, 0.0), where(zeros == 0.0, whole / where(zero, 1.0, x), 0.0));
  }

  constexpr void contraction(int id, const Node& n, Value g) {
    const Value a = value(n.in[0]), b = value(n.in[1]);
    const DotAxes axes = DotAxes::decode(graph_.list(id));
    const int lhs_free = a.rank() - axes.batch - axes.contract, rhs_free = b.rank() - axes.batch - axes.contract;

    DotAxes left;  // g · b over the free axes of b
    left.batch = axes.batch;
    left.contract = rhs_free;
    for (int i = 0; i < axes.batch; ++i) {
      left.lhs_batch[static_cast<std::size_t>(i)] = i;
      left.rhs_batch[static_cast<std::size_t>(i)] = axes.rhs_batch[static_cast<std::size_t>(i)];
    }
    for (int i = 0, k = 0; i < b.rank(); ++i)
      if (axes.role(false, i) == 'f') {
        left.lhs_contract[static_cast<std::size_t>(k)] = axes.batch + lhs_free + k;
        left.rhs_contract[static_cast<std::size_t>(k++)] = i;
      }
    accumulate(a.id, arrange(build::dot(g, b, left), a.rank(), axes, true));

    DotAxes right;  // a · g over the free axes of a
    right.batch = axes.batch;
    right.contract = lhs_free;
    for (int i = 0; i < axes.batch; ++i) {
      right.lhs_batch[static_cast<std::size_t>(i)] = axes.lhs_batch[static_cast<std::size_t>(i)];
      right.rhs_batch[static_cast<std::size_t>(i)] = i;
    }
    for (int i = 0, k = 0; i < a.rank(); ++i)
      if (axes.role(true, i) == 'f') {
        right.lhs_contract[static_cast<std::size_t>(k)] = i;
        right.rhs_contract[static_cast<std::size_t>(k)] = axes.batch + k;
        ++k;
      }
    accumulate(b.id, arrange(build::dot(a, g, right), b.rank(), axes, false));
  }

  // Brings the axes of an operand's gradient into the operand's order. For the left operand they come as (batched,
  // free, contracted in the right operand's order), for the right one as (batched, contracted in the left operand's
  // order, free).
  constexpr Value arrange(Value v, int rank, const DotAxes& axes, bool lhs) const {
    AttributeList p;
    for (int axis = 0; axis < rank; ++axis) {
      const char role = axes.role(lhs, axis);
      int at = 0;
      if (role == 'b') {
        while ((lhs ? axes.lhs_batch : axes.rhs_batch)[static_cast<std::size_t>(at)] != axis) ++at;
      } else if (role == 'f') {
        for (int i = 0; i < axis; ++i) at += axes.role(lhs, i) == 'f';
        at += axes.batch + (lhs ? 0 : axes.contract);
      } else {
        int pair = 0;
        while ((lhs ? axes.lhs_contract : axes.rhs_contract)[static_cast<std::size_t>(pair)] != axis) ++pair;
        const auto& theirs = lhs ? axes.rhs_contract : axes.lhs_contract;
        for (int i = 0; i < axes.contract; ++i)
          at += theirs[static_cast<std::size_t>(i)] < theirs[static_cast<std::size_t>(pair)];
        at += lhs ? rank - axes.contract : axes.batch;
      }
      p.push(at);
    }
    return build::transpose(v, p);
  }

  Graph& graph_;
  std::vector<int> adjoint_;
};

}  // namespace detail

// The gradients of a scalar loss in each of the nodes, appended to the graph. Linear in the size of the graph.
constexpr std::vector<Value> gradient(Value loss, const std::vector<int>& wrt) {
  if (loss.rank() != 0) throw "gradient: the loss is not a scalar";
  if (!is_floating(loss.dtype())) throw "gradient: the loss is not floating";
  const detail::Reverse reverse(*loss.graph, loss.id);
  std::vector<Value> r;
  for (int id : wrt) r.push_back(reverse.of(id));
  return r;
}

}  // namespace tg
