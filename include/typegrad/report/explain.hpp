// explain<f>(tensors...): what becomes of a function, from its traced graph to kernels and memory.
#pragma once

#include <cstdio>

#include "typegrad/passes/print.hpp"
#include "typegrad/report/cost.hpp"
#include "typegrad/runtime/evaluate.hpp"

namespace tg {
namespace detail {

inline std::string describe_kernels(const Compiled& c) {
  std::string out;
  for (std::size_t k = 0; k < c.plan.kernels.size(); ++k) out += to_string(c, k) + '\n';
  return out;
}

}  // namespace detail

// The graph after every pass, the kernels, and what a run costs for named extents given in the order in which they
// first appear among the arguments.
template <class T>
std::string explain_tracer(const std::vector<std::int64_t>& extents) {
  const Graph graph = traced<T>();
  const Graph simple = simplify(graph);
  const Compiled c = compile(graph);
  std::string out = "# traced\n" + to_string(graph) + "\n# simplified\n" + to_string(simple) + "\n# ready to fuse\n" + to_string(c.graph) +
                    "\n# kernels\n" + detail::describe_kernels(c);
  Binding binding(c);
  binding.bind(extents);
  const Cost cost = cost_of(c.plan, extents.data());
  char line[200];
  std::snprintf(line, sizeof(line), "\n# cost of a run\n%zu kernels, %.6g GFLOP, %.6g MB moved, %lld bytes for intermediate results\n", c.plan.kernels.size(),
                cost.flops * 1e-9, cost.bytes * 1e-6, static_cast<long long>(binding.arena_bytes()));
  return out + line;
}

// What becomes of f on such arguments: tg::explain<f>(a, b).
template <auto F, class... X>
std::string explain(const X&... x) {
  using T = Tracer<Function<F>, typename X::expr_type...>;
  const Graph g = traced<T>();
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
