// The CUDA device: error checks, the stream everything runs on, and memory.
#pragma once

#include <cuda_runtime.h>

#include "typegrad/kernels/region.hpp"
#include "typegrad/runtime/memory.hpp"

namespace tg {

struct Cuda {};

// Devices that can be used; 0 without a driver.
inline int cuda_device_count() {
  int n = 0;
  if (cudaGetDeviceCount(&n) != cudaSuccess) {
    (void)cudaGetLastError();
    return 0;
  }
  return n;
}

namespace cuda {

inline void check(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  (void)cudaGetLastError();
  throw Error(tg::detail::concat_text("CUDA: ", what, ": ", cudaGetErrorString(e)));
}

// One stream for all programs and copies of the process: what it orders needs no other synchronisation.
inline cudaStream_t stream() {
  static const cudaStream_t s = [] {
    cudaStream_t r = nullptr;
    check(cudaStreamCreateWithFlags(&r, cudaStreamNonBlocking), "cannot create a stream");
    return r;
  }();
  return s;
}

// Faults that programs found on the device, in host memory the device writes to. They are thrown at the next point where
// the host waits for the device anyway.
inline kernel::IndexFault* pending_fault() {
  static kernel::IndexFault* const fault = [] {
    void* p = nullptr;
    check(cudaHostAlloc(&p, sizeof(kernel::IndexFault), cudaHostAllocDefault), "cannot allocate pinned memory");
    return new (p) kernel::IndexFault;
  }();
  return fault;
}

// Waits for the device and throws what it found.
inline void synchronize() {
  check(cudaStreamSynchronize(stream()), "a kernel failed");
  kernel::IndexFault& f = *pending_fault();
  if (f.position < 0) return;
  const kernel::IndexFault found = f;
  f = {};
  throw Error(tg::detail::concat_text("index ", found.value, " at position ", found.position, " is out of range: expected 0 to ",
                                      found.classes - 1));
}

}  // namespace cuda

template <>
struct DeviceMemory<Cuda> {
  static constexpr bool on_host = false;
  static void* allocate(std::size_t bytes) {
    void* p = nullptr;
    const cudaError_t e = cudaMalloc(&p, bytes);
    if (e == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      throw Error(detail::concat_text("out of GPU memory: cannot allocate ", bytes, " bytes"));
    }
    cuda::check(e, "cudaMalloc");
    return p;
  }
  static void release(void* p) noexcept { (void)cudaFree(p); }
  static void zero(void* p, std::size_t bytes) {
    if (bytes > 0) cuda::check(cudaMemsetAsync(p, 0, bytes, cuda::stream()), "cudaMemsetAsync");
  }
  // From pageable memory: the source may be changed when the call returns.
  static void from_host(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cuda::stream()), "copy to the device");
  }
  static void to_host(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, cuda::stream()), "copy from the device");
    cuda::synchronize();
  }
};

}  // namespace tg
