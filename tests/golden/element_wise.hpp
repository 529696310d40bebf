// The element-wise ops of the golden cases, in the order of their names.
#pragma once

#include "golden.hpp"

namespace golden {

inline constexpr auto all_reals = [](auto x) {
  return std::tuple(tg::neg(x), tg::abs(x), tg::sign(x), tg::square(x), tg::cbrt(x), tg::exp(x), tg::expm1(x), tg::exp2(x), tg::atan(x), tg::sinh(x), tg::cosh(x),
                    tg::tanh(x), tg::erf(x), tg::erfc(x), tg::sigmoid(x), tg::log_sigmoid(x), tg::softplus(x), tg::relu(x));
};
inline const std::vector<std::string> all_reals_names{"neg",  "abs",  "sign", "square", "cbrt",    "exp",         "expm1",    "exp2", "atan",
                                                      "sinh", "cosh", "tanh", "erf",    "erfc",    "sigmoid",     "log_sigmoid", "softplus", "relu"};
inline constexpr auto activations = [](auto x) {
  return std::tuple(tg::leaky_relu(x), tg::elu(x), tg::selu(x), tg::silu(x), tg::gelu(x), tg::gelu_tanh(x), tg::mish(x), tg::hard_sigmoid(x), tg::hard_swish(x),
                    tg::clamp(x, -0.75, 1.25), tg::floor(x), tg::ceil(x), tg::round(x), tg::trunc(x));
};
inline const std::vector<std::string> activations_names{"leaky_relu", "elu",          "selu",       "silu",  "gelu",  "gelu_tanh", "mish",
                                                        "hard_sigmoid", "hard_swish", "clamp", "floor", "ceil",  "round",     "trunc"};
inline constexpr auto angles = [](auto x) { return std::tuple(tg::sin(x), tg::cos(x), tg::tan(x)); };
inline const std::vector<std::string> angles_names{"sin", "cos", "tan"};
inline constexpr auto inside = [](auto x) {
  return std::tuple(tg::sqrt(x), tg::rsqrt(x), tg::log(x), tg::log1p(x), tg::log2(x), tg::log10(x), tg::asin(x), tg::acos(x), tg::isnan(x), tg::isinf(x), tg::isfinite(x));
};
inline const std::vector<std::string> inside_names{"sqrt", "rsqrt", "log", "log1p", "log2", "log10", "asin", "acos", "isnan", "isinf", "isfinite"};
inline constexpr auto pairs = [](auto a, auto b) {
  return std::tuple(a + b, a - b, a * b, a / b, tg::pow(tg::abs(a), b), tg::maximum(a, b), tg::minimum(a, b), tg::fmod(a, b), tg::remainder(a, b), tg::atan2(a, b),
                    tg::where(a < b, a * b, b), a < b, a <= b, tg::floor(a) == tg::floor(b), a > 0 && (b > 0 || !(a < b)));
};
inline const std::vector<std::string> pairs_names{"add", "sub", "mul", "div", "pow", "maximum", "minimum", "fmod", "remainder", "atan2", "where", "less", "less_equal", "equal", "logical"};

template <class T>
std::string type_name() { return std::same_as<T, float> ? "f32" : "f64"; }

// Angles are left out where a device's slow path for huge ones is not at hand.
template <class Device, class T, bool Angles = true>
void check_unary(Tolerance value) {
  const auto file = open("element_wise");
  const std::string t = type_name<T>();
  check<Device, all_reals, In<T, 23>>(file, "all/" + t + "/special", all_reals_names, value);
  check<Device, activations, In<T, 23>>(file, "all/" + t + "/special", activations_names, value);
  check<Device, inside, In<T, 23>>(file, "inside/" + t + "/special", inside_names, value);
  if constexpr (Angles) check<Device, angles, In<T, 23>>(file, "all/" + t + "/special", angles_names, value);
}
template <class Device, class T>
void check_unary_gradients(Tolerance value, Tolerance gradient) {
  const auto file = open("element_wise");
  const std::string t = type_name<T>();
  check<Device, all_reals, In<T, 5, 7>>(file, "all/" + t, all_reals_names, value, gradient);
  check<Device, activations, In<T, 5, 7>>(file, "all/" + t, activations_names, value, gradient);
  check<Device, inside, In<T, 5, 7>>(file, "inside/" + t, inside_names, value, gradient);
  check<Device, angles, In<T, 5, 7>>(file, "all/" + t, angles_names, value, gradient);
}
template <class Device, class T>
void check_pairs(Tolerance value, Tolerance gradient, Tolerance broadcast_gradient) {
  const auto file = open("element_wise");
  const std::string t = type_name<T>();
  check<Device, pairs, In<T, 4, 6>, In<T, 4, 6>>(file, "pairs/" + t + "/same", pairs_names, value, gradient);
  check<Device, pairs, In<T, 4, 6>, In<T, 6>>(file, "pairs/" + t + "/row", pairs_names, value, broadcast_gradient);
  check<Device, pairs, In<T, 4, 1>, In<T, 1, 6>>(file, "pairs/" + t + "/column", pairs_names, value, broadcast_gradient);
}

}  // namespace golden
