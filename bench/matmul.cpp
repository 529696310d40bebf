// Contractions against Eigen's own matrix product in the same process.
#include <omp.h>

#include <memory>

#include "measure.hpp"
#include "reference_rates.hpp"

namespace {

using tg::Cpu;
constexpr auto matmul = [](auto a, auto b) { return tg::matmul(a, b); };
constexpr auto einsum = [](auto a, auto b) { return tg::einsum<"ik,kj->ij">(a, b); };

template <int N>
using Square = tg::Tensor<Cpu, float, N, N>;

template <auto F, int N>
bench::Run product() {
  const auto a = bench::filled<Square<N>>(-1, 1), b = bench::filled<Square<N>>(-1, 1);
  return {[=] { tg::evaluate<F>(a, b); }, 2e-9 * N * N * N};
}
bench::Run with_threads(int threads, bench::Run r) {
  r.prepare = [threads, run = r.run] {
    omp_set_num_threads(threads);
    run();  // once, because a program is bound anew to another number of threads
  };
  return r;
}

// As often as makes it last about as long as what is compared with it.
bench::Run eigen(int n, int repetitions = 1) {
  const auto gemm = std::make_shared<bench::Gemm>(n);
  return {[=] {
            for (int i = 0; i < repetitions; ++i) (*gemm)();
          },
          gemm->gigaflops() * repetitions};
}

template <int N>
void against_eigen(const char* label, int pairs) {
  bench::compare({.label = label, .unit = "GFLOP/s", .ratio = "ratio_of_gemm", .pairs = pairs}, product<matmul, N>(), eigen(N));
}

void convolution() {
  constexpr int n = 32, channels = 64, side = 56, window = 3;
  using Image = tg::Tensor<Cpu, float, n, channels, side, side>;
  using Filter = tg::Tensor<Cpu, float, channels, channels, window, window>;
  static constexpr auto f = [](auto x, auto w, auto weights) { return tg::sum(tg::conv2d<1, tg::same_padding>(x, w) * weights); };
  const auto x = bench::filled<Image>(-1, 1), weights = bench::filled<Image>(-1, 1);
  const auto w = bench::filled<Filter>(-1, 1);
  constexpr double forward = 2e-9 * n * channels * side * side * channels * window * window;
  bench::compare({.label = "conv2d 3x3 forward, 32x64x56x56", .unit = "GFLOP/s", .ratio = "ratio_of_gemm", .pairs = 15},
                 {[=] { tg::evaluate<f>(x, w, weights); }, forward}, eigen(1024, 4));
  bench::compare({.label = "conv2d 3x3 value and both gradients, 32x64x56x56", .unit = "GFLOP/s", .ratio = "ratio_of_gemm", .target = 0.7, .pairs = 11},
                 {[=] { tg::value_and_grad<f, tg::wrt<0, 1>>(x, w, weights); }, 3 * forward}, eigen(1024, 12));
}

}  // namespace

int main(int argc, char** argv) {
  against_eigen<256>("matmul 256, against Eigen", 301);
  against_eigen<512>("matmul 512, against Eigen", 101);
  against_eigen<1024>("matmul 1024, against Eigen", 31);
  bench::compare({.label = "einsum ik,kj->ij 512, against matmul", .unit = "GFLOP/s", .ratio = "ratio_of_matmul", .pairs = 101}, product<einsum, 512>(),
                 product<matmul, 512>());
  convolution();
  // Last, because it leaves the number of threads changed.
  bench::compare({.label = "matmul 512, all threads against one", .unit = "GFLOP/s", .ratio = "speedup", .pairs = 51},
                 with_threads(omp_get_max_threads(), product<matmul, 512>()), with_threads(1, product<matmul, 512>()));
  return bench::main(argc, argv);
}
