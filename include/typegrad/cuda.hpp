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
  static std::span<const cuda::Entry> entries() {
    static const auto linked = [] {
      const auto compiled = []<std::size_t... R>(std::index_sequence<R...>) {
        return std::array<cuda::Entry, sizeof...(R)>{cuda::entry(kernel::region_at<Regions<T>, static_cast<int>(R)>::get())...};
      }(std::make_index_sequence<Regions<T>::size>{});
      return link<cuda::Entry>(program_plan<T>(), Regions<T>::words, Regions<T>::starts, compiled);
    }();
    return linked;
  }

  DeviceProgram() : executor(program_plan<T>(), entries()) {}
  cuda::Executor executor;
  void run(const std::vector<std::int64_t>& extents, const std::vector<Argument>& arguments, const std::vector<Argument>& results, void* const* inputs,
           void* const* outputs) {
    executor.run(extents, inputs, arguments.size(), outputs, results.size());
  }
};

}  // namespace tg
