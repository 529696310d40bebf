// Labelled image data sets in memory, and the loader of Fashion-MNIST.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "typegrad/io/idx.hpp"
#include "typegrad/runtime/error.hpp"

namespace tg::data {

// Grey images [count, rows, cols] in row-major order, and one label for each.
struct ImageDataset {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::uint8_t> images;
  std::vector<std::uint8_t> labels;
};

struct ImageSplits {
  ImageDataset train;
  ImageDataset test;
};

// Reads images [n, rows, cols] and labels [n] from two IDX files, plain or gzip. Throws Error when a file cannot
// be read, their ranks or counts disagree, or a label is not below `classes`.
inline ImageDataset load_idx_images(const std::filesystem::path& images_path, const std::filesystem::path& labels_path,
                                    int classes) {
  io::IdxArray images = io::read_idx(images_path);
  io::IdxArray labels = io::read_idx(labels_path);
  const std::span<const std::int64_t> images_shape(images.shape);
  const std::span<const std::int64_t> labels_shape(labels.shape);
  if (images_shape.size() != 3) {
    throw Error(detail::concat_text("'", images_path.string(), "': expected images of shape [count, rows, cols], found ",
                                    "shape ", images_shape));
  }
  if (labels_shape.size() != 1) {
    throw Error(detail::concat_text("'", labels_path.string(), "': expected labels of shape [count], found shape ",
                                    labels_shape));
  }
  if (images_shape[0] != labels_shape[0]) {
    throw Error(detail::concat_text("expected one label for each image: '", images_path.string(), "' has ",
                                    images_shape[0], " images, '", labels_path.string(), "' has ", labels_shape[0],
                                    " labels"));
  }
  for (std::size_t i = 0; i < labels.data.size(); ++i) {
    if (labels.data[i] >= classes) {
      throw Error(detail::concat_text("'", labels_path.string(), "': expected labels from 0 to ", classes - 1,
                                      ", found ", labels.data[i], " for image ", i));
    }
  }
  return {.count = images_shape[0],
          .rows = images_shape[1],
          .cols = images_shape[2],
          .images = std::move(images.data),
          .labels = std::move(labels.data)};
}

// Where Debian's package puts Fashion-MNIST.
inline constexpr std::string_view fashion_mnist_directory = "/usr/share/datasets/fashion-mnist";

// Loads Fashion-MNIST (Xiao, Rasul and Vollgraf 2017): 60000 training and 10000 test images of 28 x 28, ten classes.
// The four files may be gzip, under the names they were published with, or unpacked without ".gz". Throws Error when
// one is missing or damaged, counts disagree, or a label is above 9.
inline ImageSplits load_fashion_mnist(const std::filesystem::path& directory = fashion_mnist_directory) {
  const auto locate = [&](std::string_view name) {
    const std::filesystem::path plain = directory / name;
    std::filesystem::path packed = plain;
    packed += ".gz";
    std::error_code ignored;
    if (std::filesystem::exists(packed, ignored)) return packed;
    if (std::filesystem::exists(plain, ignored)) return plain;
    throw Error(detail::concat_text("Fashion-MNIST: expected the file '", packed.string(), "' (or the same without .gz), ",
                                    "found neither; the Debian package dataset-fashion-mnist installs it in '",
                                    fashion_mnist_directory, "'"));
  };
  constexpr int classes = 10;
  const auto load = [&](std::string_view images, std::string_view labels) {
    return load_idx_images(locate(images), locate(labels), classes);
  };
  ImageSplits splits{.train = load("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
                     .test = load("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")};
  const std::int64_t train_size[] = {splits.train.rows, splits.train.cols};
  const std::int64_t test_size[] = {splits.test.rows, splits.test.cols};
  if (train_size[0] != test_size[0] || train_size[1] != test_size[1]) {
    throw Error(detail::concat_text("Fashion-MNIST in '", directory.string(), "': training images of ",
                                    std::span<const std::int64_t>(train_size), " and test images of ",
                                    std::span<const std::int64_t>(test_size), " pixels do not belong together"));
  }
  return splits;
}

}  // namespace tg::data
