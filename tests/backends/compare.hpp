// Runs the same function on a back end and on the reference and compares the results.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "typegrad/typegrad.hpp"

namespace test {

using tg::Cpu;
using tg::Reference;
using tg::Tensor;

inline bool close(double found, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(found);
  if (found == expected) return true;
  return std::fabs(found - expected) <= tolerance * (1e-30 + std::fabs(expected)) + tolerance * 1e-3;
}

template <class T>
double as_double(T v) {
  return static_cast<double>(static_cast<tg::compute_t<T>>(v));
}

template <class X, class Y>
void check_close(const X& found, const Y& expected, double tolerance) {
  if constexpr (requires { std::tuple_size<X>::value; }) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (check_close(std::get<I>(found), std::get<I>(expected), tolerance), ...);
    }(std::make_index_sequence<std::tuple_size_v<X>>{});
  } else {
    REQUIRE(found.shape() == expected.shape());
    const auto host = found.template to<Reference>();
    int shown = 0;
    for (std::int64_t i = 0; i < host.size(); ++i) {
      const double a = as_double(host.data()[i]), b = as_double(expected.data()[i]);
      if (close(a, b, tolerance) || ++shown > 3) continue;
      CAPTURE(i);
      CAPTURE(a);
      CAPTURE(b);
      FAIL_CHECK("the back end disagrees with the reference");
    }
    CHECK(shown == 0);
  }
}

// tolerance: relative, and a thousandth of it absolute.
template <class Device, auto F, class... X>
void compare(double tolerance, const X&... x) {
  check_close(tg::evaluate<F>(x.template to<Device>()...), tg::evaluate<F>(x.template to<Reference>()...), tolerance);
}

// Values in [low, high), the same in every run.
template <class T, auto... Ds>
Tensor<Cpu, T, Ds...> random(std::array<std::int64_t, sizeof...(Ds)> shape, std::uint64_t seed, double low = -2, double high = 2) {
  auto t = Tensor<Cpu, T, Ds...>::empty(shape);
  for (std::int64_t i = 0; i < t.size(); ++i)
    t.data()[i] = static_cast<T>(static_cast<tg::compute_t<T>>(
        low + (high - low) * tg::rng::uniform01<double>(seed, 0, 0, static_cast<std::uint64_t>(i))));
  return t;
}

// Integers in [0, count), the same in every run.
template <auto... Ds>
Tensor<Cpu, int, Ds...> positions(std::uint64_t seed, int count) {
  auto t = Tensor<Cpu, int, Ds...>::empty({Ds...});
  for (std::int64_t i = 0; i < t.size(); ++i)
    t.data()[i] = std::min(count - 1, static_cast<int>(count * tg::rng::uniform01<double>(seed, 0, 0, static_cast<std::uint64_t>(i))));
  return t;
}

}  // namespace test
