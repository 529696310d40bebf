// The oracle: evaluates a graph node by node with plain loops. Floating values are computed and accumulated in double
// and rounded to their dtype once per node; integers are int64, wrapped to their dtype.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "typegrad/autodiff/gradient.hpp"
#include "typegrad/backends/reference/routines.hpp"
#include "typegrad/graph/graph.hpp"
#include "typegrad/runtime/error.hpp"

namespace tg::reference {

namespace detail {

// Calls the meaning of an element-wise op on scalars of one type.
template <class T>
T compute(Op op, T a, T b) {
  T r{};
  bool found = false;
  auto one = [&]<Op O>() {
    if (O != op) return;
    found = true;
    if constexpr (O == Op::And || O == Op::Or || O == Op::Not) {
      if constexpr (O == Op::Not) r = static_cast<T>(Primitive<O>::apply(a != T{0}));
      else r = static_cast<T>(Primitive<O>::apply(a != T{0}, b != T{0}));
    } else if constexpr (O != Op::Cast && O != Op::Select) {
      constexpr bool integer_only = O == Op::RandomBits;
      constexpr bool real_only = (O >= Op::Exp && O <= Op::Sigmoid) || (O >= Op::Floor && O <= Op::Trunc) ||
                                 O == Op::Pow || O == Op::Atan2;
      if constexpr (std::is_floating_point_v<T> ? !integer_only : !real_only) {
        if constexpr (O < Op::Add) r = static_cast<T>(Primitive<O>::apply(a));
        else r = static_cast<T>(Primitive<O>::apply(a, b));
      }
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one.template operator()<static_cast<Op>(static_cast<std::size_t>(Op::Neg) + I)>(), ...);
  }(std::make_index_sequence<static_cast<std::size_t>(Op::Select) - static_cast<std::size_t>(Op::Neg)>{});
  if (!found) throw Error(tg::detail::concat_text("reference: no meaning for ", name(op)));
  return r;
}

}  // namespace detail

class Interpreter {
 public:
  // inputs[i] is bound to the Input node with attribute i; run-time extents are taken from them and must agree.
  Interpreter(const Graph& g, std::vector<Array> inputs) : g_(g), inputs_(std::move(inputs)) {
    extents_.assign(g.symbols.size(), -1);
    for (int id = 0; id < g.size(); ++id)
      if (g[id].op == Op::Input) bind(id);
    for (int id = 0; id < g.size(); ++id) values_.push_back(evaluate(id));
  }
  const Array& value(int id) const { return values_[static_cast<std::size_t>(id)]; }
  std::vector<Array> outputs() const {
    std::vector<Array> r;
    for (int o : g_.outputs) r.push_back(value(o));
    return r;
  }

 private:
  void bind(int id) {
    const auto position = static_cast<std::size_t>(g_[id].attribute);
    if (position >= inputs_.size()) throw Error(tg::detail::concat_text("reference: input ", position, " is missing"));
    const Array& a = inputs_[position];
    const Shape& s = g_.shape(id);
    if (a.dtype != g_[id].dtype || static_cast<int>(a.shape.size()) != s.rank)
      throw Error(tg::detail::concat_text("input ", position, ": expected ", name(g_[id].dtype), " of rank ", s.rank,
                                          ", found ", name(a.dtype), " of rank ", a.shape.size()));
    for (int i = 0; i < s.rank; ++i) {
      const std::int64_t found = a.shape[static_cast<std::size_t>(i)];
      if (!s[i].is_static() && s[i].coefficient == 1 && (s[i].symbols >> 8) == 0) {
        std::int64_t& e = extents_[s[i].symbols - 1];
        if (e < 0) e = found;
        if (e != found)
          throw Error(tg::detail::concat_text("input ", position, ", axis ", i, ": extent '",
                                              g_.symbols[s[i].symbols - 1].view(), "' is ", found, " here and ", e,
                                              " elsewhere"));
      } else if (s[i].is_static() && s[i].coefficient != found) {
        throw Error(tg::detail::concat_text("input ", position, ", axis ", i, ": expected extent ", s[i].coefficient,
                                            ", found ", found));
      }
    }
  }

  std::vector<std::int64_t> shape_of(int id) const {
    std::vector<std::int64_t> r;
    for (int i = 0; i < g_.shape(id).rank; ++i) r.push_back(g_.shape(id)[i].evaluate(extents_.data()));
    return r;
  }
  Array blank(int id) const { return reference::blank(g_[id].dtype, shape_of(id)); }
  static void set(Array& a, std::int64_t i, double v) { a.real[static_cast<std::size_t>(i)] = detail::round_to(a.dtype, v); }
  static void set(Array& a, std::int64_t i, std::int64_t v) { a.integer[static_cast<std::size_t>(i)] = detail::wrap_to(a.dtype, v); }
  static void copy(Array& to, std::int64_t i, const Array& from, std::int64_t j) {
    if (is_floating(from.dtype)) to.real[static_cast<std::size_t>(i)] = from.real[static_cast<std::size_t>(j)];
    else to.integer[static_cast<std::size_t>(i)] = from.integer[static_cast<std::size_t>(j)];
  }

  // The index along each axis of element i, and back.
  static std::vector<std::int64_t> unravel(std::int64_t i, const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> x(shape.size());
    for (std::size_t k = shape.size(); k-- > 0; i /= shape[k]) x[k] = i % shape[k];
    return x;
  }
  static std::int64_t ravel(const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& shape) {
    std::int64_t i = 0;
    for (std::size_t k = 0; k < shape.size(); ++k) i = i * shape[k] + x[k];
    return i;
  }

  const Array& operand(int id, int i) const { return value(g_[id].in[static_cast<std::size_t>(i)]); }

  Array evaluate(int id) const {
    const Node& n = g_[id];
    if (is_elementwise(n.op)) return elementwise(id);
    if (is_reduction(n.op)) return reduction(id);
    if (is_routine(n.op)) {
      std::vector<const Array*> in;
      for (int a = 0; a < arity(n.op); ++a) in.push_back(&operand(id, a));
      return run_routine(n.op, n.attribute, in, n.dtype, shape_of(id));
    }
    Array r = blank(id);
    const std::int64_t size = r.size();
    switch (n.op) {
      case Op::Input: return inputs_[static_cast<std::size_t>(n.attribute)];
      case Op::Constant:
        for (std::int64_t i = 0; i < size; ++i) {
          if (is_floating(n.dtype)) set(r, i, constant_value(n));
          else set(r, i, n.attribute);
        }
        return r;
      case Op::Size: {
        const std::int64_t count = g_.shapes[static_cast<std::size_t>(n.attribute)].size().evaluate(extents_.data());
        if (is_floating(n.dtype)) set(r, 0, static_cast<double>(count));
        else set(r, 0, count);
        return r;
      }
      case Op::Iota:
        for (std::int64_t i = 0; i < size; ++i) {
          if (is_floating(n.dtype)) set(r, i, static_cast<double>(i));
          else set(r, i, i);
        }
        return r;
      case Op::Concat: {
        const Array &a = operand(id, 0), &b = operand(id, 1);
        const auto axis = static_cast<std::size_t>(n.attribute);
        for (std::int64_t i = 0; i < size; ++i) {
          auto x = unravel(i, r.shape);
          const bool first = x[axis] < a.shape[axis];
          if (!first) x[axis] -= a.shape[axis];
          copy(r, i, first ? a : b, ravel(x, first ? a.shape : b.shape));
        }
        return r;
      }
      case Op::Pad: {
        const Array& a = operand(id, 0);
        const AttributeList& p = g_.list(id);
        const int rank = static_cast<int>(a.shape.size());
        for (std::int64_t j = 0; j < a.size(); ++j) {
          auto x = unravel(j, a.shape);
          for (int k = 0; k < rank; ++k) x[static_cast<std::size_t>(k)] = p[k] + x[static_cast<std::size_t>(k)] * p[rank + k];
          copy(r, ravel(x, r.shape), a, j);
        }
        return r;
      }
      case Op::Dot: return contraction(id);
      case Op::Gather:
        for (std::int64_t i = 0; i < size; ++i) copy(r, i, operand(id, 0), operand(id, 1).integer[static_cast<std::size_t>(i)]);
        return r;
      default: break;
    }
    if (!is_view(n.op)) throw Error(tg::detail::concat_text("reference: no meaning for ", name(n.op)));
    const Array& a = operand(id, 0);
    for (std::int64_t i = 0; i < size; ++i) copy(r, i, a, source(id, i, r.shape, a.shape));
    return r;
  }

  // The element of the operand that element i of a view is.
  std::int64_t source(int id, std::int64_t i, const std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) const {
    const Node& n = g_[id];
    if (n.op == Op::Reshape) return i;
    const auto x = unravel(i, to);
    std::vector<std::int64_t> y(from.size());
    if (n.op == Op::Window) {
      const AttributeList& a = g_.list(id);
      std::size_t w = from.size();
      for (std::size_t k = 0; k < from.size(); ++k) {
        y[k] = x[k] * a[3 * static_cast<int>(k) + 1];
        if (a[3 * static_cast<int>(k)] > 0) y[k] += x[w++] * a[3 * static_cast<int>(k) + 2];
      }
      return ravel(y, from);
    }
    for (std::size_t k = 0; k < from.size(); ++k) {
      if (n.op == Op::Broadcast) y[k] = from[k] == 1 ? 0 : x[k + to.size() - from.size()];
      else if (n.op == Op::Transpose) y[static_cast<std::size_t>(g_.list(id)[static_cast<int>(k)])] = x[k];
      else y[k] = g_.list(id)[static_cast<int>(k)] + x[k] * g_.list(id)[static_cast<int>(k + from.size())];
    }
    return ravel(y, from);
  }

  Array elementwise(int id) const {
    const Node& n = g_[id];
    Array r = blank(id);
    const Array& a = operand(id, 0);
    for (std::int64_t i = 0; i < r.size(); ++i) {
      const auto k = static_cast<std::size_t>(i);
      if (n.op == Op::Select) {
        copy(r, i, operand(id, a.integer[k] != 0 ? 1 : 2), i);
      } else if (n.op == Op::Cast) {
        if (is_floating(n.dtype)) set(r, i, a.at(i));
        else if (!is_floating(a.dtype)) set(r, i, a.integer[k]);
        else if (n.dtype == DType::boolean) set(r, i, std::int64_t{a.real[k] != 0});
        else if (n.dtype == DType::i8) set(r, i, std::int64_t{math::convert<std::int8_t>(a.real[k])});
        else if (n.dtype == DType::i32) set(r, i, std::int64_t{math::convert<std::int32_t>(a.real[k])});
        else set(r, i, math::convert<std::int64_t>(a.real[k]));
      } else if (n.op == Op::CheckIndex) {
        if (a.integer[k] < 0 || a.integer[k] >= n.attribute)
          throw Error(tg::detail::concat_text("check_index: ", a.integer[k], " at position ", i, ", expected 0 to ",
                                              n.attribute - 1));
        copy(r, i, a, i);
      } else if (is_floating(a.dtype)) {
        const double v = detail::compute(n.op, a.real[k], arity(n.op) > 1 ? operand(id, 1).real[k] : 0.0);
        if (is_floating(n.dtype)) set(r, i, v);
        else set(r, i, static_cast<std::int64_t>(v));
      } else {
        set(r, i, detail::compute(n.op, a.integer[k], arity(n.op) > 1 ? operand(id, 1).integer[k] : std::int64_t{0}));
      }
    }
    return r;
  }

  Array reduction(int id) const {
    const Node& n = g_[id];
    const Array& a = operand(id, 0);
    Array r = blank(id);
    std::vector<char> seen(static_cast<std::size_t>(r.size()), 0);
    if (n.op == Op::ReduceProd) {
      for (double& v : r.real) v = 1;
      for (std::int64_t& v : r.integer) v = 1;
    }
    for (std::int64_t i = 0; i < a.size(); ++i) {
      auto x = unravel(i, a.shape);
      for (std::size_t k = 0; k < x.size(); ++k)
        if ((n.attribute >> k) & 1) x[k] = 0;
      const auto at = static_cast<std::size_t>(ravel(x, r.shape));
      auto fold = [&](auto& total, auto v) {
        if (n.op == Op::ReduceSum) total = math::add(total, v);
        else if (n.op == Op::ReduceProd) total = math::mul(total, v);
        else if (!seen[at]) total = v;
        else total = n.op == Op::ReduceMax ? math::maximum(total, v) : math::minimum(total, v);
        seen[at] = 1;
      };
      if (is_floating(a.dtype)) fold(r.real[at], a.real[static_cast<std::size_t>(i)]);
      else fold(r.integer[at], a.integer[static_cast<std::size_t>(i)]);
    }
    if (n.op == Op::ReduceMax || n.op == Op::ReduceMin)
      for (char s : seen)
        if (!s) throw Error(tg::detail::concat_text(name(n.op), ": max of an empty axis has no value"));
    for (double& v : r.real) v = detail::round_to(r.dtype, v);
    for (std::int64_t& v : r.integer) v = detail::wrap_to(r.dtype, v);
    return r;
  }

  Array contraction(int id) const {
    const Array &a = operand(id, 0), &b = operand(id, 1);
    const DotAxes axes = DotAxes::decode(g_.list(id));
    Array r = blank(id);
    std::vector<std::int64_t> summed;
    for (int i = 0; i < axes.contract; ++i) summed.push_back(a.shape[static_cast<std::size_t>(axes.lhs_contract[static_cast<std::size_t>(i)])]);
    std::int64_t terms = 1;
    for (std::int64_t e : summed) terms *= e;
    for (std::int64_t i = 0; i < r.size(); ++i) {
      const auto x = unravel(i, r.shape);
      std::vector<std::int64_t> ia(a.shape.size()), ib(b.shape.size());
      std::size_t at = static_cast<std::size_t>(axes.batch);
      for (int k = 0; k < axes.batch; ++k) {
        const auto j = static_cast<std::size_t>(k);
        ia[static_cast<std::size_t>(axes.lhs_batch[j])] = ib[static_cast<std::size_t>(axes.rhs_batch[j])] = x[j];
      }
      for (std::size_t k = 0; k < ia.size(); ++k)
        if (axes.role(true, static_cast<int>(k)) == 'f') ia[k] = x[at++];
      for (std::size_t k = 0; k < ib.size(); ++k)
        if (axes.role(false, static_cast<int>(k)) == 'f') ib[k] = x[at++];
      double real = 0;
      std::int64_t integer = 0;
      for (std::int64_t t = 0; t < terms; ++t) {
        const auto y = unravel(t, summed);
        for (int k = 0; k < axes.contract; ++k) {
          const auto j = static_cast<std::size_t>(k);
          ia[static_cast<std::size_t>(axes.lhs_contract[j])] = ib[static_cast<std::size_t>(axes.rhs_contract[j])] = y[j];
        }
        const auto p = static_cast<std::size_t>(ravel(ia, a.shape)), q = static_cast<std::size_t>(ravel(ib, b.shape));
        if (is_floating(a.dtype)) real += a.real[p] * b.real[q];
        else integer = math::add(integer, math::mul(a.integer[p], b.integer[q]));
      }
      if (is_floating(r.dtype)) set(r, i, real);
      else set(r, i, integer);
    }
    return r;
  }

  const Graph& g_;
  std::vector<Array> inputs_;
  std::vector<std::int64_t> extents_;
  std::vector<Array> values_;
};

// The outputs of the graph for these inputs.
inline std::vector<Array> run(const Graph& g, std::vector<Array> inputs) { return Interpreter(g, std::move(inputs)).outputs(); }

}  // namespace tg::reference
