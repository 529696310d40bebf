// Contractions of the CPU back end against the reference.
#include "compare.hpp"

using namespace test;
using tg::dyn;

namespace {
constexpr auto product = [](auto a, auto b) { return tg::matmul(a, b); };
constexpr auto transposed = [](auto a, auto b) {
  return std::tuple(tg::matmul(a, tg::transpose(b)), tg::matmul(tg::transpose(a), b), tg::matmul(tg::transpose(a), tg::relu(b)));
};
constexpr auto layer = [](auto x, auto w, auto b) { return tg::relu(tg::matmul(x, tg::transpose(w)) + b); };
constexpr auto layer_gradients = [](auto x, auto w, auto b) {
  return tg::gradients(tg::sum(tg::tanh(tg::matmul(x, tg::transpose(w)) + b)), x, w, b);
};
}  // namespace

TEST_CASE("matrix products of many sizes") {
  for (const auto& [m, k, n] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 1}, {3, 5, 2}, {17, 33, 9}, {64, 64, 64}, {1, 300, 200}, {200, 300, 1}, {130, 70, 260}, {5, 0, 4}, {0, 3, 4}}) {
    CAPTURE(m);
    CAPTURE(k);
    CAPTURE(n);
    compare<Cpu, product>(1e-5, random<float, dyn<"m">, dyn<"k">>({m, k}, 1, 0.1, 1), random<float, dyn<"k">, dyn<"n">>({k, n}, 2, 0.1, 1));
  }
  compare<Cpu, transposed>(1e-3, random<float, 37, 37>({37, 37}, 1), random<float, 37, 37>({37, 37}, 2));
  compare<Cpu, product>(1e-13, random<double, 20, 30>({20, 30}, 1, 0.1, 1), random<double, 30, 40>({30, 40}, 2, 0.1, 1));
}

TEST_CASE("batched and broadcast products") {
  compare<Cpu, product>(1e-4, random<float, 3, 5, 8>({3, 5, 8}, 1), random<float, 3, 8, 6>({3, 8, 6}, 2));
  compare<Cpu, product>(1e-4, random<float, 2, 3, 5, 8>({2, 3, 5, 8}, 1), random<float, 8, 6>({8, 6}, 2));
  compare<Cpu, product>(1e-4, random<float, 2, 1, 5, 8>({2, 1, 5, 8}, 1), random<float, 3, 8, 6>({3, 8, 6}, 2));
}

TEST_CASE("narrow and integer products") {
  compare<Cpu, product>(1e-2, random<tg::bf16, 20, 30>({20, 30}, 1, 0.1, 1), random<tg::bf16, 30, 40>({30, 40}, 2, 0.1, 1));
  compare<Cpu, product>(2e-3, random<tg::f16, 20, 30>({20, 30}, 1, 0.1, 1), random<tg::f16, 30, 40>({30, 40}, 2, 0.1, 1));
  compare<Cpu, product>(0, random<std::int32_t, 20, 30>({20, 30}, 1, -9, 9), random<std::int32_t, 30, 40>({30, 40}, 2, -9, 9));
}

TEST_CASE("layers with their epilogue, and their gradients") {
  for (const std::int64_t n : {1, 13, 128}) {
    CAPTURE(n);
    const auto x = random<float, dyn<"n">, 70>({n, 70}, 1, -1, 1);
    const auto w = random<float, 50, 70>({50, 70}, 2, -0.2, 0.2);
    const auto b = random<float, 50>({50}, 3);
    compare<Cpu, layer>(1e-4, x, w, b);
    compare<Cpu, layer_gradients>(2e-4, x, w, b);
  }
}

TEST_CASE("products do not depend on the number of threads") {
#if defined(_OPENMP)
  const int before = omp_get_max_threads();
  for (const auto& [m, k, n] : std::vector<std::array<std::int64_t, 3>>{{128, 784, 512}, {333, 100, 77}, {50, 300, 1001}, {61, 2000, 61}}) {
    const auto a = random<float, dyn<"m">, dyn<"k">>({m, k}, 1);
    const auto b = random<float, dyn<"k">, dyn<"n">>({k, n}, 2);
    omp_set_num_threads(1);
    const auto one = tg::evaluate<product>(a, b).to_vector();
    for (const int threads : {2, 3, 4}) {
      omp_set_num_threads(threads);
      CHECK(tg::evaluate<product>(a, b).to_vector() == one);
    }
  }
  omp_set_num_threads(before);
#endif
}
