// Compares ops with the values and gradients in tests/golden/*.safetensors, which bench/peers/golden.py wrote.
#pragma once

#include <doctest/doctest.h>

#include <cmath>

#include "typegrad/typegrad.hpp"

namespace golden {

template <class T, auto... Ds>
using In = tg::Expr<T, Ds...>;

inline const tg::io::TensorEntry* find(const tg::io::SafetensorsFile& file, const std::string& name, bool must = true) {
  const tg::io::TensorEntry* e = file.find(name);
  if (e == nullptr && must) throw tg::Error("'" + name + "' is not in " + file.path().string());
  return e;
}

inline std::vector<double> numbers(const tg::io::SafetensorsFile& file, const tg::io::TensorEntry& e) {
  std::vector<std::byte> bytes(e.bytes);
  file.read(e, bytes);
  std::vector<double> r;
  auto take = [&]<class T>(T) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) {
      T v;
      std::memcpy(&v, bytes.data() + i, sizeof(T));
      r.push_back(static_cast<double>(v));
    }
  };
  switch (e.dtype) {
    case tg::DType::f32: take(float{}); break;
    case tg::DType::f64: take(double{}); break;
    case tg::DType::i32: take(std::int32_t{}); break;
    case tg::DType::i64: take(std::int64_t{}); break;
    case tg::DType::boolean: take(std::uint8_t{}); break;
    default: throw tg::Error("a golden tensor of dtype " + std::string(tg::name(e.dtype)));
  }
  return r;
}

template <class Device, class E>
tg::tensor_t<Device, E> load(const tg::io::SafetensorsFile& file, const std::string& name) {
  using T = typename E::value_type;
  const std::vector<double> v = numbers(file, *find(file, name));
  std::vector<T> typed;
  for (double x : v) typed.push_back(static_cast<T>(x));
  return tg::tensor_t<Device, E>::from(typed);
}

// How far a result may be off: relative to each expected value, or to the largest of its tensor.
struct Tolerance {
  double relative = 0;
  bool of_largest = false;
};

template <class X>
void compare(const tg::io::SafetensorsFile& file, const std::string& name, const X& found, Tolerance tolerance) {
  using T = typename X::value_type;
  CAPTURE(name);
  const std::vector<double> expected = numbers(file, *find(file, name));
  const auto host = found.template to<tg::Reference>();
  REQUIRE(static_cast<std::size_t>(host.size()) == expected.size());
  double largest = 0;
  for (double e : expected)
    if (std::isfinite(e)) largest = (std::fmax)(largest, std::fabs(e));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double f = static_cast<double>(host.data()[i]);
    const double e = static_cast<double>(static_cast<T>(expected[i]));
    if (f == e || (std::isnan(f) && std::isnan(e))) continue;
    // The smallest normal number times the tolerance: subnormal results are as good as 0.
    const double scale = tolerance.of_largest ? largest : std::fabs(e);
    const double floor = std::same_as<T, float> ? 1.2e-38 : 2.3e-308;
    if (std::isfinite(e) && std::fabs(f - e) <= tolerance.relative * scale + floor) continue;
    CAPTURE(i);
    CAPTURE(e);
    CAPTURE(f);
    FAIL_CHECK("the result differs from the golden value");
  }
}

namespace detail {

// The floating ones among expressions.
constexpr auto floating_only() { return std::tuple<>{}; }
template <class X, class... Rest>
constexpr auto floating_only(const X& x, const Rest&... rest) {
  if constexpr (tg::is_floating(X::element)) return std::tuple_cat(std::tuple(x), floating_only(rest...));
  else return floating_only(rest...);
}

// The gradients of a third of the sum of the cubes of each floating result in each floating argument.
template <auto F>
struct Gradients {
  template <class... X>
  constexpr auto operator()(const X&... x) const {
    return std::apply(
        [&](const auto&... r) {
          return std::tuple_cat([&] {
            if constexpr (tg::is_floating(std::remove_cvref_t<decltype(r)>::element))
              return std::apply([&](const auto&... in) { return tg::gradients(tg::sum(r * r * r) / 3.0, in...); }, floating_only(x...));
            else
              return std::tuple<>{};
          }()...);
        },
        F(x...));
  }
};

}  // namespace detail

// Checks the results of F, which returns a tuple with one result for each of the names, on a group's inputs; and, if
// gradients are asked for, theirs.
template <class Device, auto F, class... In>
void check(const tg::io::SafetensorsFile& file, const std::string& group, const std::vector<std::string>& names, Tolerance value, Tolerance gradient = {}) {
  CAPTURE(group);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto results = tg::evaluate<F>(load<Device, In>(file, group + "/in" + std::to_string(I))...);
    REQUIRE(std::tuple_size_v<std::remove_cvref_t<decltype(results)>> == names.size());
    std::size_t k = 0;
    std::apply([&](const auto&... r) { (compare(file, group + "/" + names[k++] + "/out", r, value), ...); }, results);
    if (gradient.relative == 0) return;
    const auto all = tg::evaluate<detail::Gradients<F>{}>(load<Device, In>(file, group + "/in" + std::to_string(I))...);
    std::vector<std::string> paths;
    for (const std::string& name : names)
      for (const std::size_t i : {I...})
        if (find(file, group + "/" + name + "/grad" + std::to_string(i), false) != nullptr) paths.push_back(group + "/" + name + "/grad" + std::to_string(i));
    REQUIRE(std::tuple_size_v<std::remove_cvref_t<decltype(all)>> == paths.size());
    k = 0;
    std::apply([&](const auto&... r) { (compare(file, paths[k++], r, gradient), ...); }, all);
  }(std::index_sequence_for<In...>{});
}

inline tg::io::SafetensorsFile open(const char* family) { return tg::io::SafetensorsFile(std::string(TYPEGRAD_GOLDEN_DIRECTORY "/") + family + ".safetensors"); }

}  // namespace golden
