// Column kernels on the CPU: reductions over leading axes, several neighbouring columns at a time.
#pragma once

#include "typegrad/backends/cpu/fold.hpp"

namespace tg::cpu {

template <class R>
struct ColumnKernel {
  static_assert(R::phases == 1, "a pass over columns has one phase of folds");
  static constexpr int inner = R::kept - 1;
  static constexpr std::int64_t chunk = 256;  // reduced elements folded in the type of the elements before they are widened
  using L = lanes_of<R>;
  static constexpr int unroll = 4;
  static constexpr std::int64_t width = L::size > 1 ? unroll * L::size : 16;  // columns in a block
  using Wide = std::array<Totals<R, 0>, static_cast<std::size_t>(width)>;

  static std::int64_t scratch(const kernel::Launch& l, int) {
    const std::int64_t n = parts(l);
    return n > 1 ? Walk<R, 0, inner>::count(l) * blocks(l) * n * static_cast<std::int64_t>(sizeof(Wide)) : 0;
  }

  static void run(const kernel::Launch& l, const Context& c) {
    const std::int64_t outer = Walk<R, 0, inner>::count(l), length = l.extents[inner];
    const std::int64_t count = Walk<R, R::kept, R::axes>::count(l);
    if (outer == 0 || length == 0) return;
    const std::int64_t n = parts(l), per_row = blocks(l), items = outer * per_row;
    const Faults faults{c.fault};
    const int threads = outer * length * count < parallel_threshold ? 1 : c.threads;
    Wide* partial = reinterpret_cast<Wide*>(c.scratch);
    if (n > 1)
      parallel(items * n, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t) block(l, t / n, t % n * chunk, count, faults, &partial[t], true);
      });
    parallel(items, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        Wide total;
        if (n <= 1) {
          block(l, b, 0, count, faults, &total, true);
        } else {
          total = partial[b * n];
          for (std::int64_t t = 1; t < n; ++t)
            for (std::size_t i = 0; i < total.size(); ++i) total[i].add(partial[b * n + t][i]);
        }
        block(l, b, 0, count, faults, &total, false);
      }
    });
  }

 private:
  static std::int64_t blocks(const kernel::Launch& l) { return (l.extents[inner] + width - 1) / width; }
  static std::int64_t parts(const kernel::Launch& l) { return (Walk<R, R::kept, R::axes>::count(l) + chunk - 1) / chunk; }

  // Folds elements [first, first + chunk) of the reduced axes of one block into `total`, or, if not `fold`, finishes the
  // block with the totals.
  static void block(const kernel::Launch& l, std::int64_t b, std::int64_t first, std::int64_t count, const Faults& faults, Wide* total,
                    bool fold) {
    const std::int64_t per_row = blocks(l), begin = b % per_row * width;
    const std::int64_t end = begin + width < l.extents[inner] ? begin + width : l.extents[inner];
    const std::int64_t last = first + chunk < count ? first + chunk : count;
    Position<R> at = position<R>(l, inner);
    Walk<R, 0, inner> walk{l, at};
    walk.seek(b / per_row);
    if (!fold) {
      for (std::int64_t i = begin; i < end; ++i) {
        values_of<ScalarLanes, R> row;
        Evaluator<R>::template row<ScalarLanes, 0>(at, i, row, faults);
        (*total)[static_cast<std::size_t>(i - begin)].finish(row);
        Evaluator<R>::template row<ScalarLanes, 1>(at, i, row, faults);
      }
      return;
    }
    for (auto& t : *total) t.reset();
    if (first >= last) return;
    std::int64_t i = begin;
    if constexpr (L::size > 1) {
      if (i + unroll * L::size <= end) {
        columns<L, unroll>(l, at, i, first, last, faults, total->data());
        i += unroll * L::size;
      }
      for (; i + L::size <= end; i += L::size) columns<L, 1>(l, at, i, first, last, faults, total->data() + (i - begin));
    }
    for (; i < end; ++i) columns<ScalarLanes, 1>(l, at, i, first, last, faults, total->data() + (i - begin));
  }

  template <class V, int U>
  static void columns(const kernel::Launch& l, Position<R> at, std::int64_t i, std::int64_t first, std::int64_t last, const Faults& faults,
                      Totals<R, 0>* total) {
    values_of<V, R> row[U];
    for (int u = 0; u < U; ++u) Evaluator<R>::template row<V, 0>(at, i + u * V::size, row[u], faults);
    Accumulators<R, 0, V> sum[U];
    for (auto& s : sum) s.reset();
    Walk<R, R::kept, R::axes> walk{l, at};
    walk.seek(first);
    for (std::int64_t r = first; r < last; ++r, walk.next())
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u) {
        values_of<V, R> v;
        Evaluator<R>::template elements<V, 0>(at, i + u * V::size, v, row[u], nullptr, nullptr, 0, faults);
        sum[u].add(v, row[u]);
      }
    for (int u = 0; u < U; ++u)
      Folds<R, 0>::each([&]<int F>() {
        using T = typename Folds<R, 0>::template type<F>;
        compute_t<T> lane[V::size];
        if constexpr (V::size == 1) lane[0] = slot<F>(sum[u]);
        else V::template store<compute_t<T>, Access::contiguous>(lane, 1, slot<F>(sum[u]));
        for (int k = 0; k < V::size; ++k) slot<F>(total[u * V::size + k]) = static_cast<std::remove_cvref_t<decltype(slot<F>(total[0]))>>(lane[k]);
      });
  }
};

}  // namespace tg::cpu
