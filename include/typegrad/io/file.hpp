// Files (POSIX): whole and ranged reads, and writes that appear complete or not at all.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "typegrad/runtime/error.hpp"

namespace tg::io {
namespace detail {

using tg::detail::concat_text;

[[noreturn]] inline void fail_system(std::string_view action, const std::filesystem::path& path, int code) {
  throw Error(concat_text("cannot ", action, " '", path.string(), "': ", std::generic_category().message(code)));
}

// Linux moves at most 2 GiB in one call; a smaller piece costs nothing and is safe everywhere.
inline constexpr std::size_t largest_transfer = std::size_t{1} << 30;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace detail

// A regular file open for reading at any offset. Reads do not move a cursor, so threads may share one.
class InputFile {
 public:
  // Throws Error when the file cannot be opened or is not a regular file.
  explicit InputFile(std::filesystem::path file) : path_(std::move(file)) {
    do descriptor_ = detail::Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    while (descriptor_.get() < 0 && errno == EINTR);
    if (descriptor_.get() < 0) detail::fail_system("open", path_, errno);
    struct ::stat status {};
    if (::fstat(descriptor_.get(), &status) != 0) detail::fail_system("examine", path_, errno);
    if (!S_ISREG(status.st_mode)) {
      throw Error(detail::concat_text("cannot read '", path_.string(), "': expected a regular file, found ",
                                      S_ISDIR(status.st_mode) ? "a directory" : "a device, pipe or socket"));
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }

  const std::filesystem::path& path() const { return path_; }
  // Bytes in the file when it was opened.
  std::uint64_t size() const { return size_; }

  // Fills `destination` from `offset` on. Throws Error when the range does not lie inside the file.
  void read_at(std::uint64_t offset, std::span<std::byte> destination) const {
    if (offset > size_ || destination.size() > size_ - offset) {
      throw Error(detail::concat_text("cannot read '", path_.string(), "': asked for ", destination.size(),
                                      " bytes at offset ", offset, ", but the file has ", size_, " bytes"));
    }
    while (!destination.empty()) {
      const ::ssize_t got =
          ::pread(descriptor_.get(), destination.data(), (std::min)(destination.size(), detail::largest_transfer),
                  static_cast<::off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) detail::fail_system("read", path_, errno);
      if (got == 0) {
        throw Error(detail::concat_text("cannot read '", path_.string(), "': it shrank from ", size_, " to ", offset,
                                        " bytes while it was being read"));
      }
      destination = destination.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
  }

 private:
  std::filesystem::path path_;
  detail::Descriptor descriptor_;
  std::uint64_t size_ = 0;
};

// The whole file. Throws Error when it cannot be read.
inline std::vector<std::byte> read_file(const std::filesystem::path& path) {
  const InputFile file(path);
  std::vector<std::byte> content(static_cast<std::size_t>(file.size()));
  file.read_at(0, content);
  return content;
}

// Writes a file under a temporary name in the same directory; commit() gives it its own name in one step.
// A reader sees the old content or the new, never a part, even after a crash. Without commit() nothing remains.
// A symbolic link at the name is replaced, not followed.
class AtomicFile {
 public:
  // Throws Error when the directory is not writable or the name belongs to something other than a file.
  explicit AtomicFile(std::filesystem::path destination) : path_(std::move(destination)) {
    std::error_code ignored;
    const auto status = std::filesystem::status(path_, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      throw Error(detail::concat_text("cannot write '", path_.string(), "': it exists and is not a regular file"));
    }
    static std::atomic<std::uint64_t> serial{0};
    do {
      temporary_ = path_;
      temporary_ += detail::concat_text(".tmp-", ::getpid(), "-", serial++);
      descriptor_ = detail::Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    } while (descriptor_.get() < 0 && (errno == EEXIST || errno == EINTR));
    if (descriptor_.get() < 0) detail::fail_system("create", temporary_, errno);
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() {
    if (!committed_) ::unlink(temporary_.c_str());
  }

  // Appends. Throws Error (disk full, quota); the file at the final name is untouched then.
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ::ssize_t put =
          ::write(descriptor_.get(), bytes.data(), (std::min)(bytes.size(), detail::largest_transfer));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) detail::fail_system("write", temporary_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  // Puts the file on the disk and under its final name; nothing may be written after it. Throws Error.
  void commit() {
    if (::fsync(descriptor_.get()) != 0) detail::fail_system("flush", temporary_, errno);
    // Network file systems report some failed writes only here.
    if (::close(descriptor_.release()) != 0) detail::fail_system("close", temporary_, errno);
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) detail::fail_system("replace", path_, errno);
    committed_ = true;
    // Makes the new name survive a power cut. Some file systems refuse; the file is complete all the same.
    const auto parent = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
    const detail::Descriptor directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.get() >= 0) static_cast<void>(::fsync(directory.get()));
  }

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  detail::Descriptor descriptor_;
  bool committed_ = false;
};

// Replaces the whole file in one step. Throws Error; the old content is then still there.
inline void write_file(const std::filesystem::path& path, std::span<const std::byte> content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace tg::io
