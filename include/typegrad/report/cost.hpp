// What the kernels of a plan cost: floating-point operations and bytes of memory.
#pragma once

#include "typegrad/passes/plan.hpp"

namespace tg {

struct Cost {
  double flops = 0;
  double bytes = 0;  // read and written, each operand once: what cannot be avoided
  constexpr Cost& operator+=(const Cost& o) {
    flops += o.flops;
    bytes += o.bytes;
    return *this;
  }
};

// extents[i] belongs to the plan's name i. Operations are counted as in op_table (a transcendental function as about 20),
// a matrix product as 2 m n k.
constexpr Cost cost_of(const Plan& plan, std::size_t kernel, const std::int64_t* extents) {
  const Kernel& k = plan.kernels[kernel];
  double kept = 1, reduced = 1;
  for (int a = 0; a < k.kept + k.reduced; ++a) (a < k.kept ? kept : reduced) *= static_cast<double>(k.extents[static_cast<std::size_t>(a)].evaluate(extents));
  const bool contract = k.kind == KernelKind::Contract;
  Cost c;
  for (int i = 0; i < k.instructions; ++i) {
    const Instruction& s = plan.instructions[static_cast<std::size_t>(k.first_instruction + i)];
    if (s.code == Code::Compute) c.flops += info(s.op).flops * kept * (s.row || contract ? 1.0 : reduced);
    if (s.code == Code::Fold) c.flops += kept * reduced;
    if (s.code == Code::Product) c.flops += 2 * kept * reduced;
    if (s.code == Code::Routine) c.flops += info(s.op).flops * kept;
    if (s.code == Code::Gather) c.bytes += static_cast<double>(size_of(s.dtype)) * kept * (s.row ? 1.0 : reduced);
  }
  for (int o = 0; o < k.operands; ++o) {
    const KernelOperand& operand = plan.operands[static_cast<std::size_t>(k.first_operand + o)];
    if (operand.buffer < 0) continue;
    double n = 1;
    for (int a = 0; a < k.kept + k.reduced; ++a)
      if (operand.strides[static_cast<std::size_t>(a)].coefficient != 0) n *= static_cast<double>(k.extents[static_cast<std::size_t>(a)].evaluate(extents));
    int uses = 0;
    for (int i = 0; i < k.instructions; ++i) {
      const Instruction& s = plan.instructions[static_cast<std::size_t>(k.first_instruction + i)];
      uses += (s.code == Code::Load || s.code == Code::Store) && s.slot == o;
    }
    if (contract && o < 2) uses = 1;
    c.bytes += n * static_cast<double>(size_of(operand.dtype)) * uses;
  }
  return c;
}

constexpr Cost cost_of(const Plan& plan, const std::int64_t* extents) {
  Cost c;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) c += cost_of(plan, k, extents);
  return c;
}

}  // namespace tg
