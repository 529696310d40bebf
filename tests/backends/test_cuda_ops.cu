// Kernels of the CUDA back end against the reference.
#include "compare.hpp"

#include "typegrad/cuda.hpp"

using namespace test;
using tg::Cuda;
using tg::dyn;

namespace {
constexpr auto elementwise = [](auto x, auto y) {
  return std::tuple(-x, tg::abs(x), tg::sign(x), tg::relu(x), tg::exp(x), tg::log(tg::abs(x)), tg::tanh(x), tg::erf(x), tg::sigmoid(x), tg::sqrt(tg::abs(x)),
                    tg::gelu(x), tg::maximum(x, y), x / y, x < y, tg::where(x < y, x, 2.0), tg::pow(tg::abs(x), y), tg::round(x));
};
constexpr auto views = [](auto a, auto b, auto c) {
  return std::tuple(a * b + c, tg::transpose(a) * 2.0, tg::slice<1, 1, 5, 2>(a) + 1.0, tg::flip<0>(a), tg::concat<1>(a, a - c));
};
constexpr auto ints = [](auto a, auto b) {
  return std::tuple(a + b, a * b, a / b, tg::fmod(a, b), tg::maximum(a, b), a < b, tg::cast<float>(a) * 0.5, tg::sum(a), tg::where(a < b, a, b));
};
constexpr auto narrow = [](auto a, auto b) { return std::tuple(a * b, tg::relu(a) + b, tg::cast<float>(a), a < b); };
constexpr auto rows = [](auto x) {
  return std::tuple(tg::softmax(x), tg::layer_norm(x), tg::logsumexp<-1>(x), tg::mean<-1>(x), (tg::max<-1>)(x), tg::argmax<-1>(x));
};
constexpr auto columns = [](auto x, auto w) { return std::tuple(tg::sum<0>(x), (tg::max<0>)(x), tg::sum<0>(x * w)); };
constexpr auto middle = [](auto x) { return std::tuple(tg::sum<1>(x), tg::sum<0, 2>(x), (tg::max<0, 1>)(x)); };
constexpr auto whole = [](auto x) { return std::tuple(tg::sum(x), tg::mean(x * x), (tg::max)(x)); };
constexpr auto product = [](auto a, auto b) { return tg::matmul(a, b); };
constexpr auto layer = [](auto x, auto w, auto b) {
  return std::tuple(tg::relu(tg::matmul(x, tg::transpose(w)) + b), tg::tanh(tg::matmul(x, tg::transpose(w)) * 2.0 + b));
};
constexpr auto layer_gradients = [](auto x, auto w, auto b) {
  return tg::gradients(tg::sum(tg::tanh(tg::matmul(x, tg::transpose(w)) + b)), x, w, b);
};
}  // namespace

TEST_CASE("cuda: element-wise kernels, with vectors of four and without") {
  for (const std::int64_t n : {0, 1, 7, 64, 1001, 2048}) {
    CAPTURE(n);
    compare<Cuda, elementwise>(3e-6, random<float, dyn<"n">>({n}, 1), random<float, dyn<"n">>({n}, 2));
  }
  compare<Cuda, views>(1e-6, random<float, 8, 12>({8, 12}, 1), random<float, 12>({12}, 2), random<float, 8, 1>({8, 1}, 3));
  compare<Cuda, ints>(0, random<std::int32_t, 50>({50}, 1, -9, 9), random<std::int32_t, 50>({50}, 2, -5, 5));
  compare<Cuda, narrow>(0, random<tg::bf16, 40>({40}, 1), random<tg::bf16, 40>({40}, 2));
  compare<Cuda, narrow>(0, random<tg::f16, 41>({41}, 1), random<tg::f16, 41>({41}, 2));
}

TEST_CASE("cuda: reductions along rows, columns and everything") {
  for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {9, 10}, {5, 33}, {3, 1300}}) {
    CAPTURE(m);
    CAPTURE(n);
    compare<Cuda, rows>(2e-4, random<float, dyn<"m">, dyn<"n">>({m, n}, 1));
  }
  for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {30, 70}, {2100, 5}}) {
    CAPTURE(m);
    CAPTURE(n);
    compare<Cuda, columns>(1e-5, random<float, dyn<"m">, dyn<"n">>({m, n}, 1, 0.1, 2), random<float, dyn<"n">>({n}, 2, 0.1, 2));
  }
  compare<Cuda, middle>(1e-5, random<float, 3, 20, 33>({3, 20, 33}, 4, 0.1, 1));
  for (const std::int64_t n : {1, 1000, 40000}) compare<Cuda, whole>(1e-5, random<float, dyn<"n">>({n}, 1, -1, 2));
}

TEST_CASE("cuda: contractions") {
  for (const auto& [m, k, n] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 1}, {3, 5, 2}, {17, 33, 9}, {5, 0, 4}, {40, 20, 1}, {1, 20, 40}}) {
    CAPTURE(m);
    CAPTURE(k);
    CAPTURE(n);
    compare<Cuda, product>(1e-5, random<float, dyn<"m">, dyn<"k">>({m, k}, 1, 0.1, 1), random<float, dyn<"k">, dyn<"n">>({k, n}, 2, 0.1, 1));
  }
  compare<Cuda, product>(1e-4, random<float, 2, 3, 5, 8>({2, 3, 5, 8}, 1), random<float, 2, 3, 8, 6>({2, 3, 8, 6}, 2));
  compare<Cuda, product>(1e-4, random<float, 2, 1, 5, 8>({2, 1, 5, 8}, 1), random<float, 3, 8, 6>({3, 8, 6}, 2));
  compare<Cuda, product>(1e-2, random<tg::bf16, 9, 16>({9, 16}, 1, 0.1, 1), random<tg::bf16, 16, 12>({16, 12}, 2, 0.1, 1));
  compare<Cuda, product>(0, random<std::int32_t, 9, 16>({9, 16}, 1, -9, 9), random<std::int32_t, 16, 12>({16, 12}, 2, -9, 9));
  for (const std::int64_t n : {1, 12}) {
    const auto x = random<float, dyn<"n">, 20>({n, 20}, 1, -1, 1);
    const auto w = random<float, 12, 20>({12, 20}, 2, -0.2, 0.2);
    const auto b = random<float, 12>({12}, 3);
    compare<Cuda, layer>(1e-4, x, w, b);
    compare<Cuda, layer_gradients>(2e-4, x, w, b);
  }
}
