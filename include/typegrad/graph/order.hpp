// An order of a graph's nodes that follows from their meaning alone.
//
// C++ does not say in which order the arguments of a call are evaluated, and compilers choose another one in constant
// expressions than at run time. So the same function, traced twice, appends its nodes in different orders. Whatever depends
// on the order (which of two equal nodes is kept, which sum comes first, which nodes share a kernel) goes by this one.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "typegrad/graph/graph.hpp"

namespace tg {

namespace detail {

class Order {
 public:
  constexpr Order(const Graph& g, std::span<const std::int32_t> roots) : g_(g), state_(g.nodes.size(), dead) {
    std::vector<std::int32_t> stack(roots.begin(), roots.end());
    while (!stack.empty()) {
      const std::int32_t id = stack.back();
      stack.pop_back();
      if (state(id) != dead) continue;
      state(id) = live;
      for (int a = 0; a < arity(g[id].op); ++a) stack.push_back(g[id].in[static_cast<std::size_t>(a)]);
    }
  }

  // The node and all it needs that is not there yet, operands before their users.
  constexpr void visit(std::int32_t root) {
    if (state(root) != live) return;
    stack_.push_back(root);
    while (!stack_.empty()) {
      const std::int32_t id = stack_.back();
      const Node& n = g_[id];
      bool ready = true;
      for (int a = arity(n.op); a-- > 0;)
        if (const std::int32_t x = n.in[static_cast<std::size_t>(a)]; state(x) == live) {
          stack_.push_back(x);
          ready = false;
        }
      if (!ready) continue;
      stack_.pop_back();
      if (state(id) == done) continue;
      state(id) = done;
      nodes.push_back(id);
    }
  }

  std::vector<std::int32_t> nodes;

 private:
  enum State : char { dead, live, done };
  constexpr State& state(std::int32_t id) { return state_[static_cast<std::size_t>(id)]; }
  const Graph& g_;
  std::vector<State> state_;
  std::vector<std::int32_t> stack_;
};

// The sweeps by the place that their first adjoint has where nothing but the roots decides: several gradients in the
// arguments of one call are taken in any order.
constexpr std::vector<std::size_t> order_of_sweeps(const Graph& g, std::span<const std::int32_t> roots) {
  std::vector<std::size_t> sweeps;
  for (std::size_t s = 0; s < g.sweeps.size(); ++s) sweeps.push_back(s);
  if (sweeps.size() < 2) return sweeps;
  Order plain(g, roots);
  for (const std::int32_t r : roots) plain.visit(r);
  std::vector<std::int32_t> place(g.nodes.size(), g.size());
  for (std::size_t i = 0; i < plain.nodes.size(); ++i) place[static_cast<std::size_t>(plain.nodes[i])] = static_cast<std::int32_t>(i);
  std::vector<std::int32_t> first;
  for (const auto& sweep : g.sweeps) {
    std::int32_t least = g.size();
    for (std::size_t i = 1; i < sweep.size(); ++i) least = (std::min)(least, place[static_cast<std::size_t>(sweep[i])]);  // 0 is the loss
    first.push_back(least);
  }
  std::sort(sweeps.begin(), sweeps.end(), [&](std::size_t a, std::size_t b) { return first[a] != first[b] ? first[a] < first[b] : a < b; });
  return sweeps;
}

}  // namespace detail

// The nodes that the roots need, operands before their users: depth first, from the sweeps and then from the roots.
constexpr std::vector<std::int32_t> canonical_order(const Graph& g, std::span<const std::int32_t> roots) {
  detail::Order order(g, roots);
  for (const std::size_t s : detail::order_of_sweeps(g, roots))
    for (const std::int32_t id : g.sweeps[s]) order.visit(id);
  for (const std::int32_t r : roots) order.visit(r);
  return std::move(order.nodes);
}

}  // namespace tg
