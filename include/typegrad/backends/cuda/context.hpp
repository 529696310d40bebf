// What launches share: the stream, scratch memory, the place for faults.
#pragma once

#include "typegrad/backends/cuda/evaluate.hpp"

namespace tg::cuda {

struct Context {
  cudaStream_t stream = nullptr;
  std::byte* scratch = nullptr;
  std::byte* workspace = nullptr;  // cuBLASLt's
  std::size_t workspace_bytes = 0;
  kernel::IndexFault* fault = nullptr;
};

template <class R>
Arguments<R> arguments(const kernel::Launch& l, const Context& c) {
  Arguments<R> a{};
  for (int axis = 0; axis < R::axes; ++axis) a.extents[axis] = l.extents[axis];
  for (int s = 0; s < R::operands; ++s) {
    a.pointers[s] = l.pointers[s];
    for (int axis = 0; axis < R::axes; ++axis) a.strides[s][axis] = l.strides[s * R::axes + axis];
  }
  a.partial = c.scratch;
  a.fault = c.fault;
  return a;
}

template <class R, int First, int Last>
std::int64_t count(const kernel::Launch& l) {
  std::int64_t n = 1;
  for (int a = First; a < Last; ++a) n *= l.extents[a];
  return n;
}

}  // namespace tg::cuda
