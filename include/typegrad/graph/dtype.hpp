// Element types: the C++ type of an element and its run-time tag.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "typegrad/config.hpp"

namespace tg {

// bfloat16: the upper half of a float. Storage only; arithmetic happens in float.
struct bf16 {
  std::uint16_t bits = 0;
  constexpr bf16() = default;
  // Rounds to nearest, ties to even; NaN stays a quiet NaN.
  TYPEGRAD_HOST_DEVICE constexpr explicit bf16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    bits = (u & 0x7fffffffu) > 0x7f800000u ? static_cast<std::uint16_t>((u >> 16) | 0x40u)
                                           : static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  TYPEGRAD_HOST_DEVICE constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  constexpr bool operator==(const bf16&) const = default;
};

// IEEE 754 binary16. Storage only; arithmetic happens in float.
struct f16 {
  std::uint16_t bits = 0;
  constexpr f16() = default;
  // Rounds to nearest, ties to even; overflow gives infinity, NaN stays a quiet NaN.
  TYPEGRAD_HOST_DEVICE constexpr explicit f16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (u >> 16) & 0x8000u;
    const std::uint32_t magnitude = u & 0x7fffffffu;
    std::uint32_t half = 0;
    if (magnitude > 0x7f800000u) {
      half = 0x7e00u;
    } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
      half = 0x7c00u;
    } else if (magnitude < 0x38800000u) {  // subnormal: the float adder does the rounding
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    } else {
      half = (magnitude - 0x38000000u + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
    }
    bits = static_cast<std::uint16_t>(sign | half);
  }
  TYPEGRAD_HOST_DEVICE constexpr explicit operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fu;
    const std::uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  constexpr bool operator==(const f16&) const = default;
};

enum class DType : std::uint8_t { f32, f64, bf16, f16, i8, i32, i64, boolean };

constexpr std::string_view name(DType t) {
  constexpr std::string_view names[] = {"float", "double", "bf16", "f16", "int8", "int32", "int64", "bool"};
  return names[static_cast<int>(t)];
}

constexpr std::int64_t size_of(DType t) {
  constexpr std::int64_t sizes[] = {4, 8, 2, 2, 1, 4, 8, 1};
  return sizes[static_cast<int>(t)];
}

constexpr bool is_floating(DType t) { return t <= DType::f16; }
constexpr bool is_integer(DType t) { return t == DType::i8 || t == DType::i32 || t == DType::i64; }

namespace detail {
template <class T>
struct dtype_tag;
template <> struct dtype_tag<float> { static constexpr DType value = DType::f32; };
template <> struct dtype_tag<double> { static constexpr DType value = DType::f64; };
template <> struct dtype_tag<bf16> { static constexpr DType value = DType::bf16; };
template <> struct dtype_tag<f16> { static constexpr DType value = DType::f16; };
template <> struct dtype_tag<std::int8_t> { static constexpr DType value = DType::i8; };
template <> struct dtype_tag<std::int32_t> { static constexpr DType value = DType::i32; };
template <> struct dtype_tag<std::int64_t> { static constexpr DType value = DType::i64; };
template <> struct dtype_tag<bool> { static constexpr DType value = DType::boolean; };

template <DType D>
struct element_type;
template <> struct element_type<DType::f32> { using type = float; };
template <> struct element_type<DType::f64> { using type = double; };
template <> struct element_type<DType::bf16> { using type = bf16; };
template <> struct element_type<DType::f16> { using type = f16; };
template <> struct element_type<DType::i8> { using type = std::int8_t; };
template <> struct element_type<DType::i32> { using type = std::int32_t; };
template <> struct element_type<DType::i64> { using type = std::int64_t; };
template <> struct element_type<DType::boolean> { using type = bool; };
}  // namespace detail

template <class T>
inline constexpr DType dtype_of = detail::dtype_tag<T>::value;

template <DType D>
using element_t = typename detail::element_type<D>::type;

// The type in which values of T are computed and accumulated element by element.
template <class T>
struct compute_type { using type = T; };
template <> struct compute_type<bf16> { using type = float; };
template <> struct compute_type<f16> { using type = float; };
template <class T>
using compute_t = typename compute_type<T>::type;

}  // namespace tg
