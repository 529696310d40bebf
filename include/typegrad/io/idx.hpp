// The IDX format of the MNIST family of data sets, for unsigned bytes, plain or gzip.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "typegrad/io/file.hpp"
#include "typegrad/io/gzip.hpp"

namespace tg::io {

// An array of unsigned bytes in row-major order.
struct IdxArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> data;
};

namespace detail {

inline constexpr unsigned idx_unsigned_byte = 0x08;

inline std::string_view idx_type_name(unsigned code) {
  switch (code) {
    case 0x08: return "unsigned byte";
    case 0x09: return "signed byte";
    case 0x0b: return "short";
    case 0x0c: return "int";
    case 0x0d: return "float";
    case 0x0e: return "double";
    default: return "";
  }
}

// The number of elements; false when it does not fit, zero extents left aside: their strides must fit as well.
inline bool count_elements(std::span<const std::int64_t> shape, std::int64_t& count) {
  std::int64_t strides = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(strides, extent, &strides)) return false;
  }
  count = empty ? 0 : strides;
  return true;
}

template <class... Parts>
[[noreturn]] void fail_idx(const std::filesystem::path& path, const Parts&... parts) {
  throw Error(concat_text("IDX file '", path.string(), "': ", parts...));
}

}  // namespace detail

// Reads an IDX file of unsigned bytes, plain or gzip by content. Throws Error naming the file, what was expected
// and what was found: wrong magic, another element type, extents whose product overflows, truncated or corrupt
// content, bytes behind the data. Memory grows with the bytes read, never by the header's claim.
inline IdxArray read_idx(const std::filesystem::path& path) {
  ByteReader reader(path);
  std::byte word[4]{};
  std::uint64_t offset = 0;
  const auto next_word = [&](std::string_view what) {
    const std::size_t got = reader.read(word);
    if (got < sizeof(word)) {
      detail::fail_idx(path, "truncated: expected 4 bytes of ", what, " at offset ", offset, ", found ", got);
    }
    offset += sizeof(word);
  };

  next_word("magic number");
  const auto type = std::to_integer<unsigned>(word[2]);
  const auto rank = std::to_integer<std::size_t>(word[3]);
  if (word[0] != std::byte{0} || word[1] != std::byte{0} || detail::idx_type_name(type).empty()) {
    std::string found;
    for (const std::byte b : word) {
      constexpr std::string_view digits = "0123456789abcdef";
      const auto value = std::to_integer<std::size_t>(b);
      found += {' ', digits[value >> 4], digits[value & 15]};
    }
    detail::fail_idx(path, "wrong magic number: expected the bytes 00 00 08 and the rank, found", found);
  }
  if (type != detail::idx_unsigned_byte) {
    detail::fail_idx(path, "unsupported element type: expected unsigned byte (8), found ",
                     detail::idx_type_name(type), " (", type, ")");
  }

  IdxArray array;
  for (std::size_t i = 0; i < rank; ++i) {
    next_word("extent");
    std::int64_t extent = 0;
    for (const std::byte b : word) extent = extent << 8 | std::to_integer<std::int64_t>(b);
    array.shape.push_back(extent);
  }
  const std::span<const std::int64_t> shape(array.shape);
  std::int64_t count = 0;
  if (!detail::count_elements(shape, count)) {
    detail::fail_idx(path, "the product of the extents ", shape, " overflows 64 bits");
  }
  const auto expected = static_cast<std::uint64_t>(count);
  if (expected > reader.size_limit()) {
    detail::fail_idx(path, "truncated: shape ", shape, " needs ", expected, " bytes of data, the file can hold at most ",
                     reader.size_limit());
  }

  std::uint64_t filled = 0;
  while (filled < expected) {
    const std::uint64_t step = (std::min)(expected - filled, (std::max)(filled, std::uint64_t{1} << 20));
    array.data.resize(static_cast<std::size_t>(filled + step));
    const auto fresh = std::as_writable_bytes(std::span(array.data)).subspan(static_cast<std::size_t>(filled));
    const std::size_t got = reader.read(fresh);
    filled += got;
    if (got < fresh.size()) {
      detail::fail_idx(path, "truncated: shape ", shape, " needs ", expected, " bytes of data from offset ", offset,
                       ", found ", filled);
    }
  }
  // Reading past the end also makes gzip check its checksum.
  if (reader.read(std::span(word).first(1)) != 0) {
    detail::fail_idx(path, "shape ", shape, " needs ", expected, " bytes of data from offset ", offset,
                     ", found more bytes behind them");
  }
  return array;
}

// Writes a plain IDX file in one step. Throws Error when the shape does not describe the data or does not fit the
// format (at most 255 extents, each below 2^32), or the file cannot be written.
inline void write_idx(const std::filesystem::path& path, const IdxArray& array) {
  const std::span<const std::int64_t> shape(array.shape);
  if (shape.size() > 255) detail::fail_idx(path, "expected at most 255 extents, found ", shape.size());
  std::vector<std::byte> header{std::byte{0}, std::byte{0}, std::byte{detail::idx_unsigned_byte},
                                static_cast<std::byte>(shape.size())};
  for (const std::int64_t extent : shape) {
    if (extent < 0 || extent > 0xffffffff) {
      detail::fail_idx(path, "expected extents from 0 to 4294967295, found shape ", shape);
    }
    for (int shift = 24; shift >= 0; shift -= 8) header.push_back(static_cast<std::byte>(extent >> shift & 0xff));
  }
  std::int64_t count = 0;
  if (!detail::count_elements(shape, count) || static_cast<std::uint64_t>(count) != array.data.size()) {
    detail::fail_idx(path, "shape ", shape, " does not describe the ", array.data.size(), " bytes of data given");
  }
  AtomicFile file(path);
  file.write(header);
  file.write(std::as_bytes(std::span(array.data)));
  file.commit();
}

}  // namespace tg::io
