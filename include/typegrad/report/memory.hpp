// What a function needs, as a constant or a number, without running it: memory_of<f, Expr<...>...>, cost_of<f, Expr<...>...>.
#pragma once

#include "typegrad/report/cost.hpp"
#include "typegrad/runtime/regions.hpp"

namespace tg {

// Bytes that the plan needs for intermediate results with these named extents (in the order of the graph's names), as
// Binding places them. What a back end needs besides while a kernel runs is not counted.
constexpr std::int64_t arena_bytes(const Compiled& c, const std::int64_t* extents = nullptr) {
  const auto& buffers = c.plan.buffers;
  std::vector<std::int64_t> sizes, offsets(buffers.size(), 0);
  std::int64_t scalars = 0;
  for (const PlanBuffer& b : buffers) {
    sizes.push_back(arena_size(b, extents));
    scalars += b.kind == PlanBuffer::Kind::Size ? scalar_bytes : 0;
  }
  std::vector<int> order;
  const auto live = [&](int i, int j) { return alive_together(buffers[static_cast<std::size_t>(i)], buffers[static_cast<std::size_t>(j)]); };
  return place_buffers(static_cast<int>(buffers.size()), live, [&](int i) { return sizes[static_cast<std::size_t>(i)]; }, offsets, order) + scalars;
}

// The same for f on arguments of these types, all of whose extents are static; usable in a static_assert:
//   static_assert(tg::memory_of<f, tg::Expr<float, 128, 784>>() < 1 << 20);
// The compiler plans the whole function for it, which takes it long where the function is large.
template <auto F, TypedExpr... E>
constexpr std::int64_t memory_of() {
  static_assert(((E::extents.size().is_static()) && ...), "typegrad: memory_of needs static extents; ask the program that runs for others");
  return arena_bytes(compile(Tracer<Function<F>, E...>::trace()));
}
// Operations and bytes moved by a run of f on such arguments.
template <auto F, TypedExpr... E>
constexpr Cost cost_of() {
  static_assert(((E::extents.size().is_static()) && ...), "typegrad: cost_of needs static extents; ask the program that runs for others");
  return cost_of(compile(Tracer<Function<F>, E...>::trace()).plan, nullptr);
}

}  // namespace tg
