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
  std::span<const PlanBuffer> buffers;
  std::span<const Name> symbols;
  std::span<const Dim> counts;  // by PlanBuffer::position of Size buffers
};

namespace detail {

struct PlanSizes {
  std::size_t kernels = 0, instructions = 0, operands = 0, buffers = 0, symbols = 0, shapes = 0;
  constexpr bool within(const PlanSizes& o) const {
    return kernels <= o.kernels && instructions <= o.instructions && operands <= o.operands && buffers <= o.buffers && symbols <= o.symbols &&
           shapes <= o.shapes;
  }
};

template <PlanSizes N>
struct PlanArrays {
  std::array<Kernel, N.kernels> kernels{};
  std::array<Instruction, N.instructions> instructions{};
  std::array<KernelOperand, N.operands> operands{};
  std::array<Access, N.operands> access{};  // here, since g++ 12 cannot read strides that are all zero from a constant
  std::array<PlanBuffer, N.buffers> buffers{};
  std::array<Name, N.symbols> symbols{};
  std::array<Dim, N.shapes> counts{};
};

template <class To, class From>
constexpr void copy_items(To& to, const From& from) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i];
}

// What a program that fits into these numbers of items needs is computed once. A larger one is computed a second time,
// with its own numbers.
inline constexpr PlanSizes common_sizes{.kernels = 96, .instructions = 1536, .operands = 768, .buffers = 384, .symbols = 16, .shapes = 256};

template <PlanSizes Capacity>
struct FrozenDraft {
  PlanSizes sizes;
  bool fits = false;
  PlanArrays<Capacity> arrays;
};

template <class T, PlanSizes Capacity>
constexpr FrozenDraft<Capacity> freeze() {
  const Compiled c = compile(T::trace());
  FrozenDraft<Capacity> r;
  r.sizes = {c.plan.kernels.size(), c.plan.instructions.size(), c.plan.operands.size(),
             c.plan.buffers.size(), c.graph.symbols.size(),     c.graph.shapes.size()};
  r.fits = r.sizes.within(Capacity);
  if (!r.fits) return r;
  copy_items(r.arrays.kernels, c.plan.kernels);
  copy_items(r.arrays.instructions, c.plan.instructions);
  copy_items(r.arrays.operands, c.plan.operands);
  for (const Kernel& k : c.plan.kernels)
    for (int o = 0; o < k.operands; ++o) {
      const auto at = static_cast<std::size_t>(k.first_operand + o);
      r.arrays.access[at] = access_of(k, c.plan.operands[at]);
    }
  copy_items(r.arrays.buffers, c.plan.buffers);
  copy_items(r.arrays.symbols, c.graph.symbols);
  for (std::size_t i = 0; i < c.graph.shapes.size(); ++i) {
    bool used = false;
    for (const PlanBuffer& b : c.plan.buffers) used = used || (b.kind == PlanBuffer::Kind::Size && b.position == static_cast<int>(i));
    if (used) r.arrays.counts[i] = c.graph.shapes[i].size();
  }
  return r;
}

}  // namespace detail

// T is a Tracer.
template <class T>
struct Frozen {
 private:
  template <class Arrays>
  static constexpr auto exact(const Arrays& from) {
    detail::PlanArrays<sizes> r;
    auto take = [](auto& to, const auto& all) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = all[i];
    };
    take(r.kernels, from.kernels);
    take(r.instructions, from.instructions);
    take(r.operands, from.operands);
    take(r.access, from.access);
    take(r.buffers, from.buffers);
    take(r.symbols, from.symbols);
    take(r.counts, from.counts);
    return r;
  }
  static constexpr auto draft = detail::freeze<T, detail::common_sizes>();

 public:
  static constexpr detail::PlanSizes sizes = draft.sizes;
  static constexpr auto arrays = [] {
    if constexpr (draft.fits) return exact(draft.arrays);
    else return detail::freeze<T, sizes>().arrays;
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
