// Sorting on the CPU: each row as integer keys with their positions, rows over threads.
#pragma once

#include <algorithm>

#include "typegrad/backends/cpu/evaluate.hpp"
#include "typegrad/kernels/routine.hpp"

namespace tg::cpu {

template <class R>
struct SortKernel {
  using Traits = kernel::RoutineTraits<typename R::program>;
  using T = typename Traits::first;
  using Key = typename kernel::SortKey<T>::type;
  static constexpr std::int64_t count = SortAttribute::of(Traits::attribute).count;
  static constexpr bool descending = SortAttribute::of(Traits::attribute).descending;

  // Ordered by key, then by position: an unstable sort of these is a stable one of the rows.
  struct Wide {
    std::uint64_t key, position;
    bool operator<(const Wide& o) const { return key != o.key ? key < o.key : position < o.position; }
  };
  using Entry = std::conditional_t<sizeof(Key) == 4, std::uint64_t, Wide>;

  static std::int64_t scratch(const kernel::Launch& l, int threads) {
    return threads * l.extents[1] * static_cast<std::int64_t>(sizeof(Entry));
  }

  static void run(const kernel::Launch& l, const Context& c) {
    const std::int64_t rows = l.extents[0], length = l.extents[1];
    const T* const x = reinterpret_cast<const T*>(l.pointers[0]);
    auto* const result = reinterpret_cast<std::int64_t*>(l.pointers[Traits::result_slot]);
    parallel(rows, rows * length < parallel_threshold / 8 ? 1 : c.threads, [&](std::int64_t begin, std::int64_t end) {
      Entry* const entries = reinterpret_cast<Entry*>(c.scratch) + thread_index() * length;
      for (std::int64_t row = begin; row < end; ++row) {
        for (std::int64_t i = 0; i < length; ++i) {
          const Key key = kernel::SortKey<T>::of(x[row * length + i], descending);
          if constexpr (sizeof(Key) == 4) entries[i] = (std::uint64_t{key} << 32) | static_cast<std::uint64_t>(i);
          else entries[i] = {key, static_cast<std::uint64_t>(i)};
        }
        if (count < length) std::nth_element(entries, entries + count, entries + length);
        std::sort(entries, entries + count);
        for (std::int64_t i = 0; i < count; ++i) {
          if constexpr (sizeof(Key) == 4) result[row * count + i] = static_cast<std::int64_t>(entries[i] & 0xffffffffu);
          else result[row * count + i] = static_cast<std::int64_t>(entries[i].position);
        }
      }
    });
  }
};

}  // namespace tg::cpu
