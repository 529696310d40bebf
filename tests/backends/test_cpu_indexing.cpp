// Gather, scatter, sort, scan and random numbers on the CPU against the reference.
#include "compare.hpp"

using namespace test;

namespace {
constexpr auto rows_of = [](auto table, auto ids) {
  return std::tuple(tg::embedding(table, ids), tg::gradients(tg::sum(tg::square(tg::embedding(table, ids))), table));
};
constexpr auto along = [](auto x, auto index) { return tg::take_along_axis<1>(x, index); };
constexpr auto stores = [](auto x, auto index, auto updates) {
  return std::tuple(tg::scatter_add<1>(x, index, updates), tg::scatter<1>(x, index, updates));
};
constexpr auto store_gradients = [](auto x, auto index, auto updates) {
  return std::tuple(tg::gradients(tg::sum(tg::square(tg::scatter<1>(x, index, updates))), x, updates),
                    tg::gradients(tg::sum(tg::square(tg::scatter_add<1>(x, index, updates))), x, updates));
};
constexpr auto drawn = [](auto x, auto key) {
  return std::tuple(tg::uniform_like(x, key), tg::dropout(x, key, 0.25), tg::bernoulli_like(x, key, 0.3), tg::normal_like(x, key));
};
constexpr auto uniform = [](auto x, auto key) { return tg::uniform_like(x, key); };
constexpr auto normal = [](auto x, auto key) { return tg::normal_like(x, key); };
constexpr auto counts = [](auto ids) { return tg::bincount<9>(ids); };
constexpr auto order = [](auto x) {
  return std::tuple(tg::sort<-1>(x), tg::argsort<-1>(x), tg::argsort<-1, true>(x), tg::sort<0>(x), tg::topk<3>(x));
};
constexpr auto searched = [](auto x, auto values) {
  return std::tuple(tg::searchsorted(tg::sort<-1>(x), values), tg::searchsorted<true>(tg::sort<-1>(x), values));
};
constexpr auto scans = [](auto x) {
  return std::tuple(tg::cumsum<-1>(x), tg::cumsum<-1, true>(x), tg::cumsum<0>(x),
                    tg::gradients(tg::sum(tg::square(tg::cumsum<-1>(x))), x));
};
constexpr auto products = [](auto x) { return std::tuple(tg::cumprod<-1>(x), tg::gradients(tg::sum(tg::cumprod<-1>(x)), x)); };
constexpr auto recurrence = [](auto a, auto b) {
  return std::tuple(tg::linear_scan<-1>(a, b), tg::linear_scan<-1, true>(a, b), tg::gradients(tg::sum(tg::square(tg::linear_scan<-1>(a, b))), a, b));
};
}  // namespace

TEST_CASE("cpu: reading and writing at positions that are data") {
  compare<Cpu, rows_of>(1e-6, random<float, 9, 6>({9, 6}, 1), positions<7, 5>(2, 9));
  compare<Cpu, along>(0, random<float, 6, 8>({6, 8}, 3), positions<6, 5>(4, 8));
  compare<Cpu, stores>(1e-6, random<float, 6, 8>({6, 8}, 5), positions<6, 20>(6, 8), random<float, 6, 20>({6, 20}, 7));
  compare<Cpu, store_gradients>(1e-6, random<float, 6, 8>({6, 8}, 5), positions<6, 20>(6, 8), random<float, 6, 20>({6, 20}, 7));
  compare<Cpu, stores>(0, random<int, 6, 8>({6, 8}, 8, -90, 90), positions<6, 20>(9, 8), random<int, 6, 20>({6, 20}, 10, -90, 90));
  compare<Cpu, counts>(0, positions<1000>(11, 9));
}

TEST_CASE("cpu: sorting is stable and puts NaN last") {
  compare<Cpu, order>(0, random<float, 5, 301>({5, 301}, 12));
  compare<Cpu, order>(0, positions<4, 100>(13, 7));
  auto x = random<double, 4, 40>({4, 40}, 14);
  x.data()[5] = x.data()[50] = std::numeric_limits<double>::quiet_NaN();
  x.data()[7] = 0.0, x.data()[9] = -0.0;
  compare<Cpu, order>(0, x);
}

TEST_CASE("cpu: searchsorted finds the place before equal elements, or behind them") {
  const auto x = Tensor<Cpu, float, 5>({1, 3, 3, 5, 7});
  const auto values = Tensor<Cpu, float, 5>({0, 3, 4, 8, std::numeric_limits<float>::quiet_NaN()});
  const auto [before, behind] = tg::evaluate<searched>(x, values);
  const std::array<std::int64_t, 5> first{0, 1, 3, 5, 5}, last{0, 3, 3, 5, 5};
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(before.data()[i] == first[i]);
    CHECK(behind.data()[i] == last[i]);
  }
  compare<Cpu, searched>(0, positions<50>(22, 20), positions<40>(23, 20));
}

TEST_CASE("cpu: cumulative sums, products and recurrences") {
  compare<Cpu, scans>(2e-6, random<float, 3, 5>({3, 5}, 15, 0.5, 1));
  compare<Cpu, scans>(2e-6, random<float, 2, 3000>({2, 3000}, 16, 0.5, 1));
  // A product rounds once for each factor before it.
  compare<Cpu, products>(5e-5, random<float, 3, 300>({3, 300}, 21, 0.95, 1.05));
  compare<Cpu, recurrence>(2e-5, random<float, 3, 700>({3, 700}, 17, 0.2, 0.9), random<float, 3, 700>({3, 700}, 18, 0.5, 1));
}

TEST_CASE("cpu: an index outside of its axis is an error that says where") {
  auto ids = positions<7, 5>(2, 9);
  ids.data()[11] = 9;
  const auto table = random<float, 9, 6>({9, 6}, 1);
  constexpr auto lookup = [](auto w, auto i) { return tg::embedding(w, i); };
  CHECK_THROWS_AS(tg::evaluate<lookup>(table, ids), tg::Error);
  ids.data()[11] = -1;
  CHECK_THROWS_AS(tg::evaluate<lookup>(table, ids), tg::Error);
}

TEST_CASE("cpu: random numbers are the same on every device") {
  auto key = Tensor<tg::Cpu, std::int64_t>::empty({});
  key.data()[0] = 42;
  compare<Cpu, drawn>(1e-6, random<float, 40, 25>({40, 25}, 19), key);
  // Mean and variance of 200,000 draws, within five standard errors of the exact ones.
  const auto like = random<double, 200000>({200000}, 20);
  const auto moments = [](const auto& t) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < t.size(); ++i) sum += t.data()[i], squares += t.data()[i] * t.data()[i];
    const double n = static_cast<double>(t.size()), mean = sum / n;
    return std::pair(mean, squares / n - mean * mean);
  };
  const auto u = moments(tg::evaluate<uniform>(like, key));
  CHECK(std::fabs(u.first - 0.5) < 5 * 0.2887 / std::sqrt(2e5));
  CHECK(std::fabs(u.second - 1.0 / 12) < 5 * 0.0746 / std::sqrt(2e5));
  const auto z = moments(tg::evaluate<normal>(like, key));
  CHECK(std::fabs(z.first) < 5 / std::sqrt(2e5));
  CHECK(std::fabs(z.second - 1) < 5 * 1.4143 / std::sqrt(2e5));
}
