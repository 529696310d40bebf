// Row kernels on the GPU: a group of threads folds a row with CUB and goes on with what depends on the result.
#pragma once

#include <cub/block/block_reduce.cuh>
#include <cub/warp/warp_reduce.cuh>

#include "typegrad/backends/cuda/context.hpp"

namespace tg::cuda {

inline constexpr int row_threads = 256;
inline constexpr int warps = row_threads / 32;

// A value reduced over a group of threads, known to all of them.
template <int Group, class T, class F>
__device__ T all_reduce(T value, F f) {
  if constexpr (Group == 32) {
    using Reduce = cub::WarpReduce<T>;
    __shared__ typename Reduce::TempStorage storage[warps];
    __shared__ T result[warps];
    const int w = static_cast<int>(threadIdx.x) / 32;
    const T r = Reduce(storage[w]).Reduce(value, f);
    if (threadIdx.x % 32 == 0) result[w] = r;
    __syncwarp();
    const T all = result[w];
    __syncwarp();
    return all;
  } else {
    using Reduce = cub::BlockReduce<T, Group>;
    __shared__ typename Reduce::TempStorage storage;
    __shared__ T result;
    const T r = Reduce(storage).Reduce(value, f);
    if (threadIdx.x == 0) result = r;
    __syncthreads();
    const T all = result;
    __syncthreads();
    return all;
  }
}

// Elements [first, last) of the reduced axes, linear, shared by the group.
template <int P, int Group, class R>
__device__ Totals<R, P> fold_part(const Arguments<R>& a, const Position<R>& row_at, const Values<R>& row, std::int64_t first, std::int64_t last) {
  Totals<R, P> t;
  t.reset();
  for (std::int64_t i = first + threadIdx.x % Group; i < last; i += Group) {
    Position<R> at = row_at;
    std::int64_t index = i;
    if constexpr (R::reduced > 1) {
      const std::int64_t inner = a.extents[R::axes - 1];
      seek<R::kept, R::axes - 1>(at, a, i / inner);
      index = i % inner;
    }
    Values<R> v[1];
    Evaluator<R>::template elements<P, 1>(a, at, index, v, row, 0);
    t.add(v[0], row);
  }
  return t;
}

template <int P, int Group, class R>
__device__ void row_pass(const Arguments<R>& a, const Position<R>& at, Values<R>& row, std::int64_t length) {
  Totals<R, P> t = fold_part<P, Group>(a, at, row, 0, length);
  if constexpr (kernel::Folds<R, P>::count > 0) {
    t = all_reduce<Group>(t, Merge<R, P>{});
    t.finish(row);
  }
  Evaluator<R>::template rows<P + 1>(a, at, 0, row, threadIdx.x % Group == 0);
}
template <int Group, class R, int... P>
__device__ void row_passes(const Arguments<R>& a, const Position<R>& at, Values<R>& row, std::int64_t length, std::integer_sequence<int, P...>) {
  (row_pass<P, Group>(a, at, row, length), ...);
}

template <class R, int Group>
__global__ void __launch_bounds__(row_threads) row_kernel(Arguments<R> a, std::int64_t rows, std::int64_t length) {
  constexpr int groups = row_threads / Group;
  if (unreadable(a)) return;
  for (std::int64_t r = blockIdx.x * static_cast<std::int64_t>(groups) + threadIdx.x / Group; r < rows; r += static_cast<std::int64_t>(gridDim.x) * groups) {
    Position<R> at = origin(a);
    seek<0, R::kept>(at, a, r);
    Values<R> row;
    Evaluator<R>::template rows<0>(a, at, 0, row, threadIdx.x % Group == 0);
    row_passes<Group>(a, at, row, length, std::make_integer_sequence<int, R::passes>{});
  }
}

// Few long rows: blocks fold parts of fixed length, whose results are then folded in a fixed order.
template <class R>
__global__ void __launch_bounds__(row_threads) row_part_kernel(Arguments<R> a, std::int64_t length, std::int64_t part) {
  if (unreadable(a)) return;
  const std::int64_t r = blockIdx.y, first = blockIdx.x * part;
  Position<R> at = origin(a);
  seek<0, R::kept>(at, a, r);
  Values<R> row;
  Evaluator<R>::template rows<0>(a, at, 0, row, false);
  const std::int64_t last = first + part < length ? first + part : length;
  const Totals<R, 0> t = all_reduce<row_threads>(fold_part<0, row_threads>(a, at, row, first, last), Merge<R, 0>{});
  if (threadIdx.x == 0) reinterpret_cast<Totals<R, 0>*>(a.partial)[r * gridDim.x + blockIdx.x] = t;
}
template <class R>
__global__ void __launch_bounds__(row_threads) row_finish_kernel(Arguments<R> a, std::int64_t parts) {
  if (unreadable(a)) return;
  const std::int64_t r = blockIdx.x;
  Position<R> at = origin(a);
  seek<0, R::kept>(at, a, r);
  Values<R> row;
  Evaluator<R>::template rows<0>(a, at, 0, row, threadIdx.x == 0);
  Totals<R, 0> t;
  t.reset();
  for (std::int64_t i = threadIdx.x; i < parts; i += row_threads) t.merge(reinterpret_cast<const Totals<R, 0>*>(a.partial)[r * parts + i]);
  t = all_reduce<row_threads>(t, Merge<R, 0>{});
  t.finish(row);
  Evaluator<R>::template rows<1>(a, at, 0, row, threadIdx.x == 0);
}

template <class R>
struct RowKernel {
  static constexpr std::int64_t part = 8192;
  static constexpr std::int64_t few_rows = 128;

  static bool splits(std::int64_t rows, std::int64_t length) { return R::passes == 1 && R::phases == 1 && rows <= few_rows && length > 2 * part; }
  static std::int64_t scratch(const kernel::Launch& l) {
    const std::int64_t rows = count<R, 0, R::kept>(l), length = count<R, R::kept, R::axes>(l);
    return splits(rows, length) ? rows * ((length + part - 1) / part) * static_cast<std::int64_t>(sizeof(Totals<R, 0>)) : 0;
  }
  static void run(const kernel::Launch& l, const Context& c) {
    const std::int64_t rows = count<R, 0, R::kept>(l), length = count<R, R::kept, R::axes>(l);
    if (rows == 0) return;
    const Arguments<R> a = arguments<R>(l, c);
    if (splits(rows, length)) {
      if constexpr (R::passes == 1 && R::phases == 1) {
        const std::int64_t parts = (length + part - 1) / part;
        row_part_kernel<R><<<dim3(static_cast<unsigned>(parts), static_cast<unsigned>(rows)), row_threads, 0, c.stream>>>(a, length, part);
        check(cudaGetLastError(), "cannot launch a reduction");
        row_finish_kernel<R><<<static_cast<unsigned>(rows), row_threads, 0, c.stream>>>(a, parts);
      }
    } else if (length <= 1024) {
      const std::int64_t blocks = (rows + warps - 1) / warps;
      row_kernel<R, 32><<<static_cast<unsigned>(blocks < max_blocks ? blocks : max_blocks), row_threads, 0, c.stream>>>(a, rows, length);
    } else {
      row_kernel<R, row_threads><<<static_cast<unsigned>(rows < max_blocks ? rows : max_blocks), row_threads, 0, c.stream>>>(a, rows, length);
    }
    check(cudaGetLastError(), "cannot launch a row kernel");
  }
  static constexpr std::int64_t max_blocks = 65536;
};

}  // namespace tg::cuda
