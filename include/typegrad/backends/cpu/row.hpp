// Row kernels on the CPU: reductions along the innermost axes, and what is computed from them, row by row.
#pragma once

#include "typegrad/backends/cpu/fold.hpp"

namespace tg::cpu {

template <class R>
struct RowKernel {
  static constexpr int inner = R::axes - 1;
  // A row is folded in parts of this many elements, whose results are added in order: the same for any number of threads.
  static constexpr std::int64_t chunk = 8192;
  using Rows = values_of<ScalarLanes, R>;
  using Keep = kept_t<R>;

  static std::int64_t scratch(const kernel::Launch& l, int threads) {
    return align(threads * kept_bytes(l)) + parts(l) * static_cast<std::int64_t>(sizeof(Totals<R, 0>));
  }

  static void run(const kernel::Launch& l, const Context& c) {
    using Outer = Walk<R, 0, R::kept>;
    const std::int64_t rows = Outer::count(l), n = parts(l), length = Walk<R, R::kept, R::axes>::count(l);
    if (rows == 0) return;
    const Faults faults{c.fault};
    const int threads = rows * length < parallel_threshold ? 1 : c.threads;
    if (R::passes == 1 && n > 1 && rows < 2 * threads) return split_rows(l, c, rows, n, faults);
    parallel(rows, threads, [&](std::int64_t begin, std::int64_t end) {
      if (begin == end) return;
      std::byte* kept = c.scratch + thread_index() * kept_bytes(l);
      Position<R> at = position<R>(l, inner);
      Outer walk{l, at};
      walk.seek(begin);
      for (std::int64_t r = begin; r < end; ++r, walk.next()) {
        Rows row;
        Evaluator<R>::template row<ScalarLanes, 0>(at, 0, row, faults);
        all_passes(l, at, n, row, kept, faults, std::make_integer_sequence<int, R::passes>{});
      }
    });
  }

 private:
  static std::int64_t align(std::int64_t n) { return (n + 63) / 64 * 64; }
  static std::int64_t kept_bytes(const kernel::Launch& l) {
    return R::kept_values == 0 ? 0 : align(R::kept_values * Walk<R, R::kept, R::axes>::count(l) * static_cast<std::int64_t>(sizeof(Keep)));
  }
  static std::int64_t chunks(const kernel::Launch& l) { return (l.extents[inner] + chunk - 1) / chunk; }
  static std::int64_t parts(const kernel::Launch& l) { return Walk<R, R::kept, inner>::count(l) * chunks(l); }

  template <int... P>
  static void all_passes(const kernel::Launch& l, Position<R>& at, std::int64_t n, Rows& row, std::byte* kept, const Faults& faults,
                         std::integer_sequence<int, P...>) {
    (pass<P>(l, at, n, row, kept, faults), ...);
  }
  template <int P>
  static TYPEGRAD_ALWAYS_INLINE void pass(const kernel::Launch& l, Position<R>& at, std::int64_t n, Rows& row, std::byte* kept,
                                          const Faults& faults) {
    Totals<R, P> totals;
    totals.reset();
    Walk<R, R::kept, inner> walk{l, at};
    for (std::int64_t t = 0; t < n; ++t) {
      part<P>(l, at, t, row, kept, faults, totals);
      if ((t + 1) % chunks(l) == 0) walk.next();
    }
    totals.finish(row);
    Evaluator<R>::template row<ScalarLanes, P + 1>(at, 0, row, faults);
  }

  // Part t of a row; `at` is already at the outer reduced axes' place.
  template <int P>
  static TYPEGRAD_ALWAYS_INLINE void part(const kernel::Launch& l, const Position<R>& at, std::int64_t t, const Rows& row, std::byte* kept,
                                          const Faults& faults, Totals<R, P>& totals) {
    using L = lanes_of<R>;
    const std::int64_t n = chunks(l), length = l.extents[inner];
    const std::int64_t first = t % n * chunk, end = first + chunk < length ? first + chunk : length;
    const std::int64_t whole = kept_row(l);
    kept += t / n * length * static_cast<std::int64_t>(sizeof(Keep));
    std::int64_t i = first;
    if constexpr (L::size > 1) {
      // Short sums in the type of the elements, which are then widened.
      constexpr int unroll = 4;
      constexpr std::int64_t step = unroll * L::size;
      Accumulators<R, P, L> sum[unroll];
      while (i + step <= end) {
        const std::int64_t stop = i + 16 * step <= end ? i + 16 * step : i + (end - i) / step * step;
        for (auto& s : sum) s.reset();
        for (; i < stop; i += step) {
#pragma GCC unroll 4
          for (int u = 0; u < unroll; ++u) {
            values_of<L, R> v;
            Evaluator<R>::template elements<L, P>(at, i + u * L::size, v, row, nullptr, kept, whole, faults);
            sum[u].add(v, row);
          }
        }
        sum[0].merge(sum[1]);
        sum[2].merge(sum[3]);
        sum[0].merge(sum[2]);
        totals.add_lanes(sum[0]);
      }
      if (i + L::size <= end) {
        sum[0].reset();
        for (; i + L::size <= end; i += L::size) {
          values_of<L, R> v;
          Evaluator<R>::template elements<L, P>(at, i, v, row, nullptr, kept, whole, faults);
          sum[0].add(v, row);
        }
        totals.add_lanes(sum[0]);
      }
    }
    for (; i < end; ++i) {
      Rows v;
      Evaluator<R>::template elements<ScalarLanes, P>(at, i, v, row, nullptr, kept, whole, faults);
      totals.add_value(v, row);
    }
  }
  static std::int64_t kept_row(const kernel::Launch& l) { return R::kept_values == 0 ? 0 : Walk<R, R::kept, R::axes>::count(l); }

  // Few long rows that need one pass: threads share each row.
  static void split_rows(const kernel::Launch& l, const Context& c, std::int64_t rows, std::int64_t n, const Faults& faults) {
    if constexpr (R::passes == 1) {
      auto* partial = reinterpret_cast<Totals<R, 0>*>(c.scratch + align(c.threads * kept_bytes(l)));
      Position<R> at = position<R>(l, inner);
      Walk<R, 0, R::kept> walk{l, at};
      for (std::int64_t r = 0; r < rows; ++r, walk.next()) {
        Rows row;
        Evaluator<R>::template row<ScalarLanes, 0>(at, 0, row, faults);
        parallel(n, c.threads, [&](std::int64_t begin, std::int64_t end) {
          if (begin == end) return;
          Position<R> mine = at;
          Walk<R, R::kept, inner> reduced{l, mine};
          reduced.seek(begin / chunks(l));
          for (std::int64_t t = begin; t < end; ++t) {
            partial[t].reset();
            part<0>(l, mine, t, row, c.scratch, faults, partial[t]);
            if ((t + 1) % chunks(l) == 0) reduced.next();
          }
        });
        Totals<R, 0> totals;
        totals.reset();
        for (std::int64_t t = 0; t < n; ++t) totals.add(partial[t]);
        totals.finish(row);
        Evaluator<R>::template row<ScalarLanes, 1>(at, 0, row, faults);
      }
    }
  }
};

}  // namespace tg::cpu
