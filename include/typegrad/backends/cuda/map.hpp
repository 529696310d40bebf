// Map kernels on the GPU, which are also the epilogues of contractions: one value per element, V neighbours a thread.
#pragma once

#include "typegrad/backends/cuda/context.hpp"

namespace tg::cuda {

inline constexpr int map_threads = 256;

template <class R, int V>
__global__ void __launch_bounds__(map_threads) map_kernel(Arguments<R> a, std::int64_t groups) {
  // After a fault nothing is written, so that no update in place follows bad input.
  if (a.fault->position >= 0) return;
  constexpr int inner = R::kept - 1;
  const std::int64_t per_row = a.extents[inner] / V;
  Values<R> none;
  for (std::int64_t g = blockIdx.x * static_cast<std::int64_t>(map_threads) + threadIdx.x; g < groups; g += static_cast<std::int64_t>(gridDim.x) * map_threads) {
    Position<R> at = origin(a);
    std::int64_t index = g * V;
    if constexpr (inner > 0) {
      seek<0, inner>(at, a, g / per_row);
      index = g % per_row * V;
    }
    Values<R> v[V];
    Evaluator<R>::template elements<0, V>(a, at, index, v, none, g * V);
  }
}

template <class R>
struct MapKernel {
  static constexpr int inner = R::kept - 1;

  static std::int64_t scratch(const kernel::Launch&) { return 0; }

  static bool aligned(const kernel::Launch& l, int width) {
    if (l.extents[inner] % width != 0) return false;
    for (int s = 0; s < R::operands; ++s) {
      const std::int64_t size = R::element_size[static_cast<std::size_t>(s)];
      if (size == 0 || R::access[static_cast<std::size_t>(s)] != Access::contiguous) continue;
      const std::int64_t bytes = size * width < 16 ? size * width : 16;
      if (reinterpret_cast<std::uintptr_t>(l.pointers[s]) % static_cast<std::uintptr_t>(bytes) != 0) return false;
      for (int axis = 0; axis < inner; ++axis)
        if (l.strides[s * R::axes + axis] * size % bytes != 0) return false;
    }
    return true;
  }

  // Also called for the kept axes of a contraction.
  static void run(const kernel::Launch& l, const Context& c, const std::byte* product = nullptr) {
    std::int64_t n = 1;
    for (int axis = 0; axis < R::kept; ++axis) n *= l.extents[axis];
    if (n == 0) return;
    Arguments<R> a = arguments<R>(l, c);
    a.product = product;
    constexpr int width = 4;
    const std::int64_t groups = aligned(l, width) ? n / width : n;
    const std::int64_t blocks = (groups + map_threads - 1) / map_threads;
    const auto grid = static_cast<unsigned>(blocks < max_blocks ? blocks : max_blocks);
    if (groups < n) map_kernel<R, width><<<grid, map_threads, 0, c.stream>>>(a, groups);
    else map_kernel<R, 1><<<grid, map_threads, 0, c.stream>>>(a, groups);
    check(cudaGetLastError(), "cannot launch a map kernel");
  }
  static constexpr std::int64_t max_blocks = 132 * 16;
};

}  // namespace tg::cuda
