// Map kernels on the CPU: one independent value per element.
#pragma once

#include "typegrad/backends/cpu/evaluate.hpp"

namespace tg::cpu {

template <class R>
struct MapKernel {
  static constexpr int inner = R::kept - 1;
  static constexpr std::int64_t chunk = 4096;  // elements of the innermost axis that one thread takes at a time

  static std::int64_t scratch(const kernel::Launch&, int) { return 0; }

  static void run(const kernel::Launch& l, const Context& c) {
    using Rows = Walk<R, 0, inner>;
    const std::int64_t rows = Rows::count(l), length = l.extents[inner];
    if (rows == 0 || length == 0) return;
    const std::int64_t chunks = (length + chunk - 1) / chunk;
    const Faults faults{c.fault};
    parallel(rows * chunks, rows * length < parallel_threshold ? 1 : c.threads, [&](std::int64_t begin, std::int64_t end) {
      if (begin == end) return;
      Position<R> at = position<R>(l, inner);
      Rows walk{l, at};
      walk.seek(begin / chunks);
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t first = t % chunks * chunk;
        const std::int64_t last = first + chunk < length ? first + chunk : length;
        part(at, first, last, faults);
        if (last == length) walk.next();
      }
    });
  }

 private:
  static void part(const Position<R> at, std::int64_t i, std::int64_t end, const Faults& faults) {
    using L = lanes_of<R>;
    const values_of<ScalarLanes, R> none{};
    for (; i + L::size <= end; i += L::size) {
      values_of<L, R> v;
      Evaluator<R>::template elements<L, 0>(at, i, v, none, nullptr, nullptr, 0, faults);
    }
    if constexpr (L::size > 1)
      for (; i < end; ++i) {
        values_of<ScalarLanes, R> v;
        Evaluator<R>::template elements<ScalarLanes, 0>(at, i, v, v, nullptr, nullptr, 0, faults);
      }
  }
};

}  // namespace tg::cpu
