// Devices, and the memory of tensors on them: shared blocks that are kept for reuse when the last handle goes away.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "typegrad/runtime/error.hpp"

namespace tg {

// The back ends a program can run on. Cuda is declared here and defined by typegrad/cuda.hpp.
struct Cpu {};        // Eigen's packets and matrix product, OpenMP
struct Reference {};  // plain loops in double over the graph as it was traced: slow, the oracle of the others
struct Cuda;          // an NVIDIA GPU (typegrad/cuda.hpp)

// How memory of a device is had and filled. Cuda specialises it in its own header.
template <class Device>
struct DeviceMemory {
  static constexpr bool on_host = true;
  static void* allocate(std::size_t bytes) {
    void* p = ::operator new(bytes, std::align_val_t{64}, std::nothrow);
    if (p == nullptr) throw Error(detail::concat_text("out of memory: cannot allocate ", bytes, " bytes"));
    return p;
  }
  static void release(void* p) noexcept { ::operator delete(p, std::align_val_t{64}); }
  static void zero(void* p, std::size_t bytes) { if (bytes > 0) std::memset(p, 0, bytes); }
  static void from_host(void* to, const void* from, std::size_t bytes) { if (bytes > 0) std::memcpy(to, from, bytes); }
  static void to_host(void* to, const void* from, std::size_t bytes) { if (bytes > 0) std::memcpy(to, from, bytes); }
};

namespace detail {

struct Block {
  std::atomic<int> owners{0};
  std::size_t bytes = 0;
  void* data = nullptr;
  Block* next = nullptr;
};

// Free blocks of one device, so that programs which make the same tensors again and again ask the system only once.
template <class Device>
class BlockPool {
 public:
  static BlockPool& instance() {
    static BlockPool* pool = new BlockPool;  // never destroyed: static tensors may outlive any order of destruction
    return *pool;
  }
  Block* take(std::size_t bytes) {
    const std::size_t size = (bytes + 255) / 256 * 256;
    {
      const std::lock_guard lock(mutex_);
      for (Block** at = &free_; *at != nullptr; at = &(*at)->next)
        if ((*at)->bytes == size) {
          Block* b = *at;
          *at = b->next;
          b->owners.store(1, std::memory_order_relaxed);
          return b;
        }
    }
    Block* b = new Block;
    try {
      b->data = size == 0 ? nullptr : DeviceMemory<Device>::allocate(size);
    } catch (...) {
      delete b;
      throw;
    }
    b->bytes = size;
    b->owners.store(1, std::memory_order_relaxed);
    return b;
  }
  void give(Block* b) noexcept {
    const std::lock_guard lock(mutex_);
    b->next = free_;
    free_ = b;
  }
  void clear() noexcept {
    const std::lock_guard lock(mutex_);
    while (free_ != nullptr) {
      Block* b = free_;
      free_ = b->next;
      if (b->data != nullptr) DeviceMemory<Device>::release(b->data);
      delete b;
    }
  }

 private:
  std::mutex mutex_;
  Block* free_ = nullptr;
};

// A shared handle to a block.
template <class Device>
class Storage {
 public:
  Storage() = default;
  explicit Storage(std::size_t bytes) : block_(BlockPool<Device>::instance().take(bytes)) {}
  Storage(const Storage& o) noexcept : block_(o.block_) {
    if (block_ != nullptr) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  Storage(Storage&& o) noexcept : block_(std::exchange(o.block_, nullptr)) {}
  Storage& operator=(Storage o) noexcept {
    std::swap(block_, o.block_);
    return *this;
  }
  ~Storage() {
    if (block_ != nullptr && block_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) BlockPool<Device>::instance().give(block_);
  }
  void* data() const { return block_ == nullptr ? nullptr : block_->data; }
  bool shared() const { return block_ != nullptr && block_->owners.load(std::memory_order_relaxed) > 1; }

 private:
  Block* block_ = nullptr;
};

}  // namespace detail

// Returns to the system the memory of tensors that no longer exist, which is otherwise kept for the next ones.
template <class Device>
void release_cached_memory() {
  detail::BlockPool<Device>::instance().clear();
}

}  // namespace tg
