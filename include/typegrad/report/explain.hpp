// explain<f>(tensors...): what becomes of a function, from its traced graph to kernels and memory.
#pragma once

#include <cstdio>

#include "typegrad/graph/print.hpp"
#include "typegrad/report/cost.hpp"
#include "typegrad/runtime/evaluate.hpp"

namespace tg {
namespace detail {

inline std::string_view name_of(KernelKind k) {
  constexpr std::string_view names[] = {"map", "row", "column", "contract", "routine"};
  return names[static_cast<int>(k)];
}

inline std::string describe_kernels(const Compiled& c) {
  std::string out;
  for (std::size_t i = 0; i < c.plan.kernels.size(); ++i) {
    const Kernel& k = c.plan.kernels[i];
    append_text(out, concat_text("kernel ", i, ": ", name_of(k.kind), " over "));
    Shape kept, reduced;
    for (int a = 0; a < k.kept + k.reduced; ++a) (a < k.kept ? kept : reduced).push(k.extents[static_cast<std::size_t>(a)]);
    append_shape(out, kept, c.graph.symbols);
    if (k.reduced > 0) {
      out += " x ";
      append_shape(out, reduced, c.graph.symbols);
    }
    out += ':';
    for (int s = 0; s < k.instructions; ++s) {
      const Instruction& in = c.plan.instructions[static_cast<std::size_t>(k.first_instruction + s)];
      if (in.code == Code::Compute || in.code == Code::Fold || in.code == Code::Gather || in.code == Code::Routine) out.append(" ").append(name(in.op));
      if (in.code == Code::Product) out += " dot";
    }
    out += '\n';
  }
  return out;
}

}  // namespace detail

// The graph after every pass, the kernels, and what a run costs for named extents given in the order in which they
// first appear among the arguments.
template <class T>
std::string explain_tracer(const std::vector<std::int64_t>& extents) {
  const Graph traced = T::trace();
  const Graph simple = simplify(traced);
  const Compiled c = compile(traced);
  std::string out = "# traced\n" + to_string(traced) + "\n# simplified\n" + to_string(simple) + "\n# ready to fuse\n" + to_string(c.graph) +
                    "\n# kernels\n" + detail::describe_kernels(c);
  const std::vector<Dim> counts = [&] {
    std::vector<Dim> r;
    for (const Shape& s : c.graph.shapes) r.push_back(s.rank == 0 ? Dim(1) : Dim(0));
    for (const PlanBuffer& b : c.plan.buffers)
      if (b.kind == PlanBuffer::Kind::Size) r[static_cast<std::size_t>(b.position)] = c.graph.shapes[static_cast<std::size_t>(b.position)].size();
    return r;
  }();
  const PlanView view{c.plan.kernels, c.plan.instructions, c.plan.operands, c.plan.buffers, c.graph.symbols, counts};
  Binding binding(view);
  binding.bind(extents);
  const Cost cost = cost_of(view, extents.data());
  char line[200];
  std::snprintf(line, sizeof(line), "\n# cost of a run\n%zu kernels, %.6g GFLOP, %.6g MB moved, %lld bytes for intermediate results\n", c.plan.kernels.size(),
                cost.flops * 1e-9, cost.bytes * 1e-6, static_cast<long long>(binding.arena_bytes()));
  return out + line;
}

// What becomes of f on such arguments: tg::explain<f>(a, b).
template <auto F, class... X>
std::string explain(const X&... x) {
  using T = Tracer<Function<F>, typename X::expr_type...>;
  const Graph g = T::trace();
  std::vector<std::int64_t> extents(g.symbols.size(), 1);
  for (const Node& n : g.nodes) {
    if (n.op != Op::Input) continue;
    std::size_t position = 0;
    const Shape& s = g.shapes[static_cast<std::size_t>(n.shape)];
    auto read = [&](const auto& tensor) {
      if (static_cast<std::int64_t>(position++) != n.attribute) return;
      for (int i = 0; i < s.rank; ++i)
        if (!s[i].is_static() && s[i].coefficient == 1 && (s[i].symbols >> 8) == 0) extents[s[i].symbols - 1] = tensor.extent(i);
    };
    (read(x), ...);
  }
  return explain_tracer<T>(extents);
}

}  // namespace tg
