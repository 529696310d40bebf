// Time spent in each kernel of a program.
#pragma once

#include <chrono>
#include <cstdint>

namespace tg {

struct KernelTime {
  double seconds = 0;
  std::int64_t runs = 0;
};

// Adds the time until its end to an entry; does nothing for nullptr.
class Stopwatch {
 public:
  explicit Stopwatch(KernelTime* entry) : entry_(entry) {
    if (entry_ != nullptr) start_ = std::chrono::steady_clock::now();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    if (entry_ == nullptr) return;
    entry_->seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    ++entry_->runs;
  }

 private:
  KernelTime* entry_;
  std::chrono::steady_clock::time_point start_{};
};

}  // namespace tg
