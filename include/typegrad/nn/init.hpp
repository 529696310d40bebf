// Initial values of parameters, drawn from the counter-based generator: a function of (seed, parameter, element).
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "typegrad/graph/dtype.hpp"
#include "typegrad/runtime/random.hpp"

namespace tg {

// A distribution by its kind and one number: the constant, or the variance of a distribution with mean 0.
struct Init {
  enum class Kind : std::uint8_t { constant, normal, uniform };
  Kind kind = Kind::constant;
  double value = 0;
};

namespace init {

constexpr Init zeros() { return {Init::Kind::constant, 0.0}; }
constexpr Init ones() { return {Init::Kind::constant, 1.0}; }
constexpr Init constant(double v) { return {Init::Kind::constant, v}; }
constexpr Init normal(double stddev) { return {Init::Kind::normal, stddev * stddev}; }
// Uniform in [-bound, bound).
constexpr Init uniform(double bound) { return {Init::Kind::uniform, bound * bound / 3.0}; }
// He et al. 2015: variance gain² / fan_in, gain² = 2 / (1 + slope²) for leaky_relu of that slope (0 for relu).
constexpr Init kaiming_normal(double fan_in, double slope = 0.0) { return {Init::Kind::normal, 2.0 / ((1.0 + slope * slope) * fan_in)}; }
constexpr Init kaiming_uniform(double fan_in, double slope = 0.0) { return {Init::Kind::uniform, 2.0 / ((1.0 + slope * slope) * fan_in)}; }
// Glorot and Bengio 2010: variance 2 / (fan_in + fan_out).
constexpr Init xavier_normal(double fan_in, double fan_out) { return {Init::Kind::normal, 2.0 / (fan_in + fan_out)}; }
constexpr Init xavier_uniform(double fan_in, double fan_out) { return {Init::Kind::uniform, 2.0 / (fan_in + fan_out)}; }
// Variance 1 / (3 fan_in), a bound of 1 / sqrt(fan_in): what PyTorch gives linear layers and convolutions.
constexpr Init fan_in_uniform(double fan_in) { return {Init::Kind::uniform, 1.0 / (3.0 * fan_in)}; }

}  // namespace init

// Fills the elements of the parameter with that number.
template <class T>
void initialise(const Init& init, std::span<T> elements, std::uint64_t seed, std::uint32_t parameter) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    double v = init.value;
    if (init.kind == Init::Kind::normal) v = std::sqrt(init.value) * rng::normal<double>(seed, 0, parameter, i);
    if (init.kind == Init::Kind::uniform) v = std::sqrt(3.0 * init.value) * (2.0 * rng::uniform01<double>(seed, 0, parameter, i) - 1.0);
    elements[i] = static_cast<T>(static_cast<compute_t<T>>(v));
  }
}

}  // namespace tg
