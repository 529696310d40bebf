// Element-wise kernels of the CPU back end against the reference.
#include "compare.hpp"

using namespace test;
using tg::dyn;

namespace {

template <class T>
Tensor<Cpu, T, dyn<"n">> specials() {
  using L = std::numeric_limits<T>;
  std::vector<T> v{T(0), T(-0.0), T(1), T(-1), T(0.5), T(-0.5), T(2.5), T(-2.5), T(1e-3), T(-1e-3), T(80), T(-80), T(1e5), T(-1e5),
                   L::infinity(), -L::infinity(), L::quiet_NaN(), L::min(), L::denorm_min(), L::max(), -L::max(), L::epsilon(),
                   T(3.5), T(1.5), T(-1.5), T(0.999), T(10), T(-10), T(1e-8), T(700), T(-700), T(2), T(7.25), T(-0.25), T(100)};
  return Tensor<Cpu, T, dyn<"n">>::from(v, {static_cast<std::int64_t>(v.size())});
}

constexpr auto simple = [](auto x) {
  return std::tuple(-x, tg::abs(x), tg::sign(x), tg::relu(x), tg::floor(x), tg::ceil(x), tg::round(x), tg::trunc(x), tg::sqrt(x),
                    x + 1.0, x * x, x - 3.0, 1.0 / x, x < 0.5, x == x, x != 1.0, tg::where(x <= 1.0, x, 2.0));
};
constexpr auto functions = [](auto x) {
  return std::tuple(tg::exp(x), tg::expm1(x), tg::log(x), tg::log1p(x), tg::rsqrt(x), tg::cbrt(x), tg::tanh(x), tg::erf(x),
                    tg::erfc(x), tg::sigmoid(x), tg::atan(x), tg::sinh(x), tg::cosh(x), tg::asin(x), tg::acos(x));
};
constexpr auto angles = [](auto x) { return std::tuple(tg::sin(x), tg::cos(x), tg::tan(x)); };
constexpr auto activations = [](auto x) {
  return std::tuple(tg::gelu(x), tg::gelu_tanh(x), tg::silu(x), tg::softplus(x), tg::elu(x), tg::mish(x), tg::hard_swish(x));
};
constexpr auto pairs = [](auto x, auto y) {
  return std::tuple(tg::maximum(x, y), tg::minimum(x, y), tg::pow(x, y), tg::atan2(x, y), tg::fmod(x, y), x / y, x > y, x <= y);
};

}  // namespace

TEST_CASE("element-wise functions at special values") {
  compare<Cpu, simple>(0, specials<float>());
  compare<Cpu, simple>(0, specials<double>());
  compare<Cpu, functions>(2e-6, specials<float>());
  compare<Cpu, functions>(4e-15, specials<double>());
  compare<Cpu, activations>(1e-5, specials<float>());
}

TEST_CASE("element-wise functions on random values of many lengths") {
  for (const std::int64_t n : {0, 1, 7, 16, 33, 5000, 40000}) {
    const auto x = random<float, dyn<"n">>({n}, 1), y = random<float, dyn<"n">>({n}, 2);
    compare<Cpu, simple>(0, x);
    compare<Cpu, functions>(2e-6, x);
    compare<Cpu, angles>(2e-6, x);
    compare<Cpu, pairs>(3e-6, x, y);
  }
}

TEST_CASE("powers, quotients and remainders of all pairs of special values") {
  const auto s = specials<float>();
  const auto n = s.size();
  std::vector<float> a, b;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      a.push_back(s.data()[i]);
      b.push_back(s.data()[j]);
    }
  using V = Tensor<Cpu, float, dyn<"n">>;
  compare<Cpu, pairs>(3e-6, V::from(a, {n * n}), V::from(b, {n * n}));
}

TEST_CASE("broadcasting, transposing and slicing are index maps") {
  static constexpr auto f = [](auto a, auto b, auto c) {
    return std::tuple(a * b + c, tg::transpose(a) * 2.0, tg::slice<1, 1, 5, 2>(a) + 1.0, tg::flip<0>(a), tg::concat<0>(a, a * b), tg::concat<1>(a, a - c));
  };
  compare<Cpu, f>(1e-6, random<float, 7, 9>({7, 9}, 1), random<float, 9>({9}, 2), random<float, 7, 1>({7, 1}, 3));
  static constexpr auto g = [](auto a, auto b) { return tg::unsqueeze<1>(a) * b; };
  compare<Cpu, g>(1e-6, random<float, dyn<"n">, 33>({5, 33}, 1), random<float, 4, 33>({4, 33}, 2));
}

TEST_CASE("integers, bool and the narrow floating types") {
  static constexpr auto ints = [](auto a, auto b) {
    return std::tuple(a + b, a * b, a / b, tg::fmod(a, b), -a, tg::abs(a), tg::maximum(a, b), a < b, tg::cast<float>(a) * 0.5, tg::cast<std::int64_t>(a) + 1,
                      tg::where(a < b, a, b), tg::cast<bool>(a));
  };
  compare<Cpu, ints>(0, random<std::int32_t, 50>({50}, 1, -9, 9), random<std::int32_t, 50>({50}, 2, -5, 5));
  compare<Cpu, ints>(0, random<std::int64_t, 50>({50}, 1, -9, 9), random<std::int64_t, 50>({50}, 2, -5, 5));
  compare<Cpu, ints>(0, random<std::int8_t, 50>({50}, 1, -128, 127), random<std::int8_t, 50>({50}, 2, -128, 127));
  static constexpr auto bools = [](auto a) {
    const auto p = a > 0.0, q = a < 1.0;
    return std::tuple(p && q, p || q, !p, tg::cast<float>(p), tg::cast<std::int32_t>(a), tg::sum(p), tg::any(q), tg::all(p));
  };
  compare<Cpu, bools>(0, random<float, 37>({37}, 3));
  static constexpr auto narrow = [](auto a, auto b) { return std::tuple(a * b, a + b, tg::cast<float>(a), tg::relu(a), a < b); };
  compare<Cpu, narrow>(0, random<tg::bf16, 40>({40}, 1), random<tg::bf16, 40>({40}, 2));
  compare<Cpu, narrow>(0, random<tg::f16, 40>({40}, 1), random<tg::f16, 40>({40}, 2));
}

TEST_CASE("a lazy expression runs as one kernel and outlives its operands") {
  auto make = [] {
    Tensor<Cpu, float, 3> a({1, 2, 3});
    return tg::tanh(a) * a + 1.0f;
  };
  const auto lazy = make();
  const Tensor<Cpu, float, 3> c = lazy;
  for (int i = 0; i < 3; ++i) CHECK(c.at(i) == doctest::Approx(std::tanh(i + 1.0) * (i + 1) + 1));
  using L = std::remove_const_t<decltype(lazy)>;
  using P = tg::Program<Cpu, tg::detail::LazyFunction<L>, tg::Expr<float, 3>, tg::Expr<float, 3>, tg::Expr<float>>;
  CHECK(P::plan().kernels.size() == 1);
}

TEST_CASE("tensors of one element") {
  static constexpr auto f = [](auto x) { return std::tuple(x * 2.0, tg::sum(x), tg::matmul(tg::reshape<1, 1>(x), tg::reshape<1, 1>(x))); };
  compare<Cpu, f>(1e-6, random<float, 1>({1}, 1));
  static constexpr auto g = [](auto a, auto b, auto c) { return tg::matmul(a, b) + c; };
  compare<Cpu, g>(1e-5, random<float, 4, 8>({4, 8}, 1, 0.1, 1), random<float, 8, 1>({8, 1}, 2, 0.1, 1), random<float, 1>({1}, 3));
}
