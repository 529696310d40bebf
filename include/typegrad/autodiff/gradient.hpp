// Reverse-mode differentiation as a function from graph to graph (Griewank and Walther 2008, chapter 3).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "typegrad/graph/order.hpp"
#include "typegrad/ops/gather.hpp"
#include "typegrad/ops/loss.hpp"
#include "typegrad/ops/random.hpp"
#include "typegrad/ops/scan.hpp"

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
    const std::vector<std::int32_t> order = canonical_order(g, std::array{static_cast<std::int32_t>(loss)});
    std::vector<std::int32_t> sweep{static_cast<std::int32_t>(loss)};
    adjoint_[static_cast<std::size_t>(loss)] = build::constant_like({&g, loss}, 1.0).id;
    for (std::size_t i = order.size(); i-- > 0;) {
      const int id = order[i];
      if (adjoint_[static_cast<std::size_t>(id)] < 0) continue;
      propagate(id);
      const Node& n = graph_[id];
      for (int a = 0; a < arity(n.op); ++a)
        if (const int part = adjoint_[static_cast<std::size_t>(n.in[static_cast<std::size_t>(a)])]; part >= 0) sweep.push_back(part);
    }
    g.sweeps.push_back(std::move(sweep));
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
      case Op::Window: return accumulate(x.id, unwindow(g, x.shape(), AttributeList(graph_.list(id))));
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
      case Op::Gather: return accumulate(x.id, build::scatter_to(Op::ScatterAdd, g, value(n.in[1]), x.shape()));
      case Op::ScatterAdd: return accumulate(x.id, build::gather(g, value(n.in[1])));
      case Op::CumSum: return accumulate(x.id, cumsum_gradient(g, n.attribute != 0));
      case Op::LinearScan: {
        const auto parts = linear_scan_gradient(x, value(id), g, n.attribute != 0);
        accumulate(x.id, parts[0]);
        return accumulate(n.in[1], parts[1]);
      }
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

  // The adjoint of windows: for each place in a window, the gradients spread over the elements that lie there.
  constexpr Value unwindow(Value g, const Shape& to, const AttributeList& a) const {
    std::int64_t places = 1;
    for (int i = 0; i < to.rank; ++i) places *= a[3 * i] > 0 ? a[3 * i] : 1;
    Value total;
    for (std::int64_t place = 0; place < places; ++place) {
      Shape one = g.shape(), positions;
      AttributeList starts, steps, before, spread;
      std::int64_t rest = place;
      for (int i = 0, w = to.rank; i < to.rank; ++i) {
        const std::int64_t size = a[3 * i] > 0 ? a[3 * i] : 1, k = rest % size;
        rest /= size;
        before.push(k * a[3 * i + 2]);
        spread.push(a[3 * i + 1]);
        positions.push(one[i]);
        if (a[3 * i] == 0) continue;
        one[w] = 1;
        while (starts.size < w) starts.push(0);
        starts.push(k);
        ++w;
      }
      while (starts.size < one.rank) starts.push(0);
      for (int i = 0; i < one.rank; ++i) steps.push(1);
      const Value part = build::pad(build::reshape(build::slice(g, one, starts, steps), positions), to, before, spread);
      total = place == 0 ? part : build::binary(Op::Add, total, part);
    }
    return total;
  }

  // Labels for the axes of a contraction's operands and result.
  struct DotLabels {
    std::array<char, max_rank> lhs{}, rhs{}, out{};
    int ranks[3]{};
    constexpr std::string_view of(int which) const {
      return {which == 0 ? lhs.data() : which == 1 ? rhs.data() : out.data(), static_cast<std::size_t>(ranks[which])};
    }
  };
  static constexpr DotLabels label(const DotAxes& axes, int lhs_rank, int rhs_rank) {
    DotLabels l;
    l.ranks[0] = lhs_rank;
    l.ranks[1] = rhs_rank;
    char next = 'a';
    for (int k = 0; k < axes.batch; ++k, ++next) {
      const auto i = static_cast<std::size_t>(k);
      l.lhs[static_cast<std::size_t>(axes.lhs_batch[i])] = l.rhs[static_cast<std::size_t>(axes.rhs_batch[i])] = l.out[static_cast<std::size_t>(l.ranks[2]++)] = next;
    }
    for (int k = 0; k < axes.contract; ++k, ++next) {
      const auto i = static_cast<std::size_t>(k);
      l.lhs[static_cast<std::size_t>(axes.lhs_contract[i])] = l.rhs[static_cast<std::size_t>(axes.rhs_contract[i])] = next;
    }
    for (int i = 0; i < lhs_rank; ++i)
      if (l.lhs[static_cast<std::size_t>(i)] == 0) l.lhs[static_cast<std::size_t>(i)] = l.out[static_cast<std::size_t>(l.ranks[2]++)] = next++;
    for (int i = 0; i < rhs_rank; ++i)
      if (l.rhs[static_cast<std::size_t>(i)] == 0) l.rhs[static_cast<std::size_t>(i)] = l.out[static_cast<std::size_t>(l.ranks[2]++)] = next++;
    return l;
  }

  constexpr void contraction(int id, const Node& n, Value g) {
    const DotAxes axes = DotAxes::decode(graph_.list(id));
    const DotLabels labels = label(axes, value(n.in[0]).rank(), value(n.in[1]).rank());
    for (int side = 0; side < 2; ++side) {
      const Value own = value(n.in[static_cast<std::size_t>(side)]), other = value(n.in[static_cast<std::size_t>(1 - side)]);
      const Op op = graph_[own.id].op;
      if (op == Op::Window && moves_freely(own, labels, side)) window_gradient(own, other, g, labels, side);
      else if (op == Op::Broadcast) broadcast_gradient(own, other, g, labels, side);
      else accumulate(own.id, product(g, labels.of(2), other, labels.of(1 - side), labels.of(side), side));
    }
  }
  // The gradient's factors in the order in which the operands were.
  static constexpr Value product(Value g, std::string_view g_labels, Value other, std::string_view other_labels, std::string_view result, int side) {
    return side == 0 ? build::labelled_dot(g, g_labels, other, other_labels, result) : build::labelled_dot(other, other_labels, g, g_labels, result);
  }

  // Batched axes along which the operand was broadcast are summed by the same contraction.
  constexpr void broadcast_gradient(Value own, Value other, Value g, const DotLabels& labels, int side) {
    const Value x = value(graph_[own.id].in[0]);
    std::array<char, max_rank> kept{};
    std::size_t n = 0;
    Shape s;
    for (int i = 0; i < own.rank(); ++i) {
      const char c = labels.of(side)[static_cast<std::size_t>(i)];
      const int j = i - (own.rank() - x.rank());
      const bool widened = j < 0 || !(x.shape()[j] == own.shape()[i]);
      const bool batched = labels.of(2).find(c) != std::string_view::npos && labels.of(1 - side).find(c) != std::string_view::npos;
      if (widened && batched) {
        if (j >= 0) s.push(1);
        continue;
      }
      kept[n++] = c;
      s.push(own.shape()[i]);
    }
    const Value d = product(g, labels.of(2), other, labels.of(1 - side), std::string_view(kept.data(), n), side);
    accumulate(x.id, sum_to(build::reshape(d, s), x.shape()));
  }

  // Whether the operand's windows are summed over and their positions are not: a convolution.
  constexpr bool moves_freely(Value own, const DotLabels& labels, int side) const {
    const AttributeList& a = graph_.list(own.id);
    const int rank = value(graph_[own.id].in[0]).rank();
    const std::string_view mine = labels.of(side), result = labels.of(2), theirs = labels.of(1 - side);
    for (int i = 0, w = rank; i < rank; ++i) {
      if (a[3 * i] == 0) continue;
      const char position = mine[static_cast<std::size_t>(i)], place = mine[static_cast<std::size_t>(w++)];
      if (result.find(position) == std::string_view::npos || theirs.find(position) != std::string_view::npos || result.find(place) != std::string_view::npos)
        return false;
    }
    return true;
  }

  // The gradient of a convolution in what its windows move over is a convolution of the gradient, spread by the step and
  // padded, with the other operand reversed (Dumoulin and Visin 2016, section 4).
  constexpr void window_gradient(Value own, Value other, Value g, const DotLabels& labels, int side) {
    const Value x = value(graph_[own.id].in[0]);
    const AttributeList a = graph_.list(own.id);
    const std::string_view mine = labels.of(side), result = labels.of(2), theirs = labels.of(1 - side);
    const int rank = x.rank();
    Shape padded = g.shape(), positions;
    AttributeList before, spread, starts, steps;
    std::array<build::WindowAxis, max_rank> windows{};
    std::array<char, 2 * max_rank> g_labels{};
    std::size_t count = 0;
    for (int i = 0; i < g.rank(); ++i) {
      before.push(0);
      spread.push(1);
      g_labels[count++] = result[static_cast<std::size_t>(i)];
    }
    for (int i = 0; i < other.rank(); ++i) {
      starts.push(0);
      steps.push(1);
    }
    positions = g.shape();
    // Windows of the result appear in the order of g's axes, which is that of x's among them.
    for (int at = 0; at < g.rank(); ++at)
      for (int i = 0, w = rank; i < rank; ++i) {
        if (a[3 * i] == 0) continue;
        const char place = mine[static_cast<std::size_t>(w++)];
        if (mine[static_cast<std::size_t>(i)] != result[static_cast<std::size_t>(at)]) continue;
        const std::int64_t size = a[3 * i], step = a[3 * i + 1], dilation = a[3 * i + 2];
        const Dim extent = x.shape()[i];
        if (!extent.is_static()) throw "typegrad: windows move along static axes";
        padded[at] = extent.coefficient + (size - 1) * dilation;
        positions[at] = extent;
        before.values[static_cast<std::size_t>(at)] = (size - 1) * dilation;
        spread.values[static_cast<std::size_t>(at)] = step;
        windows[static_cast<std::size_t>(at)] = {size, 1, dilation};
        g_labels[count++] = place;
        const auto flipped = static_cast<std::size_t>(theirs.find(place));
        starts.values[flipped] = size - 1;
        steps.values[flipped] = -1;
      }
    const Value moving = build::window(build::pad(g, padded, before, spread), positions, windows);
    const Value reversed = build::slice(other, other.shape(), starts, steps);
    accumulate(x.id, product(moving, std::string_view(g_labels.data(), count), reversed, theirs, mine.substr(0, static_cast<std::size_t>(rank)), side));
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
