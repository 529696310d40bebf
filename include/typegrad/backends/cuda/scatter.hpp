// Scatters on the GPU. Integers go to their places by atomics. Updates of other types are sorted by position first, and
// one thread adds up those of a position in their order: the result is the same in every run.
#pragma once

#include "typegrad/backends/cuda/radix_sort.hpp"
#include "typegrad/kernels/routine.hpp"

namespace tg::cuda {

template <bool Adds, class T>
__global__ void __launch_bounds__(linear_threads) scatter_atomic_kernel(const T* updates, const std::int64_t* positions, T* result, std::int64_t n,
                                                                        const kernel::IndexFault* fault) {
  if (faulty(fault)) return;
  const std::int64_t i = blockIdx.x * std::int64_t{linear_threads} + threadIdx.x;
  if (i >= n) return;
  if constexpr (!Adds) {
    atomicMax(reinterpret_cast<long long*>(result + positions[i]), static_cast<long long>(updates[i]));
  } else {
    using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
    atomicAdd(reinterpret_cast<Word*>(result + positions[i]), static_cast<Word>(updates[i]));
  }
}

template <class = void>
__global__ void __launch_bounds__(linear_threads) scatter_keys_kernel(const std::int64_t* positions, RadixSort::Key* keys, RadixSort::Value* order, std::int64_t n) {
  const std::int64_t i = blockIdx.x * std::int64_t{linear_threads} + threadIdx.x;
  if (i >= n) return;
  keys[i] = static_cast<RadixSort::Key>(positions[i]);
  order[i] = static_cast<RadixSort::Value>(i);
}
template <class T>
__global__ void __launch_bounds__(linear_threads) scatter_add_kernel(const T* updates, const RadixSort::Key* keys, const RadixSort::Value* order, T* result,
                                                                     std::int64_t n, const kernel::IndexFault* fault) {
  if (faulty(fault)) return;
  const std::int64_t i = blockIdx.x * std::int64_t{linear_threads} + threadIdx.x;
  if (i >= n) return;
  const RadixSort::Key at = keys[i];
  if (i > 0 && keys[i - 1] == at) return;
  compute_t<T> total{};
  for (std::int64_t k = i; k < n && keys[k] == at; ++k) total = math::add(total, static_cast<compute_t<T>>(updates[order[k]]));
  result[at] = static_cast<T>(total);
}

template <class R>
struct ScatterKernel {
  using Traits = kernel::RoutineTraits<typename R::program>;
  using T = typename Traits::result;
  static constexpr bool adds = Traits::op == Op::ScatterAdd;
  static constexpr bool atomic = is_integer(dtype_of<T>) && sizeof(T) >= 4;

  static std::int64_t scratch(const kernel::Launch& l) {
    if constexpr (atomic) return 0;
    else return RadixSort(l.extents[0]).bytes();
  }

  static void run(const kernel::Launch& l, const Context& c) {
    const std::int64_t n = l.extents[0], size = l.extents[1];
    const T* const updates = reinterpret_cast<const T*>(l.pointers[0]);
    const auto* const positions = reinterpret_cast<const std::int64_t*>(l.pointers[1]);
    T* const result = reinterpret_cast<T*>(l.pointers[2]);
    if (size == 0) return;
    // All bits set is -1.
    check(cudaMemsetAsync(result, adds ? 0 : 0xff, static_cast<std::size_t>(size) * sizeof(T), c.stream), "cudaMemsetAsync");
    if (n == 0) return;
    if constexpr (atomic) {
      scatter_atomic_kernel<adds><<<linear_blocks(n), linear_threads, 0, c.stream>>>(updates, positions, result, n, c.fault);
    } else {
      RadixSort sort(n, c.scratch);
      scatter_keys_kernel<><<<linear_blocks(n), linear_threads, 0, c.stream>>>(positions, sort.keys(), sort.values(), n);
      check(cudaGetLastError(), "cannot launch a scatter");
      sort.sort(RadixSort::bits(size), c.stream);
      scatter_add_kernel<<<linear_blocks(n), linear_threads, 0, c.stream>>>(updates, sort.keys(), sort.values(), result, n, c.fault);
    }
    check(cudaGetLastError(), "cannot launch a scatter");
  }
};

}  // namespace tg::cuda
