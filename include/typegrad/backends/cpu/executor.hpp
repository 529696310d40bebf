// Runs a bound plan on the CPU.
#pragma once

#include "typegrad/backends/cpu/launch.hpp"
#include "typegrad/runtime/binding.hpp"
#include "typegrad/runtime/memory.hpp"
#include "typegrad/runtime/profile.hpp"

namespace tg::cpu {

inline int thread_count() {
#if defined(_OPENMP)
  return omp_get_max_threads();
#else
  return 1;
#endif
}

// Entries: the code of the kernels, in the plan's order. Plan and entries must outlive the executor.
class Executor {
 public:
  Executor(const Compiled& c, std::span<const Entry> entries) : entries_(entries), binding_(c) {}

  void run(const std::vector<std::int64_t>& extents, void* const* inputs, void* const* outputs) {
    const int threads = thread_count();
    if (!bound_ || extents != binding_.values() || threads != threads_) bind(extents, threads);
    auto* arena = static_cast<std::byte*>(memory_.data());
    binding_.point(inputs, outputs, arena);
    kernel::IndexFault fault;
    const Context context{arena + binding_.arena_bytes(), threads, &fault};
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      const Stopwatch watch(profile_ ? &(*profile_)[k] : nullptr);
      entries_[k].run(binding_.launch(k), context);
      // At once, so that no update in place follows.
      if (fault.position >= 0)
        throw Error(tg::detail::concat_text("index ", fault.value, " at position ", fault.position,
                                            " is out of range: expected 0 to ", fault.classes - 1));
    }
  }

  // Bytes of memory for intermediate results and scratch, known after the first run.
  std::int64_t arena_bytes() const { return bytes_; }
  const Binding& binding() const { return binding_; }
  // Seconds spent in each kernel are added up there from now on; nullptr stops it.
  void profile(std::vector<KernelTime>* times) { profile_ = times; }

 private:
  void bind(const std::vector<std::int64_t>& extents, int threads) {
    bound_ = false;
    binding_.bind(extents);
    std::int64_t scratch = 0;
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      const std::int64_t s = entries_[k].scratch(binding_.launch(k), threads);
      scratch = s > scratch ? s : scratch;
    }
    bytes_ = binding_.arena_bytes() + scratch;
    if (bytes_ > capacity_) {
      memory_ = {};
      memory_ = tg::detail::Storage<Cpu>(static_cast<std::size_t>(bytes_));
      capacity_ = bytes_;
    }
    auto* arena = static_cast<std::byte*>(memory_.data());
    binding_.write_sizes([&](std::int64_t offset, const std::byte* bytes, std::size_t size) { std::memcpy(arena + offset, bytes, size); });
    threads_ = threads;
    bound_ = true;
  }

  std::span<const Entry> entries_;
  Binding binding_;
  tg::detail::Storage<Cpu> memory_;
  std::int64_t bytes_ = 0, capacity_ = 0;
  int threads_ = 0;
  bool bound_ = false;
  std::vector<KernelTime>* profile_ = nullptr;
};

}  // namespace tg::cpu
