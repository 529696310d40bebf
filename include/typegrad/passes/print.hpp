// A plan's kernels as text, one a line.
#pragma once

#include "typegrad/graph/print.hpp"
#include "typegrad/passes/compile.hpp"

namespace tg {

constexpr std::string_view name(KernelKind k) {
  constexpr std::string_view names[] = {"map", "row", "column", "contract", "routine"};
  return names[static_cast<int>(k)];
}

// For example: kernel 3: row over [batch] x [512]: exp reduce_sum div
inline std::string to_string(const Compiled& c, std::size_t kernel) {
  const Kernel& k = c.plan.kernels[kernel];
  std::string out = "kernel ";
  detail::append_number(out, kernel);
  out.append(": ").append(name(k.kind)).append(" over ");
  Shape kept, reduced;
  for (int a = 0; a < k.kept + k.reduced; ++a) (a < k.kept ? kept : reduced).push(k.extents[static_cast<std::size_t>(a)]);
  detail::append_shape(out, kept, c.graph.symbols);
  if (k.reduced > 0) {
    out += " x ";
    detail::append_shape(out, reduced, c.graph.symbols);
  }
  out += ':';
  for (int s = 0; s < k.instructions; ++s) {
    const Instruction& in = c.plan.instructions[static_cast<std::size_t>(k.first_instruction + s)];
    if (in.code == Code::Compute || in.code == Code::Fold || in.code == Code::Gather || in.code == Code::Routine) out.append(" ").append(name(in.op));
    if (in.code == Code::Product) out += " dot";
  }
  return out;
}

}  // namespace tg
