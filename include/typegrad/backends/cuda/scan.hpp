// Scans on the GPU: blocks scan parts of fixed length with CUB, and long rows take two rounds, the first of which scans the
// parts' totals. h = a h + b composes associatively (Blelloch, "Prefix sums and their applications", 1990, section 1.4).
#pragma once

#include <cub/block/block_scan.cuh>

#include "typegrad/backends/cuda/context.hpp"
#include "typegrad/kernels/routine.hpp"

namespace tg::cuda {

inline constexpr int scan_threads = 256;

// What is combined along a row, and how an element is read and written.
template <class T>
struct SumScan {
  using C = compute_t<T>;
  using Part = kernel::running_sum_t<T>;
  __device__ static Part identity() { return Part{0}; }
  __device__ static Part read(const T* x, const T*, std::int64_t i) { return static_cast<Part>(static_cast<C>(x[i])); }
  __device__ static T result(Part p) { return static_cast<T>(static_cast<C>(p)); }
  __device__ Part operator()(const Part& x, const Part& y) const { return math::add(x, y); }
};
template <class T>
struct LinearScan {
  using C = compute_t<T>;
  struct Part {
    C a, b;
  };
  __device__ static Part identity() { return {C{1}, C{0}}; }
  __device__ static Part read(const T* a, const T* b, std::int64_t i) { return {static_cast<C>(a[i]), static_cast<C>(b[i])}; }
  __device__ static T result(Part p) { return static_cast<T>(p.b); }
  __device__ Part operator()(const Part& x, const Part& y) const { return {math::mul(x.a, y.a), math::add(math::mul(y.a, x.b), y.b)}; }
};

// Block (part, row) goes through its part of the row. Totals: only the part's total is wanted, in totals[row][part].
// Otherwise the results are written; they start from what the totals before the part, already scanned, come to.
template <class S, class T, bool Totals>
__global__ void __launch_bounds__(scan_threads) scan_kernel(const T* a, const T* b, T* result, typename S::Part* totals, std::int64_t rows, std::int64_t length,
                                                            std::int64_t part, std::int64_t parts, bool reverse) {
  using Part = typename S::Part;
  using Scan = cub::BlockScan<Part, scan_threads>;
  __shared__ typename Scan::TempStorage storage;
  const std::int64_t first = blockIdx.x * part, last = first + part < length ? first + part : length;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    Part carry = !Totals && first > 0 ? totals[row * parts + blockIdx.x - 1] : S::identity();
    for (std::int64_t start = first; start < last; start += scan_threads) {
      const std::int64_t t = start + threadIdx.x, i = row * length + (reverse ? length - 1 - t : t);
      Part x = t < last ? S::read(a, b, i) : S::identity(), total;
      Scan(storage).InclusiveScan(x, x, S{}, total);
      if (!Totals && t < last) result[i] = S::result(S{}(carry, x));
      carry = S{}(carry, total);
      __syncthreads();
    }
    if (Totals && threadIdx.x == 0) totals[row * parts + blockIdx.x] = carry;
  }
}
// Scans each row's totals in place, one block to a row.
template <class S>
__global__ void __launch_bounds__(scan_threads) scan_totals_kernel(typename S::Part* totals, std::int64_t rows, std::int64_t parts) {
  using Part = typename S::Part;
  using Scan = cub::BlockScan<Part, scan_threads>;
  __shared__ typename Scan::TempStorage storage;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    Part carry = S::identity();
    for (std::int64_t start = 0; start < parts; start += scan_threads) {
      const std::int64_t p = start + threadIdx.x;
      Part x = p < parts ? totals[row * parts + p] : S::identity(), total;
      Scan(storage).InclusiveScan(x, x, S{}, total);
      if (p < parts) totals[row * parts + p] = S{}(carry, x);
      carry = S{}(carry, total);
      __syncthreads();
    }
  }
}

template <class R>
struct ScanKernel {
  using Traits = kernel::RoutineTraits<typename R::program>;
  using T = typename Traits::result;
  using S = std::conditional_t<Traits::op == Op::CumSum, SumScan<T>, LinearScan<T>>;
  using Part = typename S::Part;
  static constexpr std::int64_t part = 4096, max_rows = 65535;

  static std::int64_t parts(const kernel::Launch& l) { return (l.extents[1] + part - 1) / part; }
  static std::int64_t scratch(const kernel::Launch& l) {
    return parts(l) > 1 ? l.extents[0] * parts(l) * static_cast<std::int64_t>(sizeof(Part)) : 0;
  }

  static void run(const kernel::Launch& l, const Context& c) {
    const std::int64_t rows = l.extents[0], length = l.extents[1], n = parts(l);
    if (rows == 0 || length == 0) return;
    const T* const a = reinterpret_cast<const T*>(l.pointers[0]);
    const T* const b = reinterpret_cast<const T*>(l.pointers[Traits::result_slot - 1]);
    T* const result = reinterpret_cast<T*>(l.pointers[Traits::result_slot]);
    Part* const totals = reinterpret_cast<Part*>(c.scratch);
    constexpr bool reverse = Traits::attribute != 0;
    const auto blocks = static_cast<unsigned>(rows < max_rows ? rows : max_rows);
    const dim3 grid(static_cast<unsigned>(n), blocks);
    if (n > 1) {
      scan_kernel<S, T, true><<<grid, scan_threads, 0, c.stream>>>(a, b, result, totals, rows, length, part, n, reverse);
      check(cudaGetLastError(), "cannot launch a scan");
      scan_totals_kernel<S><<<blocks, scan_threads, 0, c.stream>>>(totals, rows, n);
      check(cudaGetLastError(), "cannot launch a scan");
    }
    scan_kernel<S, T, false><<<grid, scan_threads, 0, c.stream>>>(a, b, result, totals, rows, length, part, n, reverse);
    check(cudaGetLastError(), "cannot launch a scan");
  }
};

}  // namespace tg::cuda
