// Shuffled batches of normalised images, the next one prepared by a thread while the present one is used.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "typegrad/data/dataset.hpp"
#include "typegrad/runtime/error.hpp"
#include "typegrad/runtime/random.hpp"

namespace tg::data {

struct LoaderOptions {
  std::int64_t batch = 64;  // images in a batch, at least 1
  bool shuffle = true;      // a new order each epoch, a function of (seed, epoch) alone; else the order of the data
  std::uint64_t seed = 0;
  bool drop_last = false;  // leaves out the last batch of an epoch when it is smaller than the others
  float mean = 0.0f;       // pixels become (pixel / 255 - mean) / stddev
  float stddev = 1.0f;
  // Called for each image after that, on the loader's thread, to change its rows * cols pixels (augmentation). A
  // function of its arguments alone keeps epochs reproducible; rng:: takes `sample` and `epoch` as counters.
  std::function<void(std::span<float> pixels, std::int64_t sample, std::uint32_t epoch)> transform{};
};

// A batch of images [size, rows * cols] and labels [size]; `index` counts batches from the start of the epoch.
struct Batch {
  std::int64_t size = 0;
  std::span<const float> images;
  std::span<const std::int32_t> labels;
  std::int64_t index = 0;
};

// Gives the batches of one epoch after the other. Two buffers are allocated once; no call allocates after that.
// start_epoch() and next() belong to one thread at a time.
class BatchLoader {
 public:
  // The data set must outlive the loader and stay unchanged. Throws Error when it is inconsistent or an option is
  // out of range.
  BatchLoader(const ImageDataset& dataset, LoaderOptions options)
      : dataset_(dataset), options_(std::move(options)) {
    check();
    pixels_ = static_cast<std::size_t>(dataset.rows * dataset.cols);
    const std::int64_t full = dataset.count / options_.batch;
    const bool partial = dataset.count % options_.batch != 0 && !options_.drop_last;
    batches_ = full + (partial ? 1 : 0);
    const auto capacity = static_cast<std::size_t>((std::min)(options_.batch, dataset.count));
    for (Slot& slot : slots_) {
      slot.images.resize(capacity * pixels_);
      slot.labels.resize(capacity);
    }
    order_.resize(static_cast<std::size_t>(dataset.count));
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      levels_[i] = (static_cast<float>(i) / 255.0f - options_.mean) / options_.stddev;
    }
    worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }
  BatchLoader(const ImageDataset&&, LoaderOptions) = delete;
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  std::int64_t batches_per_epoch() const { return batches_; }

  // Begins epoch number `epoch` at its first batch, whatever is left of the one before. Batches handed out become
  // invalid.
  void start_epoch(std::uint32_t epoch) {
    std::unique_lock lock(mutex_);
    goal_ = 0;
    changed_.wait(lock, [&] { return !filling_; });
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    if (options_.shuffle) rng::shuffle(std::span(order_), options_.seed, epoch);
    epoch_ = epoch;
    error_ = nullptr;
    produced_ = 0;
    taken_ = 0;
    goal_ = batches_;
    started_ = true;
    changed_.notify_all();
  }

  // The next batch, valid until the next call of next() or start_epoch(); nullptr after the last one. Throws Error
  // before the first start_epoch(), and what options.transform threw, once the batches before it are handed out; it
  // goes on throwing that until start_epoch(), so that a caught failure cannot pass for the end of the epoch.
  const Batch* next() {
    std::unique_lock lock(mutex_);
    if (!started_) throw Error("BatchLoader::next: call start_epoch() first");
    if (taken_ == batches_) return nullptr;
    changed_.wait(lock, [&] { return produced_ > taken_ || error_ != nullptr; });
    if (produced_ == taken_) std::rethrow_exception(error_);
    const Batch* batch = &slot_of(taken_).batch;
    ++taken_;
    changed_.notify_all();
    return batch;
  }

 private:
  struct Slot {
    std::vector<float> images;
    std::vector<std::int32_t> labels;
    Batch batch;
  };

  void check() const {
    const auto& d = dataset_;
    std::int64_t bytes = 0;
    const bool described = d.count >= 0 && d.rows >= 0 && d.cols >= 0 && !__builtin_mul_overflow(d.rows, d.cols, &bytes) &&
                           !__builtin_mul_overflow(bytes, d.count, &bytes) &&
                           static_cast<std::uint64_t>(bytes) == d.images.size() &&
                           static_cast<std::uint64_t>(d.count) == d.labels.size();
    if (!described) {
      const std::int64_t shape[] = {d.count, d.rows, d.cols};
      throw Error(detail::concat_text("BatchLoader: a data set of shape ", std::span<const std::int64_t>(shape),
                                      " does not describe its ", d.images.size(), " bytes of images and ",
                                      d.labels.size(), " labels"));
    }
    if (options_.batch < 1) {
      throw Error(detail::concat_text("BatchLoader: expected a batch of at least 1, found ", options_.batch));
    }
    if (!std::isfinite(options_.mean) || !std::isfinite(options_.stddev) || !(options_.stddev > 0.0f)) {
      throw Error(detail::concat_text("BatchLoader: expected a finite mean and a positive stddev, found ",
                                      options_.mean, " and ", options_.stddev));
    }
  }

  // Neighbouring batches use different buffers.
  Slot& slot_of(std::int64_t batch) { return slots_[static_cast<std::size_t>(batch % 2)]; }

  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    // At most one batch ahead: the caller still reads the one it took last, in the other buffer.
    const auto wanted = [&] { return error_ == nullptr && produced_ < goal_ && produced_ <= taken_; };
    while (changed_.wait(lock, stop, wanted)) {
      if (stop.stop_requested()) return;
      filling_ = true;
      const std::int64_t batch = produced_;
      lock.unlock();
      std::exception_ptr error;
      try {
        fill(batch);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      filling_ = false;
      if (error == nullptr) {
        ++produced_;
      } else {
        error_ = error;
      }
      changed_.notify_all();
    }
  }

  void fill(std::int64_t index) {
    Slot& slot = slot_of(index);
    const std::int64_t first = index * options_.batch;
    const auto size = static_cast<std::size_t>((std::min)(options_.batch, dataset_.count - first));
    for (std::size_t i = 0; i < size; ++i) {
      const std::int64_t sample = order_[static_cast<std::size_t>(first) + i];
      const std::uint8_t* source = dataset_.images.data() + static_cast<std::size_t>(sample) * pixels_;
      const std::span pixels = std::span(slot.images).subspan(i * pixels_, pixels_);
      std::transform(source, source + pixels_, pixels.begin(), [&](std::uint8_t value) { return levels_[value]; });
      if (options_.transform) options_.transform(pixels, sample, epoch_);
      slot.labels[i] = dataset_.labels[static_cast<std::size_t>(sample)];
    }
    slot.batch = {.size = static_cast<std::int64_t>(size),
                  .images = std::span(slot.images).first(size * pixels_),
                  .labels = std::span(slot.labels).first(size),
                  .index = index};
  }

  const ImageDataset& dataset_;
  const LoaderOptions options_;
  std::size_t pixels_ = 0;
  std::int64_t batches_ = 0;
  std::array<float, 256> levels_{};  // what each pixel value becomes
  std::array<Slot, 2> slots_;

  // Changed only while the worker is not filling; it reads them without the lock.
  std::vector<std::int64_t> order_;
  std::uint32_t epoch_ = 0;

  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  std::int64_t produced_ = 0;  // batches filled in this epoch
  std::int64_t taken_ = 0;     // batches handed out in this epoch
  std::int64_t goal_ = 0;      // batches the worker may fill in this epoch
  bool filling_ = false;
  bool started_ = false;
  std::exception_ptr error_;

  std::jthread worker_;  // last: it stops before anything it uses goes away
};

}  // namespace tg::data
