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

template <class To, class From>
constexpr void fill(To& to, const From& from) {
  for (std::size_t i = 0; i < to.size() && i < from.size(); ++i) to[i] = from[i];
}

template <RegionSizes Capacity>
struct RegionDraft {
  RegionSizes sizes;
  bool fits = false;
  bool shortened = false;
  RegionArrays<Capacity> arrays;
};

template <class T, int Depth, RegionSizes Capacity>
constexpr RegionDraft<Capacity> draft_regions() {
  const Graph traced = T::trace(Depth);
  const RegionSet set = regions_of(compile(traced).plan);
  RegionDraft<Capacity> r;
  r.shortened = traced.shortened;
  r.sizes = {set.words.size(), set.size()};
  r.fits = r.sizes.within(Capacity);
  if (!r.fits) return r;
  fill(r.arrays.words, set.words);
  fill(r.arrays.starts, set.starts);
  return r;
}

// The regions of the trace that shows at most Depth blocks of each stack.
template <class T, int Depth>
struct RegionsAt {
 private:
  // A set that fits into these sizes is computed once, a larger one a second time with its own sizes.
  static constexpr RegionSizes common{.words = 4096, .regions = 128};
  static constexpr auto draft = draft_regions<T, Depth, common>();
  static constexpr auto arrays = [] {
    if constexpr (draft.fits) {
      RegionArrays<draft.sizes> r;
      fill(r.words, draft.arrays.words);
      fill(r.starts, draft.arrays.starts);
      return r;
    } else {
      return draft_regions<T, Depth, draft.sizes>().arrays;
    }
  }();

 public:
  static constexpr bool shortened = draft.shortened;
  static constexpr std::size_t size = draft.sizes.regions;
  static constexpr const auto& words = arrays.words;
  static constexpr const auto& starts = arrays.starts;
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
struct Regions : decltype(detail::deep_enough<T, 2>()) {};

}  // namespace tg
