// Activation functions. relu and sigmoid are primitives; the others are composed of primitives.
#pragma once

#include <numbers>

#include "typegrad/ops/transcendental.hpp"

namespace tg {

// max(x, 0); NaN stays NaN. The gradient at 0 is 0.
template <Operand X>
constexpr auto relu(const X& x) { return apply<detail::Unary<Op::Relu>>(x); }

// The gradient is read off the result, so the operand need not be kept for it.
template <>
struct Primitive<Op::Relu> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::relu;
    return relu(x);
  }
  static constexpr Value gradient(int, Value g, const Operands&, Value out) { return where(out <= 0.0, 0.0, g); }
};

namespace detail {

struct Square {
  constexpr auto operator()(const auto& x) const { return x * x; }
};
struct LeakyRelu {
  constexpr auto operator()(const auto& x, const auto& slope) const { return where(x > 0.0, x, x * slope); }
};
struct Softplus {
  constexpr auto operator()(const auto& x) const { return relu(x) + log1p(exp(-abs(x))); }
};
struct LogSigmoid {
  constexpr auto operator()(const auto& x) const { return -Softplus{}(-x); }
};
struct Clamp {
  constexpr auto operator()(const auto& x, const auto& low, const auto& high) const {
    return where(x < low, low, where(x > high, high, x));
  }
};
struct Elu {
  constexpr auto operator()(const auto& x, const auto& alpha) const { return where(x > 0.0, x, expm1(x) * alpha); }
};
struct Selu {
  constexpr auto operator()(const auto& x) const {
    return where(x > 0.0, x, expm1(x) * 1.6732632423543772848170429916717) * 1.0507009873554804934193349852946;
  }
};
struct Silu {
  // Below -100 the product of a huge x and a vanished sigmoid'(x) must not meet as inf * 0.
  constexpr auto operator()(const auto& x) const { return where(x < -100.0, 0.0, x * sigmoid(x)); }
};
struct Mish {
  constexpr auto operator()(const auto& x) const { return where(x < -100.0, 0.0, x * tanh(Softplus{}(x))); }
};
struct Gelu {
  constexpr auto operator()(const auto& x) const {
    const auto near = Clamp{}(x, -40.0, 40.0);  // erfc is 2 or 0 beyond, in double too; x² must not overflow in its gradient
    // erfc keeps the digits that 1 + erf loses for negative x.
    return x * 0.5 * erfc(near * (-1.0 / std::numbers::sqrt2));
  }
};
struct GeluTanh {
  constexpr auto operator()(const auto& x) const {
    const auto near = Clamp{}(x, -40.0, 40.0);  // sigmoid is 0 or 1 beyond, in double too; x³ must not overflow in its gradient
    const auto u = near * (1.0 + near * near * 0.044715) * 0.7978845608028653558798921198687;
    return x * sigmoid(u * 2.0);  // (1 + tanh(u)) / 2 without its loss of digits for negative u
  }
};
struct HardSigmoid {
  constexpr auto operator()(const auto& x) const { return Clamp{}((x + 3.0) * (1.0 / 6.0), 0.0, 1.0); }
};
struct HardSwish {
  constexpr auto operator()(const auto& x) const { return x * HardSigmoid{}(x); }
};

}  // namespace detail

// x².
template <Operand X>
constexpr auto square(const X& x) { return apply<detail::Square>(x); }
// x where positive, slope * x elsewhere (PyTorch's default slope is 0.01). Gradient at 0: slope.
template <Operand X, class S = double>
constexpr auto leaky_relu(const X& x, const S& slope = 0.01) { return apply<detail::LeakyRelu>(x, slope); }
// log(1 + exp(x)) without overflow.
template <Operand X>
constexpr auto softplus(const X& x) { return apply<detail::Softplus>(x); }
// log(sigmoid(x)) without underflow.
template <Operand X>
constexpr auto log_sigmoid(const X& x) { return apply<detail::LogSigmoid>(x); }
// x limited to [low, high]; gradient 1 inside and at both bounds (PyTorch's convention), 0 outside. NaN stays NaN.
template <Operand X, class L, class H>
constexpr auto clamp(const X& x, const L& low, const H& high) { return apply<detail::Clamp>(x, low, high); }
// x where positive, alpha * (exp(x) - 1) elsewhere (Clevert et al. 2016).
template <Operand X, class A = double>
constexpr auto elu(const X& x, const A& alpha = 1.0) { return apply<detail::Elu>(x, alpha); }
// Scaled elu (Klambauer et al. 2017).
template <Operand X>
constexpr auto selu(const X& x) { return apply<detail::Selu>(x); }
// x * sigmoid(x); exactly 0 below -100.
template <Operand X>
constexpr auto silu(const X& x) { return apply<detail::Silu>(x); }
// x * tanh(softplus(x)) (Misra 2019); exactly 0 below -100.
template <Operand X>
constexpr auto mish(const X& x) { return apply<detail::Mish>(x); }
// x * Phi(x), the exact form with erf (Hendrycks and Gimpel 2016).
template <Operand X>
constexpr auto gelu(const X& x) { return apply<detail::Gelu>(x); }
// The tanh approximation of gelu.
template <Operand X>
constexpr auto gelu_tanh(const X& x) { return apply<detail::GeluTanh>(x); }
// clamp(x / 6 + 1/2, 0, 1).
template <Operand X>
constexpr auto hard_sigmoid(const X& x) { return apply<detail::HardSigmoid>(x); }
// x * hard_sigmoid(x).
template <Operand X>
constexpr auto hard_swish(const X& x) { return apply<detail::HardSwish>(x); }

// Bool tensors: whether x is NaN, infinite, neither.
template <Operand X>
constexpr auto isnan(const X& x) { return x != x; }
template <Operand X>
constexpr auto isinf(const X& x) { return abs(x) == std::numeric_limits<double>::infinity(); }
template <Operand X>
constexpr auto isfinite(const X& x) { return abs(x) < std::numeric_limits<double>::infinity(); }

}  // namespace tg
