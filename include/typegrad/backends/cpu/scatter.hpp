// Scatters on the CPU: each thread owns a part of the result and goes through all updates, so that what is added to an
// element is added in the order of the updates, whatever the number of threads.
#pragma once

#include "typegrad/backends/cpu/evaluate.hpp"
#include "typegrad/kernels/routine.hpp"

namespace tg::cpu {

template <class R>
struct ScatterKernel {
  using Traits = kernel::RoutineTraits<typename R::program>;
  using T = typename Traits::result;
  using C = compute_t<T>;
  static constexpr bool narrow = !std::same_as<T, C>;  // summed in C and then rounded

  static std::int64_t scratch(const kernel::Launch& l, int) { return narrow ? l.extents[1] * static_cast<std::int64_t>(sizeof(C)) : 0; }

  static void run(const kernel::Launch& l, const Context& c) {
    const std::int64_t updates = l.extents[0], size = l.extents[1];
    const T* const from = reinterpret_cast<const T*>(l.pointers[0]);
    const auto* const at = reinterpret_cast<const std::int64_t*>(l.pointers[1]);
    T* const result = reinterpret_cast<T*>(l.pointers[2]);
    C* const total = reinterpret_cast<C*>(narrow ? c.scratch : l.pointers[2]);
    parallel(size, updates + size < parallel_threshold ? 1 : c.threads, [&](std::int64_t begin, std::int64_t end) {
      constexpr bool adds = Traits::op == Op::ScatterAdd;
      for (std::int64_t i = begin; i < end; ++i) total[i] = adds ? C{} : static_cast<C>(-1);
      for (std::int64_t i = 0; i < updates; ++i) {
        if (at[i] < begin || at[i] >= end) continue;
        C& t = total[at[i]];
        if constexpr (adds) t = math::add(t, static_cast<C>(from[i]));
        else t = math::maximum(t, static_cast<C>(from[i]));
      }
      if constexpr (narrow)
        for (std::int64_t i = begin; i < end; ++i) result[i] = static_cast<T>(total[i]);
    });
  }
};

}  // namespace tg::cpu
