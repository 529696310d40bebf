// simplify: constant folding, algebraic identities, common and dead subexpression elimination. Graph -> Graph.
//
// No rule may turn a finite result into NaN: x * 0 stays, since x may be infinite, and nothing is reassociated.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "typegrad/expr/value.hpp"
#include "typegrad/graph/order.hpp"

namespace tg {

// Removes the nodes no output depends on. Inputs stay, so that positions keep their meaning.
constexpr Graph eliminate_dead(const Graph& g) {
  std::vector<char> live(g.nodes.size(), 0);
  for (int o : g.outputs) live[static_cast<std::size_t>(o)] = 1;
  for (int i = g.size() - 1; i >= 0; --i) {
    if (g[i].op == Op::Input) live[static_cast<std::size_t>(i)] = 1;
    if (live[static_cast<std::size_t>(i)])
      for (int a = 0; a < arity(g[i].op); ++a) live[static_cast<std::size_t>(g[i].in[static_cast<std::size_t>(a)])] = 1;
  }
  Graph r;
  r.shapes = g.shapes;
  r.attributes = g.attributes;
  r.symbols = g.symbols;
  std::vector<std::int32_t> to(g.nodes.size(), -1);
  for (int i = 0; i < g.size(); ++i) {
    if (!live[static_cast<std::size_t>(i)]) continue;
    Node n = g[i];
    for (int a = 0; a < arity(n.op); ++a) n.in[static_cast<std::size_t>(a)] = to[static_cast<std::size_t>(n.in[static_cast<std::size_t>(a)])];
    to[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(r.push(n));
  }
  for (std::int32_t o : g.outputs) r.outputs.push_back(to[static_cast<std::size_t>(o)]);
  r.donors = g.donors;
  return r;
}

namespace detail {

class Simplifier {
 public:
  constexpr explicit Simplifier(const Graph& g) {
    out_.shapes = g.shapes;
    out_.attributes = g.attributes;
    out_.symbols = g.symbols;
    out_.donors = g.donors;
    std::size_t capacity = 16;
    while (capacity < 4 * g.nodes.size()) capacity *= 2;
    table_.assign(capacity, -1);
    std::vector<int> to(g.nodes.size(), -1);
    for (int i = 0; i < g.size(); ++i)
      if (g[i].op == Op::Input) to[static_cast<std::size_t>(i)] = out_.push(g[i]);
    for (const std::int32_t i : canonical_order(g, g.outputs)) {
      Node n = g[i];
      if (n.op == Op::Input) continue;
      for (int a = 0; a < arity(n.op); ++a) n.in[static_cast<std::size_t>(a)] = to[static_cast<std::size_t>(n.in[static_cast<std::size_t>(a)])];
      to[static_cast<std::size_t>(i)] = emit(n);
    }
    for (int o : g.outputs) out_.outputs.push_back(to[static_cast<std::size_t>(o)]);
  }
  constexpr Graph take() { return eliminate_dead(out_); }

 private:
  constexpr const Node& node(int id) const { return out_[id]; }
  constexpr bool is_constant(int id) const { return node(id).op == Op::Constant; }
  constexpr bool is_constant(int id, double v) const { return is_constant(id) && constant_value(node(id)) == v; }

  // The node's replacement by the rules, or the node itself, entered once.
  constexpr int emit(Node n) {
    const int simple = n.op >= Op::Neg ? rewrite(n) : -1;
    return simple >= 0 ? simple : enter(n);
  }

  constexpr int enter(const Node& n) {
    std::uint64_t h = 1469598103934665603u;
    for (std::uint64_t v : {static_cast<std::uint64_t>(n.op), static_cast<std::uint64_t>(n.dtype),
                            static_cast<std::uint64_t>(n.shape), static_cast<std::uint64_t>(n.in[0] + 1),
                            static_cast<std::uint64_t>(n.in[1] + 1), static_cast<std::uint64_t>(n.in[2] + 1),
                            static_cast<std::uint64_t>(n.attribute)})
      h = (h ^ v ^ (v >> 32)) * 1099511628211u;
    if (2 * static_cast<std::size_t>(out_.size()) >= table_.size()) grow();
    std::size_t at = (h ^ (h >> 29)) & (table_.size() - 1);
    while (table_[at] >= 0 && !(out_[table_[at]] == n && hashes_[static_cast<std::size_t>(table_[at])] == h))
      at = (at + 1) & (table_.size() - 1);
    if (table_[at] < 0) {
      table_[at] = out_.push(n);
      hashes_.resize(out_.nodes.size(), 0);
      hashes_.back() = h;
    }
    return table_[at];
  }

  constexpr void grow() {
    table_.assign(2 * table_.size(), -1);
    hashes_.resize(out_.nodes.size(), 0);
    for (int i = 0; i < out_.size(); ++i) {
      const std::uint64_t h = hashes_[static_cast<std::size_t>(i)];
      std::size_t at = (h ^ (h >> 29)) & (table_.size() - 1);
      while (table_[at] >= 0) at = (at + 1) & (table_.size() - 1);
      table_[at] = i;
    }
  }

  constexpr int constant(const Node& like, double v) {
    return enter({Op::Constant, like.dtype, like.shape, {-1, -1, -1}, constant_bits(like.dtype, v)});
  }

  constexpr int rewrite(const Node& n) {
    const int a = n.in[0], b = n.in[1], c = n.in[2];
    switch (n.op) {
      case Op::StopGradient: return a;
      case Op::Add:
        if (is_constant(b, 0.0)) return a;
        if (is_constant(a, 0.0)) return b;
        break;
      case Op::Sub:
        if (is_constant(b, 0.0)) return a;
        break;
      case Op::Mul:
        if (is_constant(b, 1.0)) return a;
        if (is_constant(a, 1.0)) return b;
        if (is_constant(b, -1.0)) return emit({Op::Neg, n.dtype, n.shape, {a, -1, -1}, 0});
        if (is_constant(a, -1.0)) return emit({Op::Neg, n.dtype, n.shape, {b, -1, -1}, 0});
        if (is_constant(a) && !is_constant(b)) return emit({Op::Mul, n.dtype, n.shape, {b, a, -1}, 0});
        break;
      case Op::Div:
        if (is_constant(b, 1.0)) return a;
        break;
      case Op::Neg:
        if (node(a).op == Op::Neg) return node(a).in[0];
        break;
      case Op::Pow:
        if (is_constant(b, 1.0)) return a;
        if (is_constant(b, 2.0)) return emit({Op::Mul, n.dtype, n.shape, {a, a, -1}, 0});
        break;
      case Op::Select:
        if (b == c) return b;
        // A gradient masked twice by one condition.
        if (node(b).op == Op::Select && node(b).in[0] == a)
          return emit({Op::Select, n.dtype, n.shape, {a, node(b).in[1], c}, 0});
        if (node(c).op == Op::Select && node(c).in[0] == a)
          return emit({Op::Select, n.dtype, n.shape, {a, b, node(c).in[2]}, 0});
        break;
      case Op::Cast:
        if (node(a).dtype == n.dtype) return a;
        break;
      case Op::Broadcast:
        if (node(a).shape == n.shape) return a;
        if (is_constant(a)) return constant(n, constant_value(node(a)));
        if (node(a).op == Op::Broadcast) return emit({Op::Broadcast, n.dtype, n.shape, {node(a).in[0], -1, -1}, 0});
        break;
      case Op::Reshape:
        if (node(a).shape == n.shape) return a;
        if (is_constant(a)) return constant(n, constant_value(node(a)));
        if (node(a).op == Op::Reshape) return emit({Op::Reshape, n.dtype, n.shape, {node(a).in[0], -1, -1}, 0});
        break;
      case Op::Transpose: return rewrite_transpose(n);
      case Op::Slice:
      case Op::Window:
        if (is_constant(a)) return constant(n, constant_value(node(a)));
        break;
      case Op::ReduceSum:
      case Op::ReduceProd:
      case Op::ReduceMax:
      case Op::ReduceMin:
        if (node(a).shape == n.shape) return a;
        break;
      case Op::Gather:
        if (is_constant(a)) return constant(n, constant_value(node(a)));
        return -1;
      case Op::Dot: return rewrite_dot(n);
      default: break;
    }
    return fold(n);
  }

  constexpr int rewrite_transpose(const Node& n) {
    const int a = n.in[0];
    const AttributeList p = out_.attributes[static_cast<std::size_t>(n.attribute)];
    bool identity = true;
    for (int i = 0; i < p.size; ++i) identity = identity && p[i] == i;
    if (identity) return a;
    if (is_constant(a)) return constant(n, constant_value(node(a)));
    if (node(a).op == Op::Transpose) {
      const AttributeList inner = out_.list(a);
      AttributeList both;
      for (int i = 0; i < p.size; ++i) both.push(inner[static_cast<int>(p[i])]);
      return emit({Op::Transpose, n.dtype, n.shape, {node(a).in[0], -1, -1}, out_.intern(both)});
    }
    // The transpose of a product is the product of the exchanged operands: it can be written in its final layout.
    if (node(a).op == Op::Dot) {
      const DotAxes axes = DotAxes::decode(out_.list(a));
      const int lhs = node(a).in[0], rhs = node(a).in[1];
      const int lhs_free = out_.shape(lhs).rank - axes.batch - axes.contract;
      const int rhs_free = out_.shape(rhs).rank - axes.batch - axes.contract;
      bool exchanged = true;
      for (int i = 0; i < p.size; ++i) {
        const int expected = i < axes.batch ? i : i < axes.batch + rhs_free ? i + lhs_free : i - rhs_free;
        exchanged = exchanged && p[i] == expected;
      }
      if (exchanged) {
        DotAxes swapped = axes;
        std::swap(swapped.lhs_batch, swapped.rhs_batch);
        std::swap(swapped.lhs_contract, swapped.rhs_contract);
        return emit({Op::Dot, n.dtype, n.shape, {rhs, lhs, -1}, out_.intern(swapped.encode())});
      }
    }
    return -1;
  }

  // Reads a transposed operand through its axes rather than through a view.
  constexpr int rewrite_dot(const Node& n) {
    for (int side = 0; side < 2; ++side) {
      const int x = n.in[static_cast<std::size_t>(side)];
      if (node(x).op != Op::Transpose) continue;
      const AttributeList p = out_.list(x);
      DotAxes axes = DotAxes::decode(out_.attributes[static_cast<std::size_t>(n.attribute)]);
      int last_free = -1;
      bool ordered = true;  // the free axes must keep their order, for they make the result's
      for (int i = 0; i < p.size; ++i)
        if (axes.role(side == 0, i) == 'f') {
          ordered = ordered && p[i] > last_free;
          last_free = static_cast<int>(p[i]);
        }
      if (!ordered) continue;
      for (int i = 0; i < axes.batch; ++i) {
        int& axis = (side == 0 ? axes.lhs_batch : axes.rhs_batch)[static_cast<std::size_t>(i)];
        axis = static_cast<int>(p[axis]);
      }
      for (int i = 0; i < axes.contract; ++i) {
        int& axis = (side == 0 ? axes.lhs_contract : axes.rhs_contract)[static_cast<std::size_t>(i)];
        axis = static_cast<int>(p[axis]);
      }
      Node m = n;
      m.in[static_cast<std::size_t>(side)] = node(x).in[0];
      m.attribute = out_.intern(axes.encode());
      return emit(m);
    }
    return -1;
  }

  // Arithmetic on constants, where it is exact in the result's type or rounds to it once.
  constexpr int fold(const Node& n) {
    if (!is_elementwise(n.op) || n.op == Op::CheckIndex) return -1;
    double v[3] = {0, 0, 0};
    for (int i = 0; i < arity(n.op); ++i) {
      const int x = n.in[static_cast<std::size_t>(i)];
      if (!is_constant(x)) return -1;
      v[i] = constant_value(node(x));
      // Infinities, NaN and integers that a double does not hold are left to the back end.
      if (!(v[i] < 1e15 && v[i] > -1e15)) return -1;
    }
    switch (n.op) {
      case Op::Add: return constant(n, rounded(n.dtype, v[0] + v[1]));
      case Op::Sub: return constant(n, rounded(n.dtype, v[0] - v[1]));
      case Op::Mul: return is_floating(n.dtype) ? constant(n, rounded(n.dtype, v[0] * v[1])) : -1;
      case Op::Div: return is_floating(n.dtype) && v[1] != 0 ? constant(n, rounded(n.dtype, v[0] / v[1])) : -1;
      case Op::Neg: return constant(n, -v[0]);
      case Op::Less: return constant(n, v[0] < v[1]);
      case Op::LessEqual: return constant(n, v[0] <= v[1]);
      case Op::Equal: return constant(n, v[0] == v[1]);
      case Op::NotEqual: return constant(n, v[0] != v[1]);
      case Op::Select: return constant(n, v[0] != 0 ? v[1] : v[2]);
      default: return -1;
    }
  }

  static constexpr double rounded(DType t, double v) {
    if (t != DType::f32 && t != DType::bf16 && t != DType::f16) return v;
    const double magnitude = v < 0 ? -v : v;
    if (magnitude < 1e-30 && magnitude > 0) return v;
    if (magnitude > 1e30) return v;
    const float f = static_cast<float>(v);
    if (t == DType::bf16) return static_cast<double>(static_cast<float>(bf16(f)));
    if (t == DType::f16 && magnitude < 6e4) return static_cast<double>(static_cast<float>(f16(f)));
    return static_cast<double>(f);
  }

  Graph out_;
  std::vector<int> table_;
  std::vector<std::uint64_t> hashes_;
};

}  // namespace detail

constexpr Graph simplify(const Graph& g) { return detail::Simplifier(g).take(); }

}  // namespace tg
