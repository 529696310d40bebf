// Counter-based random numbers (Philox4x32-10): a function of seed, step, node and element, on every device.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "typegrad/kernels/philox.hpp"
#include "typegrad/runtime/error.hpp"

namespace tg::rng {

// The node numbers that shuffles and the keys of training steps draw from; no parameter has them.
inline constexpr std::uint32_t shuffle_node = 0xffffffffu;
inline constexpr std::uint32_t step_node = 0xfffffffeu;

// The 128 random bits of one element of one node at one step: everything below is computed from these.
TYPEGRAD_HOST_DEVICE constexpr PhiloxBlock block(std::uint64_t seed, std::uint32_t step, std::uint32_t node,
                                                 std::uint64_t element) {
  return philox(
      PhiloxBlock{{static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32), node, step}},
      PhiloxKey{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}});
}

// 32 uniform random bits.
TYPEGRAD_HOST_DEVICE constexpr std::uint32_t bits(std::uint64_t seed, std::uint32_t step, std::uint32_t node,
                                                  std::uint64_t element) {
  return block(seed, step, node, element).word[0];
}

// The upper 24 bits as a float in [0, 1): every value is exact and 1 is never reached.
TYPEGRAD_HOST_DEVICE constexpr float unit_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

// The upper 53 of 64 bits as a double in [0, 1).
TYPEGRAD_HOST_DEVICE constexpr double unit_double(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>(((std::uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

// Uniform in [0, 1): 24 random bits for float, 53 for double. The same bits on every device.
template <std::floating_point T = float>
TYPEGRAD_HOST_DEVICE constexpr T uniform01(std::uint64_t seed, std::uint32_t step, std::uint32_t node,
                                           std::uint64_t element) {
  static_assert(std::same_as<T, float> || std::same_as<T, double>, "uniform01 draws float or double");
  const PhiloxBlock b = block(seed, step, node, element);
  if constexpr (std::same_as<T, float>) {
    return unit_float(b.word[0]);
  } else {
    return unit_double(b.word[0], b.word[1]);
  }
}

// Standard normal, by Box and Muller. The random bits are the same everywhere; the value is the same up to the
// last bits of the platform's log and cos. |value| is below 6.8 for float, 8.7 for double.
template <std::floating_point T = float>
TYPEGRAD_HOST_DEVICE T normal(std::uint64_t seed, std::uint32_t step, std::uint32_t node, std::uint64_t element) {
  static_assert(std::same_as<T, float> || std::same_as<T, double>, "normal draws float or double");
  const PhiloxBlock b = block(seed, step, node, element);
  T radius_draw{};  // in (0, 1]: half a step above the integer, so that log never sees zero
  T angle_draw{};
  if constexpr (std::same_as<T, float>) {
    // All 32 bits, for the sake of the tails: near zero a float resolves them.
    radius_draw = static_cast<float>(b.word[0]) * 0x1p-32f + 0x1p-33f;
    angle_draw = unit_float(b.word[1]);
  } else {
    radius_draw = unit_double(b.word[0], b.word[1]) + 0x1p-54;
    angle_draw = unit_double(b.word[2], b.word[3]);
  }
  return std::sqrt(T{-2} * std::log(radius_draw)) * std::cos(T{2} * std::numbers::pi_v<T> * angle_draw);
}

// Puts `items` into an order that depends on (seed, epoch) and their number alone, the same on every platform.
// Every order is equally likely (Fisher and Yates, with draws free of modulo bias). Allocates nothing.
template <class T>
void shuffle(std::span<T> items, std::uint64_t seed, std::uint32_t epoch) {
  std::uint64_t draws = 0;
  for (std::size_t i = items.size(); i > 1; --i) {
    const std::uint64_t bound = i;
    // The lowest 2^64 mod bound values are drawn again; what is left is a whole multiple of bound.
    const std::uint64_t rejected = (std::uint64_t{0} - bound) % bound;
    std::uint64_t draw = 0;
    do {
      const PhiloxBlock b = block(seed, epoch, shuffle_node, draws++);
      draw = (std::uint64_t{b.word[1]} << 32) | b.word[0];
    } while (draw < rejected);
    using std::swap;
    swap(items[i - 1], items[static_cast<std::size_t>(draw % bound)]);
  }
}

// The numbers 0 .. n-1 in the order that shuffle(seed, epoch) gives. Throws Error when n is negative.
inline std::vector<std::int64_t> permutation(std::int64_t n, std::uint64_t seed, std::uint32_t epoch) {
  if (n < 0) throw Error(detail::concat_text("permutation: the count must not be negative, found ", n));
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  shuffle(std::span(order), seed, epoch);
  return order;
}

}  // namespace tg::rng
