// compile: all passes in their order. Graph as it was traced -> graph as it is run, and its plan.
#pragma once

#include "typegrad/passes/fuse.hpp"
#include "typegrad/passes/lower.hpp"
#include "typegrad/passes/simplify.hpp"

namespace tg {

struct Compiled {
  Graph graph;
  Plan plan;
};
constexpr Compiled compile(const Graph& traced) {
  Compiled r;
  r.graph = duplicate_cheap(simplify(traced));
  r.plan = lower(r.graph, fuse(r.graph));
  return r;
}

}  // namespace tg
