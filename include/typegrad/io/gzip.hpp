// Reading a file as a stream of bytes, decompressed on the way when it is gzip (needs zlib, -lz).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "typegrad/io/file.hpp"

// 1 when gzip files can be read. Define it to 0 to build without zlib where its header is installed.
#ifndef TYPEGRAD_HAS_ZLIB
#if __has_include(<zlib.h>)
#define TYPEGRAD_HAS_ZLIB 1
#else
#define TYPEGRAD_HAS_ZLIB 0
#endif
#endif

#if TYPEGRAD_HAS_ZLIB
#include <zlib.h>
#endif

namespace tg::io {

// The content of a plain or gzip file, front to back. Whether it is gzip is decided by its first bytes, not its
// name. Memory use is one fixed buffer, however large the content.
class ByteReader {
 public:
  // Throws Error when the file cannot be opened, or is gzip and this build has no zlib.
  explicit ByteReader(std::filesystem::path path) : file_(std::move(path)) {
    std::byte magic[2]{};
    if (file_.size() >= sizeof(magic)) file_.read_at(0, magic);
    compressed_ = magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
    if (!compressed_) return;
#if TYPEGRAD_HAS_ZLIB
    buffer_.resize(std::size_t{1} << 16);
    // 16 selects the gzip wrapper with its checksum.
    if (::inflateInit2(&stream_, MAX_WBITS + 16) != Z_OK) {
      throw Error(detail::concat_text("cannot read '", file_.path().string(), "': zlib could not be started"));
    }
#else
    throw Error(detail::concat_text("cannot read '", file_.path().string(),
                                    "': it is compressed with gzip and this program was built without zlib; install "
                                    "zlib (Debian: zlib1g-dev) and link with -lz, or decompress the file with gunzip"));
#endif
  }
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;
  ~ByteReader() {
#if TYPEGRAD_HAS_ZLIB
    if (compressed_) ::inflateEnd(&stream_);
#endif
  }

  const std::filesystem::path& path() const { return file_.path(); }
  bool compressed() const { return compressed_; }

  // The content is never longer than this: the file's size or, for gzip, the most that deflate could make of it.
  std::uint64_t size_limit() const {
    constexpr std::uint64_t largest_ratio = 1032;
    if (!compressed_) return file_.size();
    constexpr std::uint64_t most = (std::numeric_limits<std::uint64_t>::max)();
    return file_.size() > most / largest_ratio ? most : file_.size() * largest_ratio;
  }

  // Fills `destination` with the next bytes; returns how many, fewer than asked only at the end of the content.
  // Throws Error when the gzip stream is truncated or corrupt. Damage at the end of a stream shows when the end
  // is read: ask for one byte past what is expected.
  std::size_t read(std::span<std::byte> destination) {
    if (compressed_) return inflate(destination);
    const auto count = static_cast<std::size_t>((std::min)(std::uint64_t{destination.size()}, file_.size() - offset_));
    file_.read_at(offset_, destination.first(count));
    offset_ += count;
    return count;
  }

 private:
#if TYPEGRAD_HAS_ZLIB
  std::size_t inflate(std::span<std::byte> destination) {
    std::size_t done = 0;
    while (done < destination.size() && !finished_) {
      if (stream_.avail_in == 0) refill();
      const auto room = (std::min)(destination.size() - done, std::size_t{1} << 30);
      stream_.next_out = reinterpret_cast<Bytef*>(destination.data() + done);
      stream_.avail_out = static_cast<uInt>(room);
      const bool starved = stream_.avail_in == 0;
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      done += room - stream_.avail_out;
      if (code == Z_STREAM_END) {
        end_member();
      } else if (code == Z_BUF_ERROR && starved) {
        throw Error(detail::concat_text("cannot read '", path().string(), "': the gzip stream is truncated: it goes on ",
                                        "past the end of the file at offset ", file_.size()));
      } else if (code != Z_OK) {
        throw Error(detail::concat_text("cannot read '", path().string(), "': the gzip stream is corrupt near offset ",
                                        offset_ - stream_.avail_in, ": ",
                                        stream_.msg != nullptr ? stream_.msg : "zlib cannot continue"));
      }
    }
    return done;
  }

  void refill() {
    const auto count = static_cast<std::size_t>((std::min)(std::uint64_t{buffer_.size()}, file_.size() - offset_));
    file_.read_at(offset_, std::span(buffer_).first(count));
    offset_ += count;
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(count);
  }

  // A gzip file may be several streams one after the other; anything else behind a stream is damage.
  void end_member() {
    if (stream_.avail_in == 0) refill();
    finished_ = stream_.avail_in == 0;
    if (finished_) return;
    if (*stream_.next_in != 0x1f) {
      throw Error(detail::concat_text("cannot read '", path().string(), "': expected the end of the file or another ",
                                      "gzip stream at offset ", offset_ - stream_.avail_in, ", found other bytes"));
    }
    ::inflateReset(&stream_);
  }

  ::z_stream stream_{};
  std::vector<std::byte> buffer_;
  bool finished_ = false;
#else
  std::size_t inflate(std::span<std::byte>) { return 0; }
#endif
  InputFile file_;
  std::uint64_t offset_ = 0;
  bool compressed_ = false;
};

// The whole content of a plain or gzip file. Throws Error when it is longer than `limit` bytes, truncated or
// corrupt; memory grows with what was really read, never by a claim.
inline std::vector<std::byte> read_decompressed(const std::filesystem::path& path, std::size_t limit) {
  ByteReader reader(path);
  std::vector<std::byte> content;
  std::size_t filled = 0;
  for (;;) {
    // One byte more than the limit tells "exactly the limit" from "longer".
    const std::size_t room = limit - filled;
    const std::size_t step = (std::min)((std::max)(filled, std::size_t{1} << 16), room == SIZE_MAX ? room : room + 1);
    content.resize(filled + step);
    const std::size_t got = reader.read(std::span(content).subspan(filled));
    filled += got;
    if (filled > limit) {
      throw Error(detail::concat_text("cannot read '", path.string(), "': expected at most ", limit,
                                      " bytes of content, found more"));
    }
    if (got < step) break;
  }
  content.resize(filled);
  return content;
}

}  // namespace tg::io
