// The scalar meaning of every element-wise op, on the host and on the device. Packets overload the same names.
#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>

#include "typegrad/config.hpp"
#include "typegrad/kernels/philox.hpp"

namespace tg::math {

template <class T>
concept Real = std::floating_point<T>;
template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
template <class T>
concept Scalar = std::is_arithmetic_v<T>;

// Integer arithmetic wraps; a quotient by zero is 0 (as NumPy), never a trap.
template <Scalar T>
TYPEGRAD_HOST_DEVICE constexpr T add(T a, T b) {
  if constexpr (Integer<T>) return static_cast<T>(static_cast<std::make_unsigned_t<T>>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b)));
  else return static_cast<T>(a + b);
}
template <Scalar T>
TYPEGRAD_HOST_DEVICE constexpr T sub(T a, T b) {
  if constexpr (Integer<T>) return static_cast<T>(static_cast<std::make_unsigned_t<T>>(static_cast<std::make_unsigned_t<T>>(a) - static_cast<std::make_unsigned_t<T>>(b)));
  else return static_cast<T>(a - b);
}
template <Scalar T>
TYPEGRAD_HOST_DEVICE constexpr T mul(T a, T b) {
  if constexpr (Integer<T>) return static_cast<T>(static_cast<std::make_unsigned_t<T>>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b)));
  else return static_cast<T>(a * b);
}
template <Scalar T>
TYPEGRAD_HOST_DEVICE constexpr T neg(T x) {
  if constexpr (Integer<T>) return sub(T{0}, x);
  else return static_cast<T>(-x);
}
template <Scalar T>
TYPEGRAD_HOST_DEVICE constexpr T div(T a, T b) {
  if constexpr (Integer<T>) return b == 0 ? T{0} : b == T(-1) ? neg(a) : static_cast<T>(a / b);
  else return static_cast<T>(a / b);
}

template <Scalar T>
TYPEGRAD_HOST_DEVICE constexpr T select(bool condition, T a, T b) { return condition ? a : b; }
template <Scalar T> TYPEGRAD_HOST_DEVICE constexpr bool less(T a, T b) { return a < b; }
template <Scalar T> TYPEGRAD_HOST_DEVICE constexpr bool less_equal(T a, T b) { return a <= b; }
template <Scalar T> TYPEGRAD_HOST_DEVICE constexpr bool equal(T a, T b) { return a == b; }
template <Scalar T> TYPEGRAD_HOST_DEVICE constexpr bool not_equal(T a, T b) { return a != b; }
TYPEGRAD_HOST_DEVICE constexpr bool logical_and(bool a, bool b) { return a && b; }
TYPEGRAD_HOST_DEVICE constexpr bool logical_or(bool a, bool b) { return a || b; }
template <Scalar T> TYPEGRAD_HOST_DEVICE constexpr T logical_not(T a) { return static_cast<T>(!a); }

template <Scalar T> TYPEGRAD_HOST_DEVICE constexpr T random_bits(T key, T counter) {
  return static_cast<T>(rng::bits53(static_cast<std::int64_t>(key), static_cast<std::int64_t>(counter)));
}

// NaN wins, as in NumPy's maximum.
template <Scalar T> TYPEGRAD_HOST_DEVICE constexpr T maximum(T a, T b) { return a > b || a != a ? a : b; }
template <Scalar T> TYPEGRAD_HOST_DEVICE constexpr T minimum(T a, T b) { return a < b || a != a ? a : b; }

template <Scalar T>
TYPEGRAD_HOST_DEVICE constexpr T abs(T x) {
  if constexpr (Real<T>) return std::fabs(x);
  else return x < 0 ? neg(x) : x;
}
// Keeps zeros with their sign, and NaN.
template <Scalar T> TYPEGRAD_HOST_DEVICE constexpr T sign(T x) { return x > T{0} ? T(1) : x < T{0} ? T(-1) : x; }
template <Scalar T> TYPEGRAD_HOST_DEVICE constexpr T relu(T x) { return x <= T{0} ? T{0} : x; }

template <Real T> TYPEGRAD_HOST_DEVICE T exp(T x) { return std::exp(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T expm1(T x) { return std::expm1(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T log(T x) { return std::log(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T log1p(T x) { return std::log1p(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T sqrt(T x) { return std::sqrt(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T rsqrt(T x) { return T(1) / std::sqrt(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T cbrt(T x) { return std::cbrt(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T sin(T x) { return std::sin(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T cos(T x) { return std::cos(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T tan(T x) { return std::tan(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T asin(T x) { return std::asin(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T acos(T x) { return std::acos(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T atan(T x) { return std::atan(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T sinh(T x) { return std::sinh(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T cosh(T x) { return std::cosh(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T tanh(T x) { return std::tanh(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T erf(T x) { return std::erf(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T erfc(T x) { return std::erfc(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T sigmoid(T x) { return T(1) / (T(1) + std::exp(-x)); }
template <Real T> TYPEGRAD_HOST_DEVICE T floor(T x) { return std::floor(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T ceil(T x) { return std::ceil(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T round(T x) { return std::rint(x); }  // half to even
template <Real T> TYPEGRAD_HOST_DEVICE T trunc(T x) { return std::trunc(x); }
template <Real T> TYPEGRAD_HOST_DEVICE T pow(T x, T y) { return std::pow(x, y); }
template <Real T> TYPEGRAD_HOST_DEVICE T atan2(T y, T x) { return std::atan2(y, x); }
template <Scalar T>
TYPEGRAD_HOST_DEVICE T fmod(T a, T b) {
  if constexpr (Real<T>) return std::fmod(a, b);
  else return b == T{0} || b == T(-1) ? T{0} : static_cast<T>(a % b);
}

// Floating to integer saturates and takes NaN to 0, so that no input is undefined behaviour.
template <class To, Scalar From>
TYPEGRAD_HOST_DEVICE constexpr To convert(From x) {
  if constexpr (std::same_as<To, bool>) {
    return x != From{0};
  } else if constexpr (Integer<To> && Real<From>) {
    constexpr To lowest = std::numeric_limits<To>::lowest(), highest = (std::numeric_limits<To>::max)();
    if (x != x) return To{0};
    if (x <= static_cast<From>(lowest)) return lowest;
    if (x >= static_cast<From>(highest)) return highest;
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace tg::math
