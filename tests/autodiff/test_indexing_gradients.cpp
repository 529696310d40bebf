// Gradients of gather, scatter, sort and scan ops against central differences in double, on the CPU and the reference.
#include <doctest/doctest.h>

#include <cmath>

#include "typegrad/typegrad.hpp"

namespace {
using tg::Tensor;

constexpr auto cubes = [](auto y) { return tg::sum(y * y * y); };
constexpr auto take_loss = [](auto x, auto index) { return cubes(tg::take<1>(x, index)); };
constexpr auto along_loss = [](auto x, auto index) { return cubes(tg::take_along_axis<1>(x, index)); };
constexpr auto scatter_loss = [](auto x, auto index) { return cubes(tg::scatter<1>(x, index, tg::slice<1, 0, 4>(x) * 2.0)); };
constexpr auto scatter_add_loss = [](auto x, auto index) { return cubes(tg::scatter_add<1>(x, index, tg::slice<1, 0, 4>(x) * 2.0)); };
constexpr auto sort_loss = [](auto x, auto) { return cubes(tg::sort<-1>(x) * tg::cast<double>(tg::arange<int, 6>(x))); };
constexpr auto topk_loss = [](auto x, auto) { return cubes(std::get<0>(tg::topk<2>(x))); };
constexpr auto median_loss = [](auto x, auto) { return cubes((tg::median<-1>)(x)); };
constexpr auto cumsum_loss = [](auto x, auto) { return cubes(tg::cumsum<0>(x)) + cubes(tg::cumsum<1, true>(x)); };
constexpr auto cumprod_loss = [](auto x, auto) { return cubes(tg::cumprod<-1>(x)); };
constexpr auto scan_loss = [](auto x, auto) { return cubes(tg::linear_scan<-1>(x * 0.5, x)) + cubes(tg::linear_scan<0, true>(x, x * x)); };

template <class Device, auto Loss>
void check_differences(Tensor<Device, double, 3, 6> x, const Tensor<Device, int, 3, 4>& index) {
  const auto d = tg::grad<Loss>(x, index);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    CAPTURE(i);
    const double kept = x.data()[i], h = 1e-5;
    x.data()[i] = kept + h;
    const double above = tg::evaluate<Loss>(x, index).data()[0];
    x.data()[i] = kept - h;
    const double below = tg::evaluate<Loss>(x, index).data()[0];
    x.data()[i] = kept;
    CHECK(d.data()[i] == doctest::Approx((above - below) / (2 * h)).epsilon(1e-6));
  }
}
}  // namespace

TEST_CASE_TEMPLATE("indexing ops have the gradients that differences show", Device, tg::Cpu, tg::Reference) {
  auto x = Tensor<Device, double, 3, 6>::empty({3, 6});
  for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = 0.3 + std::fmod(0.618034 * static_cast<double>(i), 1.0);
  auto index = Tensor<Device, int, 3, 4>::empty({3, 4});
  for (std::int64_t i = 0; i < index.size(); ++i) index.data()[i] = static_cast<int>((i * i) % 5);
  check_differences<Device, take_loss>(x, index);
  check_differences<Device, along_loss>(x, index);
  check_differences<Device, scatter_loss>(x, index);
  check_differences<Device, scatter_add_loss>(x, index);
  check_differences<Device, sort_loss>(x, index);
  check_differences<Device, topk_loss>(x, index);
  check_differences<Device, median_loss>(x, index);
  check_differences<Device, cumsum_loss>(x, index);
  check_differences<Device, cumprod_loss>(x, index);
  check_differences<Device, scan_loss>(x, index);
}
