// The one radix sort of the CUDA back end: 64-bit keys with 32-bit values, stable. Every program that sorts or scatters
// shares its instantiation, which is costly to compile.
#pragma once

#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "typegrad/backends/cuda/context.hpp"

namespace tg::cuda {

inline constexpr int linear_threads = 256;

// Blocks for a kernel with one thread for each of n things.
inline unsigned linear_blocks(std::int64_t n) { return static_cast<unsigned>((n + linear_threads - 1) / linear_threads); }

class RadixSort {
 public:
  using Key = unsigned long long;  // the atomics' type too
  using Value = std::uint32_t;

  // Arrays of n pairs and CUB's temporary memory, one after the other in the scratch memory.
  explicit RadixSort(std::int64_t n, std::byte* scratch = nullptr) : n_(n) {
    if (n > std::int64_t{0xffffffff}) throw Error(tg::detail::concat_text("sorts and scatters on the GPU take at most 4294967295 elements, found ", n));
    auto take = [&, at = scratch](std::int64_t bytes) mutable {
      std::byte* const p = at;
      bytes = (bytes + 255) / 256 * 256;
      bytes_ += bytes;
      if (at != nullptr) at += bytes;
      return p;
    };
    for (Key*& k : keys_) k = reinterpret_cast<Key*>(take(n * static_cast<std::int64_t>(sizeof(Key))));
    for (Value*& v : values_) v = reinterpret_cast<Value*>(take(n * static_cast<std::int64_t>(sizeof(Value))));
    temporary_bytes_ = 0;
    run(nullptr, 64, nullptr);
    temporary_ = take(static_cast<std::int64_t>(temporary_bytes_));
  }

  std::int64_t bytes() const { return bytes_; }
  Key* keys() const { return keys_[0]; }
  Value* values() const { return values_[0]; }

  // Sorts by the lowest `bits` of the keys; keys() and values() are the sorted ones then.
  void sort(int bits, cudaStream_t s) {
    if (bits > 0) run(temporary_, bits, s);
  }
  // Bits that tell numbers below n apart.
  static int bits(std::int64_t n) { return n <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(n - 1)); }

 private:
  void run(void* temporary, int end_bit, cudaStream_t s) {
    cub::DoubleBuffer<Key> keys(keys_[0], keys_[1]);
    cub::DoubleBuffer<Value> values(values_[0], values_[1]);
    check(cub::DeviceRadixSort::SortPairs(temporary, temporary_bytes_, keys, values, static_cast<std::uint32_t>(n_), 0, end_bit, s), "cannot sort");
    if (temporary == nullptr) return;
    keys_[0] = keys.Current();
    keys_[1] = keys.Alternate();
    values_[0] = values.Current();
    values_[1] = values.Alternate();
  }

  std::int64_t n_, bytes_ = 0;
  Key* keys_[2] = {};
  Value* values_[2] = {};
  std::byte* temporary_ = nullptr;
  std::size_t temporary_bytes_ = 0;
};

}  // namespace tg::cuda
