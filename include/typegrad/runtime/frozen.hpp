// Frozen: the plan of a traced function as static constexpr arrays, computed while the program compiles.
#pragma once

#include <span>

#include "typegrad/expr/trace.hpp"
#include "typegrad/passes/lower.hpp"

namespace tg {

// A program without its kernels' code: what binding and reporting need.
struct PlanView {
  std::span<const Kernel> kernels;
  std::span<const Instruction> instructions;
  std::span<const KernelOperand> operands;
  std::span<const Buffer> buffers;
  std::span<const Name> symbols;
  std::span<const Dim> counts;  // by Buffer::position of Size buffers
};

namespace detail {

struct PlanSizes {
  std::size_t kernels = 0, instructions = 0, operands = 0, buffers = 0, symbols = 0, shapes = 0;
};

template <PlanSizes N>
struct PlanArrays {
  std::array<Kernel, N.kernels> kernels{};
  std::array<Instruction, N.instructions> instructions{};
  std::array<KernelOperand, N.operands> operands{};
  std::array<Access, N.operands> access{};  // here, since g++ 12 cannot read strides that are all zero from a constant
  std::array<Buffer, N.buffers> buffers{};
  std::array<Name, N.symbols> symbols{};
  std::array<Dim, N.shapes> counts{};
};

template <class To, class From>
constexpr void copy_items(To& to, const From& from) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i];
}

}  // namespace detail

// T is a Tracer.
template <class T>
struct Frozen {
  static constexpr detail::PlanSizes sizes = [] {
    const Compiled c = compile(T::trace());
    return detail::PlanSizes{c.plan.kernels.size(), c.plan.instructions.size(), c.plan.operands.size(),
                             c.plan.buffers.size(), c.graph.symbols.size(),     c.graph.shapes.size()};
  }();
  static constexpr auto arrays = [] {
    const Compiled c = compile(T::trace());
    detail::PlanArrays<sizes> r;
    detail::copy_items(r.kernels, c.plan.kernels);
    detail::copy_items(r.instructions, c.plan.instructions);
    detail::copy_items(r.operands, c.plan.operands);
    for (const Kernel& k : c.plan.kernels)
      for (int o = 0; o < k.operands; ++o) {
        const auto at = static_cast<std::size_t>(k.first_operand + o);
        r.access[at] = access_of(k, c.plan.operands[at]);
      }
    detail::copy_items(r.buffers, c.plan.buffers);
    detail::copy_items(r.symbols, c.graph.symbols);
    for (std::size_t i = 0; i < r.counts.size(); ++i) {
      bool used = false;
      for (const Buffer& b : c.plan.buffers) used = used || (b.kind == Buffer::Kind::Size && b.position == static_cast<int>(i));
      if (used) r.counts[i] = c.graph.shapes[i].size();
    }
    return r;
  }();
  static constexpr const auto& kernels = arrays.kernels;
  static constexpr const auto& instructions = arrays.instructions;
  static constexpr const auto& operands = arrays.operands;
  static constexpr const auto& access = arrays.access;

  static constexpr PlanView view() {
    return {arrays.kernels, arrays.instructions, arrays.operands, arrays.buffers, arrays.symbols, arrays.counts};
  }
};

}  // namespace tg
