// Row and column kernels of the CPU back end against the reference.
#include "compare.hpp"

using namespace test;
using tg::dyn;

namespace {
constexpr auto rows = [](auto x) {
  return std::tuple(tg::softmax(x), tg::log_softmax(x), tg::rms_norm(x), tg::logsumexp<-1>(x), tg::mean<-1>(x),
                    (tg::max<-1>)(x), (tg::min<-1>)(x), tg::argmax<-1>(x), tg::argmin<-1>(x), tg::var<0, -1>(x));
};
// Near the mean, the difference from it has the rounding errors of the mean.
constexpr auto centred = [](auto x) { return tg::layer_norm(x); };
constexpr auto columns = [](auto x, auto w) {
  return std::tuple(tg::sum<0>(x), (tg::max<0>)(x), tg::sum<0>(x * w), tg::mean<0>(tg::exp(x)), tg::sum<0>(tg::relu(x)));
};
constexpr auto whole = [](auto x) { return std::tuple(tg::sum(x), tg::mean(x * x), (tg::max)(x), (tg::min)(x), tg::sum(x > 0.0)); };
constexpr auto gradients = [](auto x) {
  return tg::gradients(tg::sum(tg::softmax(x) * tg::layer_norm(x)), x);
};
}  // namespace

TEST_CASE("reductions along rows") {
  for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {3, 10}, {5, 33}, {128, 10}, {64, 1000}, {2, 20001}}) {
    CAPTURE(m);
    CAPTURE(n);
    compare<Cpu, rows>(2e-5, random<float, dyn<"m">, dyn<"n">>({m, n}, 1));
    compare<Cpu, centred>(2e-4, random<float, dyn<"m">, dyn<"n">>({m, n}, 1));
    compare<Cpu, gradients>(1e-4, random<float, dyn<"m">, dyn<"n">>({m, n}, 2));
  }
  compare<Cpu, rows>(1e-12, random<double, 9, 50>({9, 50}, 3));
  compare<Cpu, centred>(1e-11, random<double, 9, 50>({9, 50}, 3));
}

TEST_CASE("reductions along columns") {
  for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {3, 10}, {128, 512}, {2000, 65}, {1100, 130}, {5, 1000}, {40000, 10}}) {
    CAPTURE(m);
    CAPTURE(n);
    compare<Cpu, columns>(1e-5, random<float, dyn<"m">, dyn<"n">>({m, n}, 1, 0.1, 2), random<float, dyn<"n">>({n}, 2, 0.1, 2));
  }
  static constexpr auto middle = [](auto x) { return std::tuple(tg::sum<1>(x), tg::sum<0, 2>(x), (tg::max<0, 1>)(x)); };
  compare<Cpu, middle>(1e-5, random<float, 6, 70, 40>({6, 70, 40}, 4, 0.1, 1));
}

TEST_CASE("reductions of everything") {
  for (const std::int64_t n : {1, 15, 1000, 100000, 1000003}) {
    CAPTURE(n);
    compare<Cpu, whole>(2e-6, random<float, dyn<"n">>({n}, 1, -1, 2));
  }
  // The sum of many equal numbers does not drift.
  const std::int64_t n = 1 << 24;
  static constexpr auto total = [](auto x) { return tg::sum(x); };
  const auto tenths = Tensor<Cpu, float, dyn<"n">>::full(0.1f, {n});
  CHECK(static_cast<double>(tg::evaluate<total>(tenths).item()) == doctest::Approx(static_cast<double>(0.1f) * static_cast<double>(n)).epsilon(1e-6));
}

TEST_CASE("results do not depend on the number of threads") {
#if defined(_OPENMP)
  const auto x = random<float, dyn<"m">, dyn<"n">>({300, 1000}, 1);
  const auto w = random<float, dyn<"n">>({1000}, 2);
  const int before = omp_get_max_threads();
  auto run = [&](int threads) {
    omp_set_num_threads(threads);
    return std::tuple_cat(tg::evaluate<rows>(x), tg::evaluate<columns>(x, w), tg::evaluate<whole>(x));
  };
  const auto one = run(1);
  for (const int threads : {2, 3, 5}) {
    const auto many = run(threads);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      auto same = [](const auto& a, const auto& b) { CHECK(a.to_vector() == b.to_vector()); };
      (same(std::get<I>(one), std::get<I>(many)), ...);
    }(std::make_index_sequence<std::tuple_size_v<decltype(one)>>{});
  }
  omp_set_num_threads(before);
#endif
}
