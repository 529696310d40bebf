// Scans on the CPU: each row from one end to the other, rows over threads. Sums of floats run in double.
#pragma once

#include "typegrad/backends/cpu/evaluate.hpp"
#include "typegrad/kernels/routine.hpp"

namespace tg::cpu {

template <class R>
struct ScanKernel {
  using Traits = kernel::RoutineTraits<typename R::program>;
  using T = typename Traits::result;
  using C = compute_t<T>;
  static constexpr bool sums = Traits::op == Op::CumSum;
  using Total = std::conditional_t<sums, kernel::running_sum_t<T>, C>;

  static std::int64_t scratch(const kernel::Launch&, int) { return 0; }

  static void run(const kernel::Launch& l, const Context& c) {
    const std::int64_t rows = l.extents[0], length = l.extents[1];
    const T* const a = reinterpret_cast<const T*>(l.pointers[0]);
    const T* const b = reinterpret_cast<const T*>(l.pointers[Traits::result_slot - 1]);
    T* const result = reinterpret_cast<T*>(l.pointers[Traits::result_slot]);
    parallel(rows, rows * length < parallel_threshold ? 1 : c.threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        Total h{};
        for (std::int64_t t = 0; t < length; ++t) {
          const std::int64_t i = row * length + (Traits::attribute != 0 ? length - 1 - t : t);
          if constexpr (sums) h = math::add(h, static_cast<Total>(static_cast<C>(a[i])));
          else h = math::add(math::mul(static_cast<C>(a[i]), h), static_cast<C>(b[i]));
          result[i] = static_cast<T>(static_cast<C>(h));
        }
      }
    });
  }
};

}  // namespace tg::cpu
