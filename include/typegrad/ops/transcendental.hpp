// Powers, exponentials, logarithms, trigonometric and hyperbolic functions, error functions.
#pragma once

#include <numbers>

#include "typegrad/ops/arithmetic.hpp"

namespace tg {

// Square root; NaN below 0. Gradient +inf at 0.
template <Operand X>
constexpr auto sqrt(const X& x) { return apply<detail::Unary<Op::Sqrt>>(x); }
// 1 / sqrt(x).
template <Operand X>
constexpr auto rsqrt(const X& x) { return apply<detail::Unary<Op::Rsqrt>>(x); }
// Cube root.
template <Operand X>
constexpr auto cbrt(const X& x) { return apply<detail::Unary<Op::Cbrt>>(x); }
// e to the x.
template <Operand X>
constexpr auto exp(const X& x) { return apply<detail::Unary<Op::Exp>>(x); }
// exp(x) - 1, accurate near 0.
template <Operand X>
constexpr auto expm1(const X& x) { return apply<detail::Unary<Op::Expm1>>(x); }
// Natural logarithm.
template <Operand X>
constexpr auto log(const X& x) { return apply<detail::Unary<Op::Log>>(x); }
// log(1 + x), accurate near 0.
template <Operand X>
constexpr auto log1p(const X& x) { return apply<detail::Unary<Op::Log1p>>(x); }
// Sine of x radians.
template <Operand X>
constexpr auto sin(const X& x) { return apply<detail::Unary<Op::Sin>>(x); }
// Cosine of x radians.
template <Operand X>
constexpr auto cos(const X& x) { return apply<detail::Unary<Op::Cos>>(x); }
// Tangent of x radians.
template <Operand X>
constexpr auto tan(const X& x) { return apply<detail::Unary<Op::Tan>>(x); }
// Arc sine, in radians.
template <Operand X>
constexpr auto asin(const X& x) { return apply<detail::Unary<Op::Asin>>(x); }
// Arc cosine, in radians.
template <Operand X>
constexpr auto acos(const X& x) { return apply<detail::Unary<Op::Acos>>(x); }
// Arc tangent, in radians.
template <Operand X>
constexpr auto atan(const X& x) { return apply<detail::Unary<Op::Atan>>(x); }
// Hyperbolic sine.
template <Operand X>
constexpr auto sinh(const X& x) { return apply<detail::Unary<Op::Sinh>>(x); }
// Hyperbolic cosine.
template <Operand X>
constexpr auto cosh(const X& x) { return apply<detail::Unary<Op::Cosh>>(x); }
// Hyperbolic tangent.
template <Operand X>
constexpr auto tanh(const X& x) { return apply<detail::Unary<Op::Tanh>>(x); }
// Error function.
template <Operand X>
constexpr auto erf(const X& x) { return apply<detail::Unary<Op::Erf>>(x); }
// 1 - erf(x), accurate for large x.
template <Operand X>
constexpr auto erfc(const X& x) { return apply<detail::Unary<Op::Erfc>>(x); }
// 1 / (1 + exp(-x)).
template <Operand X>
constexpr auto sigmoid(const X& x) { return apply<detail::Unary<Op::Sigmoid>>(x); }
// Logarithm to base 2, to base 10.
template <Operand X>
constexpr auto log2(const X& x) { return log(x) * std::numbers::log2e; }
template <Operand X>
constexpr auto log10(const X& x) { return log(x) * std::numbers::log10e; }
// a to the b. pow(x, 0) is 1 for every x. The gradient in a is 0 where b is 0; the gradient in b is 0 where a
// is 0 and b >= 0 (PyTorch's convention).
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto pow(const A& a, const B& b) { return apply<detail::Binary<Op::Pow>>(a, b); }
// 2 to the x.
template <Operand X>
constexpr auto exp2(const X& x) { return pow(2, x); }
// The angle of the point (b, a) in radians, in [-pi, pi]. Gradient 0 at the origin.
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto atan2(const A& a, const B& b) { return apply<detail::Binary<Op::Atan2>>(a, b); }

template <>
struct Primitive<Op::Sqrt> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::sqrt;
    return sqrt(x);
  }
  static constexpr Value gradient(int, Value g, const Operands&, Value out) { return g * 0.5 / out; }
};

template <>
struct Primitive<Op::Rsqrt> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::rsqrt;
    return rsqrt(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value out) { return g * -0.5 * out / in[0]; }
};

template <>
struct Primitive<Op::Cbrt> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::cbrt;
    return cbrt(x);
  }
  static constexpr Value gradient(int, Value g, const Operands&, Value out) { return g / (3.0 * out * out); }
};

template <>
struct Primitive<Op::Exp> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::exp;
    return exp(x);
  }
  static constexpr Value gradient(int, Value g, const Operands&, Value out) { return g * out; }
};

template <>
struct Primitive<Op::Expm1> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::expm1;
    return expm1(x);
  }
  static constexpr Value gradient(int, Value g, const Operands&, Value out) { return g * (out + 1.0); }
};

template <>
struct Primitive<Op::Log> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::log;
    return log(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return g / in[0]; }
};

template <>
struct Primitive<Op::Log1p> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::log1p;
    return log1p(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return g / (in[0] + 1.0); }
};

template <>
struct Primitive<Op::Sin> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::sin;
    return sin(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return g * cos(in[0]); }
};

template <>
struct Primitive<Op::Cos> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::cos;
    return cos(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return -(g * sin(in[0])); }
};

template <>
struct Primitive<Op::Tan> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::tan;
    return tan(x);
  }
  static constexpr Value gradient(int, Value g, const Operands&, Value out) { return g * (1.0 + out * out); }
};

template <>
struct Primitive<Op::Asin> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::asin;
    return asin(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return g / sqrt(1.0 - in[0] * in[0]); }
};

template <>
struct Primitive<Op::Acos> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::acos;
    return acos(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return -(g / sqrt(1.0 - in[0] * in[0])); }
};

template <>
struct Primitive<Op::Atan> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::atan;
    return atan(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return g / (1.0 + in[0] * in[0]); }
};

template <>
struct Primitive<Op::Sinh> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::sinh;
    return sinh(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return g * cosh(in[0]); }
};

template <>
struct Primitive<Op::Cosh> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::cosh;
    return cosh(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return g * sinh(in[0]); }
};

template <>
struct Primitive<Op::Tanh> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::tanh;
    return tanh(x);
  }
  static constexpr Value gradient(int, Value g, const Operands&, Value out) { return g * (1.0 - out * out); }
};

template <>
struct Primitive<Op::Erf> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::erf;
    return erf(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return g * (2.0 * std::numbers::inv_sqrtpi) * exp(-(in[0] * in[0])); }
};

template <>
struct Primitive<Op::Erfc> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::erfc;
    return erfc(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return g * (-2.0 * std::numbers::inv_sqrtpi) * exp(-(in[0] * in[0])); }
};

template <>
struct Primitive<Op::Sigmoid> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::sigmoid;
    return sigmoid(x);
  }
  static constexpr Value gradient(int, Value g, const Operands&, Value out) { return g * out * (1.0 - out); }
};

template <>
struct Primitive<Op::Pow> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::pow;
    return pow(a, b);
  }
  static constexpr Value gradient(int operand, Value g, const Operands& in, Value out) {
    if (operand == 0) return where(in[1] == 0.0, 0.0, g * in[1] * pow(in[0], in[1] - 1.0));
    return where(in[0] == 0.0 && in[1] >= 0.0, 0.0, g * out * log(in[0]));
  }
};

template <>
struct Primitive<Op::Atan2> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::atan2;
    return atan2(a, b);
  }
  static constexpr Value gradient(int operand, Value g, const Operands& in, Value) {
    const Value square = in[0] * in[0] + in[1] * in[1];
    return where(square == 0.0, 0.0, g * (operand == 0 ? in[1] : -in[0]) / square);
  }
};

}  // namespace tg
