// Executes a plan at run time, instruction by instruction: the check that fusing, lowering and placing buffers keep
// the meaning of a graph. Every value is a pair of a double and an integer; one arena is shared as the plan says.
#pragma once

#include "typegrad/backends/reference/interpreter.hpp"
#include "typegrad/passes/compile.hpp"

namespace tg::reference {

class PlanExecutor {
 public:
  PlanExecutor(const Compiled& c, const std::vector<Array>& inputs) : g_(c.graph), p_(c.plan) {
    extents_.assign(g_.symbols.size(), 1);
    for (const Node& n : g_.nodes) {
      if (n.op != Op::Input) continue;
      const Shape& s = g_.shapes[static_cast<std::size_t>(n.shape)];
      for (int i = 0; i < s.rank; ++i)
        if (!s[i].is_static() && s[i].coefficient == 1 && (s[i].symbols >> 8) == 0)
          extents_[s[i].symbols - 1] = inputs[static_cast<std::size_t>(n.attribute)].shape[static_cast<std::size_t>(i)];
    }
    allocate(inputs);
    for (const Kernel& k : p_.kernels) run(k);
  }

  // Output k of the graph; one that takes over an input's memory is read from there.
  Array output(std::size_t k) const {
    const int id = g_.outputs[k];
    Array a;
    a.dtype = g_[id].dtype;
    for (int i = 0; i < g_.shape(id).rank; ++i) a.shape.push_back(g_.shape(id)[i].evaluate(extents_.data()));
    const bool donated = k < g_.donors.size() && g_.donors[k] >= 0;
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      const PlanBuffer& buffer = p_.buffers[b];
      if (buffer.kind != (donated ? PlanBuffer::Kind::Input : PlanBuffer::Kind::Output)) continue;
      if (buffer.position != (donated ? g_.donors[k] : static_cast<int>(k))) continue;
      for (std::int64_t i = 0; i < a.size(); ++i) {
        const Cell& c = memory_[b][static_cast<std::size_t>(i)];
        if (is_floating(a.dtype)) a.real.push_back(c.real);
        else a.integer.push_back(c.integer);
      }
    }
    return a;
  }

 private:
  struct Cell {
    double real = std::numeric_limits<double>::quiet_NaN();
    std::int64_t integer = std::int64_t{0x5a5a5a5a5a5a};
  };

  void allocate(const std::vector<Array>& inputs) {
    const int n = static_cast<int>(p_.buffers.size());
    std::vector<std::int64_t> sizes, offsets(p_.buffers.size(), 0);
    for (const PlanBuffer& b : p_.buffers) sizes.push_back(b.kind == PlanBuffer::Kind::Arena ? b.elements.evaluate(extents_.data()) : 0);
    std::vector<int> order;
    const auto live = [&](int i, int j) { return alive_together(p_.buffers[static_cast<std::size_t>(i)], p_.buffers[static_cast<std::size_t>(j)]); };
    const std::int64_t peak = place_buffers(n, live, [&](int i) { return sizes[static_cast<std::size_t>(i)]; }, offsets, order);
    arena_.resize(static_cast<std::size_t>(peak));
    own_.resize(p_.buffers.size());
    memory_.resize(p_.buffers.size(), nullptr);
    for (std::size_t i = 0; i < p_.buffers.size(); ++i) {
      const PlanBuffer& b = p_.buffers[i];
      if (b.kind == PlanBuffer::Kind::Arena) {
        memory_[i] = arena_.data() + offsets[i];
        continue;
      }
      own_[i].resize(static_cast<std::size_t>(b.kind == PlanBuffer::Kind::Size ? 1 : b.elements.evaluate(extents_.data())));
      memory_[i] = own_[i].data();
      if (b.kind == PlanBuffer::Kind::Size) {
        own_[i][0].integer = g_.shapes[static_cast<std::size_t>(b.position)].size().evaluate(extents_.data());
        own_[i][0].real = static_cast<double>(own_[i][0].integer);
      } else if (b.kind == PlanBuffer::Kind::Input) {
        const Array& a = inputs[static_cast<std::size_t>(b.position)];
        for (std::size_t k = 0; k < own_[i].size(); ++k) {
          if (is_floating(a.dtype)) own_[i][k].real = a.real[k];
          else own_[i][k].integer = a.integer[k];
        }
      }
    }
  }

  std::int64_t extent(const Kernel& k, int axis) const { return k.extents[static_cast<std::size_t>(axis)].evaluate(extents_.data()); }
  const KernelOperand& operand(const Kernel& k, int slot) const { return p_.operands[static_cast<std::size_t>(k.first_operand + slot)]; }

  // The offset of a slot's element at an index over the kernel's axes.
  std::int64_t offset(const Kernel& k, int slot, const std::vector<std::int64_t>& index) const {
    const KernelOperand& o = operand(k, slot);
    std::int64_t at = o.offset.evaluate(extents_.data());
    for (std::size_t a = 0; a < index.size(); ++a) at += index[a] * o.strides[a].evaluate(extents_.data());
    return at;
  }
  Cell& cell(const Kernel& k, int slot, const std::vector<std::int64_t>& index) {
    return memory_[static_cast<std::size_t>(operand(k, slot).buffer)][offset(k, slot, index)];
  }

  // Advances an index over axes [first, last); false when it has come round.
  bool next(const Kernel& k, std::vector<std::int64_t>& index, int first, int last) const {
    for (int a = last; a-- > first;) {
      if (++index[static_cast<std::size_t>(a)] < extent(k, a)) return true;
      index[static_cast<std::size_t>(a)] = 0;
    }
    return false;
  }

  // Operands are read and the result is written as a whole.
  void routine(const Kernel& k) {
    const auto instruction = [&](int i) -> const Instruction& { return p_.instructions[static_cast<std::size_t>(k.first_instruction + i)]; };
    const Instruction &s = instruction(k.instructions - 2), &store = instruction(k.instructions - 1);
    const bool scatters = is_scatter(s.op);
    const auto first = [&](int slot) { return memory_[static_cast<std::size_t>(operand(k, slot).buffer)] + operand(k, slot).offset.evaluate(extents_.data()); };
    std::vector<Array> in;
    for (int i = 0; i + 2 < k.instructions; ++i) {
      in.push_back(blank(instruction(i).dtype, scatters ? std::vector{extent(k, 0)} : std::vector{extent(k, 0), extent(k, 1)}));
      const Cell* from = first(instruction(i).slot);
      for (double& v : in.back().real) v = (from++)->real;
      for (std::int64_t& v : in.back().integer) v = (from++)->integer;
    }
    std::vector<const Array*> operands;
    for (const Array& a : in) operands.push_back(&a);
    const std::int64_t inner = s.op == Op::ArgSort ? SortAttribute::of(s.bits).count : extent(k, 1);
    const Array r = run_routine(s.op, s.bits, operands, s.dtype, scatters ? std::vector{inner} : std::vector{extent(k, 0), inner});
    Cell* to = first(store.slot);
    for (double v : r.real) (to++)->real = v;
    for (std::int64_t v : r.integer) (to++)->integer = v;
  }

  void run(const Kernel& k) {
    if (k.kind == KernelKind::Routine) return routine(k);
    const int axes = k.kept + k.reduced;
    std::int64_t rows = 1, length = 1;
    for (int a = 0; a < k.kept; ++a) rows *= extent(k, a);
    for (int a = k.kept; a < axes; ++a) length *= extent(k, a);
    std::vector<std::int64_t> index(static_cast<std::size_t>(axes), 0);
    std::vector<std::vector<Cell>> values(static_cast<std::size_t>(k.instructions));
    for (std::int64_t row = 0; row < rows; ++row) {
      for (int i = 0; i < k.instructions; ++i) {
        const Instruction& s = p_.instructions[static_cast<std::size_t>(k.first_instruction + i)];
        std::vector<Cell>& v = values[static_cast<std::size_t>(i)];
        const std::int64_t count = s.row || k.kind == KernelKind::Contract ? 1 : length;
        v.assign(static_cast<std::size_t>(count), {});
        auto arg = [&](int a, std::int64_t e) -> const Cell& {
          const auto& from = values[static_cast<std::size_t>(a)];
          return from[from.size() == 1 ? 0 : static_cast<std::size_t>(e)];
        };
        for (std::int64_t e = 0; e < count; ++e) {
          if (e > 0) next(k, index, k.kept, axes);
          Cell& r = v[static_cast<std::size_t>(e)];
          switch (s.code) {
            case Code::Load: r = cell(k, s.slot, index); break;
            case Code::Literal:
              if (is_floating(s.dtype)) r.real = std::bit_cast<double>(s.bits);
              else r.integer = s.bits;
              break;
            case Code::Index: r.integer = offset(k, s.slot, index); r.real = static_cast<double>(r.integer); break;
            case Code::Compute: r = compute(k, s, arg, e); break;
            case Code::Fold: r = fold(s, values[static_cast<std::size_t>(s.a)], length); break;
            case Code::Gather: r = memory_[static_cast<std::size_t>(operand(k, s.slot).buffer)][operand(k, s.slot).offset.evaluate(extents_.data()) + arg(s.a, e).integer]; break;
            case Code::Routine: break;  // whole kernels: see routine()
            case Code::Product: r = product(k, s, index); break;
            case Code::Store: cell(k, s.slot, index) = arg(s.a, e); break;
          }
          if (s.code != Code::Store) round(s.dtype, r);
        }
        for (int a = k.kept; a < axes; ++a) index[static_cast<std::size_t>(a)] = 0;
      }
      next(k, index, 0, k.kept);
    }
  }

  static void round(DType t, Cell& c) {
    if (is_floating(t)) c.real = detail::round_to(t, c.real);
    else c.integer = detail::wrap_to(t, c.integer);
  }

  template <class Arg>
  Cell compute(const Kernel& k, const Instruction& s, Arg arg, std::int64_t e) const {
    Cell r;
    const DType from = p_.instructions[static_cast<std::size_t>(k.first_instruction + (s.op == Op::Select ? s.b : s.a))].dtype;
    const Cell& a = arg(s.a, e);
    if (s.op == Op::Select) return arg(a.integer != 0 ? s.b : s.c, e);
    if (s.op == Op::Cast) {
      if (is_floating(s.dtype)) r.real = is_floating(from) ? a.real : static_cast<double>(a.integer);
      else if (!is_floating(from)) r.integer = a.integer;
      else if (s.dtype == DType::boolean) r.integer = a.real != 0;
      else if (s.dtype == DType::i8) r.integer = math::convert<std::int8_t>(a.real);
      else if (s.dtype == DType::i32) r.integer = math::convert<std::int32_t>(a.real);
      else r.integer = math::convert<std::int64_t>(a.real);
      return r;
    }
    if (s.op == Op::CheckIndex) {
      if (a.integer < 0 || a.integer >= s.bits) throw Error("check_index: out of range");
      return a;
    }
    const Cell& b = s.b >= 0 ? arg(s.b, e) : a;
    if (is_floating(from)) {
      r.real = detail::compute(s.op, a.real, b.real);
      if (!is_floating(s.dtype)) r.integer = static_cast<std::int64_t>(r.real);
    } else {
      r.integer = detail::compute(s.op, a.integer, b.integer);
    }
    return r;
  }

  static Cell fold(const Instruction& s, const std::vector<Cell>& v, std::int64_t length) {
    Cell r;
    auto one = [&](auto& total, auto get) {
      using T = std::remove_reference_t<decltype(total)>;
      total = s.op == Op::ReduceProd ? T(1) : s.op == Op::ReduceSum ? T(0) : get(v[0]);
      for (std::int64_t e = 0; e < length; ++e) {
        const auto x = get(v[v.size() == 1 ? 0 : static_cast<std::size_t>(e)]);
        total = s.op == Op::ReduceSum ? math::add(total, x) : s.op == Op::ReduceProd ? math::mul(total, x)
                : s.op == Op::ReduceMax ? math::maximum(total, x) : math::minimum(total, x);
      }
    };
    if (length == 0 && (s.op == Op::ReduceMax || s.op == Op::ReduceMin)) throw Error("max of an empty axis has no value");
    if (is_floating(s.dtype)) one(r.real, [](const Cell& c) { return c.real; });
    else one(r.integer, [](const Cell& c) { return c.integer; });
    return r;
  }

  Cell product(const Kernel& k, const Instruction& s, std::vector<std::int64_t> index) {
    Cell r{0.0, 0};
    bool empty = false;
    for (int a = k.kept; a < k.kept + k.reduced; ++a) empty = empty || extent(k, a) == 0;
    if (empty) return r;
    do {
      const Cell &a = cell(k, 0, index), &b = cell(k, 1, index);
      if (is_floating(s.dtype)) r.real += a.real * b.real;
      else r.integer = math::add(r.integer, math::mul(a.integer, b.integer));
    } while (next(k, index, k.kept, k.kept + k.reduced));
    return r;
  }

  const Graph& g_;
  const Plan& p_;
  std::vector<std::int64_t> extents_;
  std::vector<Cell> arena_;
  std::vector<std::vector<Cell>> own_;
  std::vector<Cell*> memory_;
};

}  // namespace tg::reference
