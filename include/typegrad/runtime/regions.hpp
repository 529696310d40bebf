// What a traced function needs while its program compiles (the set of its kernels' regions) and when it starts (its plan).
#pragma once

#include "typegrad/expr/trace.hpp"
#include "typegrad/kernels/region.hpp"
#include "typegrad/runtime/error.hpp"

namespace tg {

// The whole graph of a Tracer's function, while the program runs.
template <class T>
Graph traced() {
  // Not a constant: g++ would try to evaluate the call, and all that is done with the result, while compiling.
  static int all_blocks = Graph::all_blocks;
  return T::trace(all_blocks);
}

// Its plan, made when it is first asked for.
template <class T>
const Compiled& plan_of() {
  static const Compiled c = [] {
    try {
      return compile(traced<T>());
    } catch (const char* message) {  // what the compiler prints where the passes run in a constant expression
      throw Error(message);
    }
  }();
  return c;
}

namespace detail {

struct RegionSizes {
  std::size_t words = 0, regions = 0;
  constexpr bool within(const RegionSizes& o) const { return words <= o.words && regions <= o.regions; }
};

template <RegionSizes N>
struct RegionArrays {
  std::array<std::uint64_t, N.words> words{};
  std::array<std::uint32_t, N.regions + 1> starts{};
};

// The parts of a plan.
struct PlanSizes {
  std::size_t kernels = 0, instructions = 0, operands = 0, buffers = 0, symbols = 0, shapes = 0;
  constexpr bool within(const PlanSizes& o) const {
    return kernels <= o.kernels && instructions <= o.instructions && operands <= o.operands && buffers <= o.buffers && symbols <= o.symbols && shapes <= o.shapes;
  }
};
template <PlanSizes N>
struct PlanArrays {
  std::array<Kernel, N.kernels> kernels{};
  std::array<Instruction, N.instructions> instructions{};
  std::array<KernelOperand, N.operands> operands{};
  std::array<PlanBuffer, N.buffers> buffers{};
  std::array<Name, N.symbols> symbols{};
  std::array<Shape, N.shapes> shapes{};
};

template <class To, class From>
constexpr void fill(To& to, const From& from) {
  for (std::size_t i = 0; i < to.size() && i < from.size(); ++i) to[i] = from[i];
}

// A small plan is kept as it was computed with its regions: a program of a few kernels then needs no code to plan itself.
inline constexpr PlanSizes small_plan{.kernels = 48, .instructions = 768, .operands = 384, .buffers = 192, .symbols = 16, .shapes = 96};

template <RegionSizes Capacity, PlanSizes PlanCapacity>
struct RegionDraft {
  RegionSizes sizes;
  bool fits = false;
  bool shortened = false;
  RegionArrays<Capacity> arrays;
  bool keeps_plan = false;
  PlanSizes plan_sizes;
  PlanArrays<PlanCapacity> plan;
};

template <PlanSizes N, class From>
constexpr void fill_plan(PlanArrays<N>& to, const From& from) {
  fill(to.kernels, from.kernels);
  fill(to.instructions, from.instructions);
  fill(to.operands, from.operands);
  fill(to.buffers, from.buffers);
}

template <class T, int Depth, RegionSizes Capacity, PlanSizes PlanCapacity>
constexpr RegionDraft<Capacity, PlanCapacity> draft_regions() {
  const Graph traced = T::trace(Depth);
  const Compiled c = compile(traced);
  const RegionSet set = regions_of(c.plan);
  RegionDraft<Capacity, PlanCapacity> r;
  r.shortened = traced.shortened;
  r.plan_sizes = {c.plan.kernels.size(), c.plan.instructions.size(), c.plan.operands.size(), c.plan.buffers.size(), c.graph.symbols.size(), c.graph.shapes.size()};
  r.keeps_plan = !r.shortened && r.plan_sizes.within(PlanCapacity);
  if (r.keeps_plan) {
    fill_plan(r.plan, c.plan);
    fill(r.plan.symbols, c.graph.symbols);
    fill(r.plan.shapes, c.graph.shapes);
  }
  r.sizes = {set.words.size(), set.size()};
  r.fits = r.sizes.within(Capacity);
  if (!r.fits) return r;
  fill(r.arrays.words, set.words);
  fill(r.arrays.starts, set.starts);
  return r;
}

inline constexpr int first_depth = 2;

// The regions of the trace that shows at most Depth blocks of each stack.
template <class T, int Depth>
struct RegionsAt {
 private:
  // A set that fits into these sizes is computed once, a larger one a second time with its own sizes.
  static constexpr RegionSizes common{.words = 4096, .regions = 128};
  static constexpr auto draft = draft_regions<T, Depth, common, Depth == first_depth ? small_plan : PlanSizes{}>();
  static constexpr auto arrays = [] {
    if constexpr (draft.fits) {
      RegionArrays<draft.sizes> r;
      fill(r.words, draft.arrays.words);
      fill(r.starts, draft.arrays.starts);
      return r;
    } else {
      return draft_regions<T, Depth, draft.sizes, PlanSizes{}>().arrays;
    }
  }();
  static constexpr PlanSizes plan_sizes = draft.keeps_plan ? draft.plan_sizes : PlanSizes{};
  static constexpr auto arrays_of_plan = [] {
    PlanArrays<plan_sizes> r;
    fill_plan(r, draft.plan);
    fill(r.symbols, draft.plan.symbols);
    fill(r.shapes, draft.plan.shapes);
    return r;
  }();

 public:
  static constexpr bool shortened = draft.shortened;
  static constexpr std::size_t size = draft.sizes.regions;
  static constexpr const auto& words = arrays.words;
  static constexpr const auto& starts = arrays.starts;
  static constexpr bool keeps_plan = draft.keeps_plan;
  static constexpr const auto& plan = arrays_of_plan;
};

// Whether every region of B is one of A.
template <class A, class B>
consteval bool covers() {
  for (std::size_t b = 0; b < B::size; ++b) {
    const std::size_t n = B::starts[b + 1] - B::starts[b];
    bool found = false;
    for (std::size_t a = 0; a < A::size && !found; ++a)
      found = A::starts[a + 1] - A::starts[a] == n && std::equal(A::words.begin() + A::starts[a], A::words.begin() + A::starts[a + 1], B::words.begin() + B::starts[b]);
    if (!found) return false;
  }
  return true;
}

// The first depth at which one more block needs nothing new; all blocks, if there is none before.
template <class T, int Depth>
consteval auto deep_enough() {
  using Here = RegionsAt<T, Depth>;
  if constexpr (!Here::shortened) {
    return Here{};
  } else {
    if constexpr (covers<Here, RegionsAt<T, Depth + 1>>()) return Here{};
    else return deep_enough<T, Depth + 1>();
  }
}

}  // namespace detail

// The distinct regions that the kernels of a Tracer's function are made of, as keys, computed while the program compiles.
// Stacks of blocks are traced with two blocks, and with three to see that they need the same.
template <class T>
struct Regions : decltype(detail::deep_enough<T, detail::first_depth>()) {};

// The plan that a program of this function runs. Of the graph it has shapes and names only.
template <class T>
const Compiled& program_plan() {
  if constexpr (Regions<T>::keeps_plan) {
    static const Compiled c = [] {
      const auto& p = Regions<T>::plan;
      Compiled r;
      r.plan.kernels.assign(p.kernels.begin(), p.kernels.end());
      r.plan.instructions.assign(p.instructions.begin(), p.instructions.end());
      r.plan.operands.assign(p.operands.begin(), p.operands.end());
      r.plan.buffers.assign(p.buffers.begin(), p.buffers.end());
      r.graph.symbols.assign(p.symbols.begin(), p.symbols.end());
      r.graph.shapes.assign(p.shapes.begin(), p.shapes.end());
      return r;
    }();
    return c;
  } else {
    return plan_of<T>();
  }
}

}  // namespace tg
