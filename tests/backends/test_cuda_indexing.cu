// Gather, scatter, sort, scan and random numbers of the CUDA back end against the reference.
#include "compare.hpp"

#include "typegrad/cuda.hpp"

using namespace test;
using tg::Cuda;

namespace {
constexpr auto rows_of = [](auto table, auto ids) {
  return std::tuple(tg::embedding(table, ids) * 2.0, tg::gradients(tg::sum(tg::square(tg::embedding(table, ids))), table));
};
constexpr auto softmax_of = [](auto table, auto ids) { return tg::softmax(tg::embedding(table, ids)); };
constexpr auto stores = [](auto x, auto index, auto updates) {
  return std::tuple(tg::scatter_add<1>(x, index, updates), tg::scatter<1>(x, index, updates));
};
constexpr auto order = [](auto x) { return std::tuple(tg::sort<-1>(x), tg::argsort<-1, true>(x), tg::sort<0>(x), tg::topk<3>(x)); };
constexpr auto scans = [](auto x) { return std::tuple(tg::cumsum<-1>(x), tg::cumsum<-1, true>(x), tg::cumsum<0>(x)); };
constexpr auto recurrence = [](auto a, auto b) { return std::tuple(tg::linear_scan<-1>(a, b), tg::linear_scan<-1, true>(a, b)); };
constexpr auto drawn = [](auto x, auto key) {
  return std::tuple(tg::uniform_like(x, key), tg::dropout(x, key, 0.25), tg::bernoulli_like(x, key, 0.3));
};
constexpr auto lookup = [](auto table, auto ids) { return tg::embedding(table, ids); };
}  // namespace

TEST_CASE("cuda: reading and writing at positions that are data") {
  compare<Cuda, rows_of>(1e-6, random<float, 9, 6>({9, 6}, 1), positions<7, 5>(2, 9));
  compare<Cuda, softmax_of>(1e-5, random<float, 9, 64>({9, 64}, 1), positions<7>(2, 9));
  compare<Cuda, stores>(1e-6, random<float, 6, 8>({6, 8}, 5), positions<6, 20>(6, 8), random<float, 6, 20>({6, 20}, 7));
  compare<Cuda, stores>(0, random<int, 6, 8>({6, 8}, 8, -90, 90), positions<6, 20>(9, 8), random<int, 6, 20>({6, 20}, 10, -90, 90));
}

TEST_CASE("cuda: sorting is stable and puts NaN last") {
  compare<Cuda, order>(0, random<float, 5, 301>({5, 301}, 12));
  compare<Cuda, order>(0, positions<1, 100>(13, 7));
  auto x = random<double, 4, 40>({4, 40}, 14);
  x.data()[5] = x.data()[50] = std::numeric_limits<double>::quiet_NaN();
  x.data()[7] = 0.0, x.data()[9] = -0.0;
  compare<Cuda, order>(0, x);
}

TEST_CASE("cuda: cumulative sums and recurrences, shorter and longer than one part") {
  compare<Cuda, scans>(2e-6, random<float, 3, 5>({3, 5}, 15, 0.5, 1));
  compare<Cuda, scans>(2e-6, random<float, 2, 5000>({2, 5000}, 16, 0.5, 1));
  compare<Cuda, recurrence>(2e-5, random<float, 2, 700>({2, 700}, 17, 0.2, 0.9), random<float, 2, 700>({2, 700}, 18, 0.5, 1));
  compare<Cuda, recurrence>(2e-5, random<float, 1, 5000>({1, 5000}, 17, 0.2, 0.9), random<float, 1, 5000>({1, 5000}, 18, 0.5, 1));
}

TEST_CASE("cuda: an index outside of its axis is an error at the copy to the host") {
  auto ids = positions<7, 5>(2, 9);
  ids.data()[11] = 9;
  const auto table = random<float, 9, 6>({9, 6}, 1).to<Cuda>();
  CHECK_THROWS_AS(tg::evaluate<lookup>(table, ids.to<Cuda>()).to<tg::Cpu>(), tg::Error);
}

TEST_CASE("cuda: random numbers are the same on every device") {
  auto key = Tensor<tg::Cpu, std::int64_t>::empty({});
  key.data()[0] = 42;
  compare<Cuda, drawn>(1e-6, random<float, 40, 25>({40, 25}, 19), key);
}
