// What this machine can do: the bandwidth of a triad and the rate of a matrix product, the rulers of all other rates.
#pragma once

#include <Eigen/Core>
#include <cstdint>

namespace bench {

// a = b + s c on arrays far larger than the caches (McCalpin's STREAM triad). As there, the line that a store fetches
// before writing it is not counted.
class Triad {
 public:
  static constexpr std::int64_t elements = std::int64_t{1} << 24;
  static constexpr double gigabytes = 12e-9 * static_cast<double>(elements);

  void operator()() {
    float* a = a_.data();
    const float *b = b_.data(), *c = c_.data();
    const float s = scale_;
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < elements; ++i) a[i] = b[i] + s * c[i];
  }

 private:
  Eigen::ArrayXf a_ = Eigen::ArrayXf::Zero(elements), b_ = Eigen::ArrayXf::Ones(elements), c_ = Eigen::ArrayXf::Ones(elements);
  float scale_ = 3.0f;
};

// Eigen's product of two square matrices, with all of its threads.
class Gemm {
 public:
  explicit Gemm(int n) : a_(Matrix::Random(n, n)), b_(Matrix::Random(n, n)), c_(n, n) {}
  void operator()() { c_.noalias() = a_ * b_; }
  double gigaflops() const {
    const auto n = static_cast<double>(a_.rows());
    return 2e-9 * n * n * n;
  }

 private:
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Matrix a_, b_, c_;
};

}  // namespace bench
