// Column kernels on the GPU: each block folds some rows of 32 neighbouring columns; parts are folded in a fixed order.
#pragma once

#include "typegrad/backends/cuda/context.hpp"

namespace tg::cuda {

inline constexpr int column_width = 32, column_height = 8;

template <class R>
__global__ void __launch_bounds__(column_width* column_height) column_kernel(Arguments<R> a, std::int64_t length, std::int64_t part, std::int64_t parts) {
  if (unreadable(a)) return;
  constexpr int inner = R::kept - 1;
  __shared__ Totals<R, 0> shared[column_height][column_width];
  const std::int64_t width = a.extents[inner], blocks = (width + column_width - 1) / column_width;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) % blocks * column_width + threadIdx.x, outer = static_cast<std::int64_t>(blockIdx.x) / blocks;
  Position<R> base = origin(a);
  if constexpr (inner > 0) seek<0, inner>(base, a, outer);
  Totals<R, 0> t;
  t.reset();
  Values<R> row;
  if (column < width) {
    Evaluator<R>::template rows<0>(a, base, column, row, false);
    const std::int64_t first = blockIdx.y * part, last = first + part < length ? first + part : length;
    for (std::int64_t i = first + threadIdx.y; i < last; i += column_height) {
      Position<R> at = base;
      seek<R::kept, R::axes>(at, a, i);
      Values<R> v[1];
      Evaluator<R>::template elements<0, 1>(a, at, column, v, row, 0);
      t.add(v[0], row);
    }
  }
  shared[threadIdx.y][threadIdx.x] = t;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  for (int y = 1; y < column_height; ++y) t.merge(shared[y][threadIdx.x]);
  if (parts > 1) {
    reinterpret_cast<Totals<R, 0>*>(a.partial)[(outer * width + column) * parts + blockIdx.y] = t;
    return;
  }
  Evaluator<R>::template rows<0>(a, base, column, row, true);
  t.finish(row);
  Evaluator<R>::template rows<1>(a, base, column, row, true);
}

template <class R>
__global__ void __launch_bounds__(256) column_finish_kernel(Arguments<R> a, std::int64_t parts, std::int64_t columns) {
  if (unreadable(a)) return;
  constexpr int inner = R::kept - 1;
  const std::int64_t c = blockIdx.x * std::int64_t{256} + threadIdx.x;
  if (c >= columns) return;
  Position<R> at = origin(a);
  if constexpr (inner > 0) seek<0, inner>(at, a, c / a.extents[inner]);
  const std::int64_t column = c % a.extents[inner];
  Values<R> row;
  Evaluator<R>::template rows<0>(a, at, column, row, true);
  Totals<R, 0> t;
  t.reset();
  for (std::int64_t p = 0; p < parts; ++p) t.merge(reinterpret_cast<const Totals<R, 0>*>(a.partial)[c * parts + p]);
  t.finish(row);
  Evaluator<R>::template rows<1>(a, at, column, row, true);
}

template <class R>
struct ColumnKernel {
  static constexpr std::int64_t part = 1024;
  static std::int64_t parts(const kernel::Launch& l) {
    const std::int64_t n = (count<R, R::kept, R::axes>(l) + part - 1) / part;
    return n < 1 ? 1 : n;
  }
  static std::int64_t scratch(const kernel::Launch& l) {
    return parts(l) > 1 ? count<R, 0, R::kept>(l) * parts(l) * static_cast<std::int64_t>(sizeof(Totals<R, 0>)) : 0;
  }
  static void run(const kernel::Launch& l, const Context& c) {
    const std::int64_t columns = count<R, 0, R::kept>(l), length = count<R, R::kept, R::axes>(l);
    if (columns == 0) return;
    const Arguments<R> a = arguments<R>(l, c);
    const std::int64_t n = parts(l), blocks = (l.extents[R::kept - 1] + column_width - 1) / column_width * count<R, 0, R::kept - 1>(l);
    column_kernel<R><<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(n)), dim3(column_width, column_height), 0, c.stream>>>(a, length, part, n);
    check(cudaGetLastError(), "cannot launch a column kernel");
    if (n == 1) return;
    column_finish_kernel<R><<<static_cast<unsigned>((columns + 255) / 256), 256, 0, c.stream>>>(a, n, columns);
    check(cudaGetLastError(), "cannot launch a column kernel");
  }
};

}  // namespace tg::cuda
