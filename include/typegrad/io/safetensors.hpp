// The safetensors format: named tensors in one file, checked completely before any of its data is trusted.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typegrad/graph/dtype.hpp"
#include "typegrad/io/file.hpp"
#include "typegrad/io/json.hpp"

namespace tg::io {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian and is not converted");

// A tensor in memory, to be written: row-major, contiguous.
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
};

// A tensor in a file. `offset` counts from the beginning of the file.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

using Metadata = std::map<std::string, std::string>;

namespace detail {

// The limit of the reference implementation; headers of real models are far below it.
inline constexpr std::uint64_t largest_header = 100'000'000;
inline constexpr std::string_view metadata_key = "__metadata__";
// The names in the file, in the order of DType.
inline constexpr std::array<std::string_view, 8> safetensors_names = {"F32", "F64", "BF16", "F16",
                                                                      "I8",  "I32", "I64",  "BOOL"};
inline constexpr std::array<std::string_view, 13> safetensors_other_names = {
    "U8",      "I16",     "U16",     "U32",     "U64",     "F8_E4M3", "F8_E5M2",
    "F8_E8M0", "F6_E2M3", "F6_E3M2", "F4",      "C64",     "F8_E4M3FNUZ"};

template <class... Parts>
[[noreturn]] void fail_safetensors(const std::filesystem::path& path, const Parts&... parts) {
  throw Error(concat_text("safetensors file '", path.string(), "': ", parts...));
}

// The bytes of a tensor; nothing when an extent is negative or 64 bits do not hold the size. Zero extents do not
// excuse the others: strides must fit as well.
inline std::optional<std::uint64_t> tensor_bytes(std::span<const std::int64_t> shape, DType dtype) {
  std::int64_t bytes = size_of(dtype);
  bool empty = false;
  for (const std::int64_t extent : shape) {
    empty = empty || extent == 0;
    if (extent < 0 || (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes))) return std::nullopt;
  }
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

// Position of the first byte that is not a bool (0 or 1); values.size() when there is none.
inline std::size_t find_invalid_bool(std::span<const std::byte> values) {
  const auto bad = std::find_if(values.begin(), values.end(), [](std::byte b) { return b > std::byte{1}; });
  return static_cast<std::size_t>(bad - values.begin());
}

}  // namespace detail

// A safetensors file open for reading. The constructor checks the whole header against the size of the file, and
// throws Error naming the file and the tensor when anything disagrees; the memory used is bounded by the header
// that is really there. Data stays in the file until it is read; threads may read at the same time.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::filesystem::path path) : file_(std::move(path)) {
    const std::string header = read_header();
    data_offset_ = length_bytes + header.size();
    parse(header);
    index_names();
    check_layout();
  }

  const std::filesystem::path& path() const { return file_.path(); }
  // All tensors, in the order of their data in the file.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  // The free-form text under __metadata__.
  const Metadata& metadata() const { return metadata_; }

  // The tensor of that name, or nullptr. Valid as long as this object.
  const TensorEntry* find(std::string_view name) const {
    const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                     [&](std::size_t i, std::string_view n) { return entries_[i].name < n; });
    return at != by_name_.end() && entries_[*at].name == name ? &entries_[*at] : nullptr;
  }

  // Copies a tensor's data into `destination`. Throws Error when the sizes differ, the entry does not lie inside
  // this file, or a bool in it is neither 0 nor 1.
  void read(const TensorEntry& entry, std::span<std::byte> destination) const {
    if (destination.size() != entry.bytes) {
      fail("tensor '", entry.name, "' has ", entry.bytes, " bytes, the destination has ", destination.size());
    }
    file_.read_at(entry.offset, destination);
    if (entry.dtype != DType::boolean) return;
    if (const std::size_t bad = detail::find_invalid_bool(destination); bad != destination.size()) {
      fail("tensor '", entry.name, "' of type BOOL: expected 0 or 1 at offset ", entry.offset + bad, ", found ",
           std::to_integer<unsigned>(destination[bad]));
    }
  }

 private:
  static constexpr std::size_t length_bytes = 8;

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    detail::fail_safetensors(path(), parts...);
  }

  std::string read_header() const {
    if (file_.size() < length_bytes) {
      fail("expected 8 bytes of header length at offset 0, but the file has ", file_.size(), " bytes");
    }
    std::array<std::byte, length_bytes> word{};
    file_.read_at(0, word);
    const auto length = std::bit_cast<std::uint64_t>(word);
    const std::uint64_t possible = (std::min)(file_.size() - length_bytes, detail::largest_header);
    if (length > possible) {
      fail("the header length at offset 0 is ", length, ", but at most ", possible, " is possible in a file of ",
           file_.size(), " bytes");
    }
    std::string header(static_cast<std::size_t>(length), '\0');
    file_.read_at(length_bytes, std::as_writable_bytes(std::span(header)));
    if (!header.starts_with('{')) {
      fail("expected a header that is a JSON object and begins with '{' at offset 8, found ",
           header.empty() ? "an empty header" : "something else");
    }
    return header;
  }

  void parse(std::string_view header) {
    JsonReader json(header, detail::concat_text("safetensors file '", path().string(), "'"), length_bytes);
    bool metadata_seen = false;
    json.object([&](std::string name) {
      if (name != detail::metadata_key) {
        entries_.push_back(parse_tensor(json, std::move(name)));
        return;
      }
      if (std::exchange(metadata_seen, true)) fail("__metadata__ occurs twice in the header");
      json.object([&](std::string key) {
        std::string value = json.string();
        const auto [at, fresh] = metadata_.try_emplace(std::move(key), std::move(value));
        if (!fresh) fail("the key '", at->first, "' occurs twice in __metadata__");
      });
    });
    json.end();
  }

  TensorEntry parse_tensor(JsonReader& json, std::string name) const {
    std::optional<std::string> dtype;
    std::optional<std::vector<std::int64_t>> shape;
    std::optional<std::vector<std::int64_t>> offsets;
    const auto refuse_second = [&](const auto& field, std::string_view key) {
      if (field.has_value()) fail("tensor '", name, "': '", key, "' occurs twice");
    };
    const auto integers = [&] {
      std::vector<std::int64_t> list;
      json.array([&] { list.push_back(json.integer()); });
      return list;
    };
    json.object([&](const std::string& key) {
      if (key == "dtype") {
        refuse_second(dtype, key);
        dtype = json.string();
      } else if (key == "shape") {
        refuse_second(shape, key);
        shape = integers();
      } else if (key == "data_offsets") {
        refuse_second(offsets, key);
        offsets = integers();
      } else {
        fail("tensor '", name, "': expected dtype, shape and data_offsets, found '", key, "'");
      }
    });
    if (!dtype || !shape || !offsets) {
      fail("tensor '", name, "': ", !dtype ? "dtype" : !shape ? "shape" : "data_offsets", " is missing");
    }

    TensorEntry entry{.name = std::move(name), .dtype = parse_dtype(*dtype, name), .shape = std::move(*shape)};
    return place(std::move(entry), *dtype, *offsets);
  }

  DType parse_dtype(std::string_view found, std::string_view tensor) const {
    const auto& names = detail::safetensors_names;
    const auto at = std::find(names.begin(), names.end(), found);
    if (at != names.end()) return static_cast<DType>(at - names.begin());
    const auto& others = detail::safetensors_other_names;
    const bool valid = std::find(others.begin(), others.end(), found) != others.end();
    fail("tensor '", tensor, "' has ", valid ? "a dtype that typegrad does not support" : "an unknown dtype", ", '",
         found, "': expected F64, F32, F16, BF16, I64, I32, I8 or BOOL");
  }

  // Checks the offsets against the shape and the file, and enters them.
  TensorEntry place(TensorEntry entry, std::string_view dtype, std::span<const std::int64_t> offsets) const {
    const std::span<const std::int64_t> shape(entry.shape);
    const auto needed = detail::tensor_bytes(shape, entry.dtype);
    if (!needed) {
      fail("tensor '", entry.name, "': the size of shape ", shape, " ", dtype,
           " is negative or does not fit into 64 bits");
    }
    if (offsets.size() != 2) {
      fail("tensor '", entry.name, "': expected two data_offsets, begin and end, found ", offsets);
    }
    if (offsets[0] < 0 || offsets[0] > offsets[1]) {
      fail("tensor '", entry.name, "': expected 0 <= begin <= end in data_offsets, found ", offsets);
    }
    const auto begin = static_cast<std::uint64_t>(offsets[0]);
    const auto end = static_cast<std::uint64_t>(offsets[1]);
    if (end - begin != *needed) {
      fail("tensor '", entry.name, "': shape ", shape, " ", dtype, " needs ", *needed, " bytes, but data_offsets ",
           offsets, " hold ", end - begin);
    }
    const std::uint64_t data_bytes = file_.size() - data_offset_;
    if (end > data_bytes) {
      fail("tensor '", entry.name, "': data_offsets ", offsets, " go past the ", data_bytes,
           " bytes of data in the file");
    }
    entry.offset = data_offset_ + begin;
    entry.bytes = *needed;
    return entry;
  }

  void index_names() {
    const auto key = [](const TensorEntry& e) { return std::pair(e.offset, e.offset + e.bytes); };
    std::sort(entries_.begin(), entries_.end(), [&](const TensorEntry& a, const TensorEntry& b) {
      return key(a) != key(b) ? key(a) < key(b) : a.name < b.name;
    });
    by_name_.resize(entries_.size());
    std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
    const auto name = [&](std::size_t i) -> const std::string& { return entries_[i].name; };
    std::sort(by_name_.begin(), by_name_.end(), [&](std::size_t a, std::size_t b) { return name(a) < name(b); });
    const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(),
                                          [&](std::size_t a, std::size_t b) { return name(a) == name(b); });
    if (twice != by_name_.end()) fail("two tensors have the name '", name(*twice), "'");
  }

  // The tensors, in file order, must cover the data exactly: no byte twice, none left out.
  void check_layout() const {
    std::uint64_t expected = data_offset_;
    const TensorEntry* previous = nullptr;
    for (const TensorEntry& e : entries_) {
      if (e.offset < expected) {
        fail("tensors '", previous->name, "' and '", e.name, "' overlap: the first ends at offset ", expected,
             ", the second begins at ", e.offset);
      }
      if (e.offset > expected) {
        fail("the ", e.offset - expected, " bytes from offset ", expected, " to tensor '", e.name,
             "' belong to no tensor");
      }
      expected = e.offset + e.bytes;
      previous = &e;
    }
    if (expected != file_.size()) {
      fail("the ", file_.size() - expected, " bytes from offset ", expected,
           " to the end of the file belong to no tensor");
    }
  }

  InputFile file_;
  std::uint64_t data_offset_ = 0;
  std::vector<TensorEntry> entries_;
  std::vector<std::size_t> by_name_;
  Metadata metadata_;
};

// Writes tensors and free-form metadata in one step: after a failure the old file is still there. The same input
// in any order gives the same bytes: larger element types first, then by name, so that in the file every tensor is
// aligned to its element. Throws Error when a name is repeated, reserved or not UTF-8, a size does not fit its
// shape, a bool is neither 0 nor 1, or the file cannot be written.
inline void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                              const Metadata& metadata = {}) {
  std::vector<const TensorView*> order;
  order.reserve(tensors.size());
  for (const TensorView& t : tensors) {
    const std::span<const std::int64_t> shape(t.shape);
    const auto needed = detail::tensor_bytes(shape, t.dtype);
    if (!needed || *needed != t.bytes) {
      detail::fail_safetensors(path, "tensor '", t.name, "': shape ", shape, " of ", name(t.dtype),
                               " does not describe the ", t.bytes, " bytes given");
    }
    if (t.data == nullptr && t.bytes != 0) detail::fail_safetensors(path, "tensor '", t.name, "' has no data");
    if (t.name == detail::metadata_key) {
      detail::fail_safetensors(path, "the name '", t.name, "' is reserved by the format");
    }
    const std::span values(t.data, t.bytes);
    if (t.dtype == DType::boolean && detail::find_invalid_bool(values) != values.size()) {
      detail::fail_safetensors(path, "tensor '", t.name, "' of type BOOL: expected 0 or 1 at byte ",
                               detail::find_invalid_bool(values));
    }
    order.push_back(&t);
  }
  std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return size_of(a->dtype) != size_of(b->dtype) ? size_of(a->dtype) > size_of(b->dtype) : a->name < b->name;
  });

  std::string header = "{";
  const auto separate = [&] {
    if (header.back() != '{') header += ',';
  };
  if (!metadata.empty()) {
    header += detail::concat_text(json_string(detail::metadata_key), ":{");
    for (const auto& [key, value] : metadata) {
      separate();
      header += detail::concat_text(json_string(key), ":", json_string(value));
    }
    header += '}';
  }
  std::vector<std::string_view> names;
  std::uint64_t begin = 0;
  for (const TensorView* t : order) {
    separate();
    header += json_string(t->name);
    header += detail::concat_text(":{\"dtype\":\"", detail::safetensors_names[static_cast<std::size_t>(t->dtype)],
                                  "\",\"shape\":[");
    for (std::size_t i = 0; i < t->shape.size(); ++i) {
      header += detail::concat_text(i == 0 ? "" : ",", t->shape[i]);
    }
    header += detail::concat_text("],\"data_offsets\":[", begin, ",", begin + t->bytes, "]}");
    begin += t->bytes;
    names.push_back(t->name);
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > detail::largest_header) {
    detail::fail_safetensors(path, "the header would have ", header.size(), " bytes, the format allows ",
                             detail::largest_header);
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    detail::fail_safetensors(path, "two tensors have the name '", *twice, "'");
  }

  AtomicFile file(path);
  const std::array<std::uint64_t, 1> length{header.size()};
  file.write(std::as_bytes(std::span(length)));
  file.write(header);
  for (const TensorView* t : order) file.write(std::span(t->data, t->bytes));
  file.commit();
}

}  // namespace tg::io
