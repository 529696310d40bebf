// Sorting on the GPU: all rows at once by CUB's radix sort, with the row in the keys' upper bits where there is room.
#pragma once

#include "typegrad/backends/cuda/radix_sort.hpp"
#include "typegrad/kernels/routine.hpp"

namespace tg::cuda {

// Kernels take element types, not regions: programs that sort the same types share them.
template <class T>
__global__ void __launch_bounds__(linear_threads) sort_keys_kernel(const T* x, RadixSort::Key* keys, RadixSort::Value* values, std::int64_t n, std::int64_t length,
                                                                   bool descending) {
  using Key = kernel::SortKey<T>;
  const std::int64_t i = blockIdx.x * std::int64_t{linear_threads} + threadIdx.x;
  if (i >= n) return;
  RadixSort::Key key = Key::of(x[i], descending);
  if constexpr (sizeof(typename Key::type) == 4) key |= static_cast<RadixSort::Key>(i / length) << 32;
  keys[i] = key;
  values[i] = static_cast<RadixSort::Value>(i);
}
template <class = void>
__global__ void __launch_bounds__(linear_threads) sort_rows_kernel(RadixSort::Key* keys, const RadixSort::Value* values, std::int64_t n, std::int64_t length) {
  const std::int64_t i = blockIdx.x * std::int64_t{linear_threads} + threadIdx.x;
  if (i < n) keys[i] = values[i] / length;
}
template <class = void>
__global__ void __launch_bounds__(linear_threads) sort_result_kernel(const RadixSort::Value* values, std::int64_t* result, std::int64_t n, std::int64_t length,
                                                                     std::int64_t count) {
  const std::int64_t i = blockIdx.x * std::int64_t{linear_threads} + threadIdx.x;
  if (i < n) result[i] = values[i / count * length + i % count] % length;
}

template <class R>
struct SortKernel {
  using Traits = kernel::RoutineTraits<typename R::program>;
  using T = typename Traits::first;
  static constexpr std::int64_t count = SortAttribute::of(Traits::attribute).count;
  static constexpr bool descending = SortAttribute::of(Traits::attribute).descending;

  static std::int64_t scratch(const kernel::Launch& l) { return RadixSort(l.extents[0] * l.extents[1]).bytes(); }

  static void run(const kernel::Launch& l, const Context& c) {
    const std::int64_t rows = l.extents[0], length = l.extents[1], n = rows * length, results = rows * count;
    if (results == 0) return;
    RadixSort sort(n, c.scratch);
    sort_keys_kernel<T><<<linear_blocks(n), linear_threads, 0, c.stream>>>(reinterpret_cast<const T*>(l.pointers[0]), sort.keys(), sort.values(), n, length, descending);
    check(cudaGetLastError(), "cannot launch a sort");
    if constexpr (sizeof(typename kernel::SortKey<T>::type) == 4) {
      sort.sort(32 + RadixSort::bits(rows), c.stream);
    } else {
      sort.sort(64, c.stream);
      if (rows > 1) {
        sort_rows_kernel<><<<linear_blocks(n), linear_threads, 0, c.stream>>>(sort.keys(), sort.values(), n, length);
        check(cudaGetLastError(), "cannot launch a sort");
        sort.sort(RadixSort::bits(rows), c.stream);
      }
    }
    sort_result_kernel<><<<linear_blocks(results), linear_threads, 0, c.stream>>>(
        sort.values(), reinterpret_cast<std::int64_t*>(l.pointers[Traits::result_slot]), results, length, count);
    check(cudaGetLastError(), "cannot launch a sort");
  }
};

}  // namespace tg::cuda
