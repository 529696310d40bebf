// The CUDA back end: include it in files that nvcc compiles, after which tg::Cuda is a device like any other.
#pragma once

#if !defined(__CUDACC__)
#error "typegrad/cuda.hpp is compiled by nvcc"
#endif

#include "typegrad/backends/cuda/executor.hpp"
#include "typegrad/runtime/program.hpp"

namespace tg {

template <class T>
struct DeviceProgram<Cuda, T> {
  using Plan = Frozen<T>;
  static constexpr std::size_t kernels = Plan::kernels.size();
  static std::span<const cuda::Entry> entries() {
    static const auto table = []<std::size_t... K>(std::index_sequence<K...>) {
      return std::array<cuda::Entry, kernels>{cuda::entry(kernel::region_of<Plan, static_cast<int>(K)>::get())...};
    }(std::make_index_sequence<kernels>{});
    return table;
  }

  DeviceProgram() : executor(Plan::view(), entries()) {}
  cuda::Executor executor;
  void run(const std::vector<std::int64_t>& extents, const std::vector<Argument>& arguments, const std::vector<Argument>& results, void* const* inputs,
           void* const* outputs) {
    executor.run(extents, inputs, arguments.size(), outputs, results.size());
  }
};

}  // namespace tg
