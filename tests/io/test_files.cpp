// Files that are read back as they were written, and files that must be refused with an error naming them.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "typegrad/data/loader.hpp"
#include "typegrad/io/safetensors.hpp"
#include "typegrad/runtime/random.hpp"

namespace {

std::filesystem::path scratch(const std::string& name) {
  const auto folder = std::filesystem::temp_directory_path() / "typegrad_test_files";
  std::filesystem::create_directories(folder);
  return folder / name;
}

void write_text(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string with_header(const std::string& json, const std::string& data, std::uint64_t length) {
  std::string s(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) s[i] = static_cast<char>((length >> (8 * i)) & 255u);
  return s + json + data;
}
std::string with_header(const std::string& json, const std::string& data) { return with_header(json, data, json.size()); }

}  // namespace

TEST_CASE("safetensors: what is refused") {
  const auto path = scratch("bad.safetensors");
  const std::string four(4, 'x'), eight(8, 'x');
  const std::string cases[] = {
      with_header("{}", "", std::uint64_t{1} << 63),
      with_header("{}", "", 1000),
      with_header("[]", ""),
      with_header(R"({"a":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}})", four),
      with_header(R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", four),
      with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", four),
      with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,2,4]}})", four),
      with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four),
      with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight),
      with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", eight),
  };
  for (const std::string& content : cases) {
    write_text(path, content);
    CAPTURE(content);
    CHECK_THROWS_AS(tg::io::SafetensorsFile{path}, tg::Error);
  }
}

TEST_CASE("safetensors: tensors come back, the empty one and the scalar too") {
  const auto path = scratch("good.safetensors");
  write_text(path, with_header(R"({"b":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", "abcd"));
  const tg::io::SafetensorsFile file(path);
  CHECK(file.entries().size() == 2);
}

TEST_CASE("idx: written arrays come back; a wrong magic number and a truncated file are errors") {
  const auto path = scratch("a.idx");
  tg::io::IdxArray array;
  array.shape = {2, 3};
  array.data = {1, 2, 3, 4, 5, 6};
  tg::io::write_idx(path, array);
  const auto back = tg::io::read_idx(path);
  CHECK(back.shape == array.shape);
  CHECK(back.data == array.data);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  CHECK_THROWS_AS(tg::io::read_idx(path), tg::Error);
  write_text(path, std::string("\1\0\x08\1\0\0\0\1x", 9));
  CHECK_THROWS_AS(tg::io::read_idx(path), tg::Error);
}

TEST_CASE("permutation is one, and depends on seed and epoch alone") {
  const auto p = tg::rng::permutation(1000, 7, 1);
  std::vector<char> seen(1000, 0);
  for (const auto i : p) seen[static_cast<std::size_t>(i)] = 1;
  CHECK(std::count(seen.begin(), seen.end(), 1) == 1000);
  CHECK(p == tg::rng::permutation(1000, 7, 1));
  CHECK(p != tg::rng::permutation(1000, 7, 2));
}
