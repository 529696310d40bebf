// Arithmetic: + - * / neg abs sign maximum minimum fmod floor ceil round trunc, comparisons, where, cast.
#pragma once

#include "typegrad/kernels/math.hpp"
#include "typegrad/ops/elementwise.hpp"

namespace tg {

// Two operands of an op: at least one traced value or tensor, the other perhaps a number.
template <class A, class B>
concept OperandPair = (Operand<A> && (Operand<B> || Number<B>)) || (Number<A> && Operand<B>);

// a + b, broadcast as NumPy does. Integers wrap.
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto add(const A& a, const B& b) { return apply<detail::Binary<Op::Add>>(a, b); }
// a - b.
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto sub(const A& a, const B& b) { return apply<detail::Binary<Op::Sub>>(a, b); }
// a * b, element by element.
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto mul(const A& a, const B& b) { return apply<detail::Binary<Op::Mul>>(a, b); }
// a / b. An integer divided by 0 is 0.
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto div(const A& a, const B& b) { return apply<detail::Binary<Op::Div>>(a, b); }
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto operator+(const A& a, const B& b) { return apply<detail::Binary<Op::Add>>(a, b); }
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto operator-(const A& a, const B& b) { return apply<detail::Binary<Op::Sub>>(a, b); }
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto operator*(const A& a, const B& b) { return apply<detail::Binary<Op::Mul>>(a, b); }
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto operator/(const A& a, const B& b) { return apply<detail::Binary<Op::Div>>(a, b); }

template <class A, class B>
  requires OperandPair<A, B>
constexpr auto operator<(const A& a, const B& b) { return apply<detail::Binary<Op::Less>>(a, b); }
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto operator<=(const A& a, const B& b) { return apply<detail::Binary<Op::LessEqual>>(a, b); }
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto operator>(const A& a, const B& b) { return apply<detail::Binary<Op::Less>>(b, a); }
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto operator>=(const A& a, const B& b) { return apply<detail::Binary<Op::LessEqual>>(b, a); }
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto operator==(const A& a, const B& b) { return apply<detail::Binary<Op::Equal>>(a, b); }
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto operator!=(const A& a, const B& b) { return apply<detail::Binary<Op::NotEqual>>(a, b); }

template <Operand A, Operand B>
constexpr auto operator&&(const A& a, const B& b) { return apply<detail::Binary<Op::And>>(a, b); }
template <Operand A, Operand B>
constexpr auto operator||(const A& a, const B& b) { return apply<detail::Binary<Op::Or>>(a, b); }
// On bool tensors.
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto logical_and(const A& a, const B& b) { return apply<detail::Binary<Op::And>>(a, b); }
// On bool tensors.
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto logical_or(const A& a, const B& b) { return apply<detail::Binary<Op::Or>>(a, b); }
template <Operand X>
constexpr auto operator!(const X& x) { return apply<detail::Unary<Op::Not>>(x); }
// On a bool tensor.
template <Operand X>
constexpr auto logical_not(const X& x) { return !x; }
template <Operand X>
constexpr auto operator-(const X& x) { return apply<detail::Unary<Op::Neg>>(x); }

// -x
template <Operand X>
constexpr auto neg(const X& x) { return apply<detail::Unary<Op::Neg>>(x); }
// |x|; gradient sign(x), 0 at 0.
template <Operand X>
constexpr auto abs(const X& x) { return apply<detail::Unary<Op::Abs>>(x); }
// -1, 0 or 1; keeps ±0 and NaN. Gradient 0.
template <Operand X>
constexpr auto sign(const X& x) { return apply<detail::Unary<Op::Sign>>(x); }
// The larger of a and b; NaN if either is NaN. At a tie each operand gets half of the gradient.
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto maximum(const A& a, const B& b) { return apply<detail::Binary<Op::Max>>(a, b); }
// The smaller of a and b; NaN if either is NaN. At a tie each operand gets half of the gradient.
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto minimum(const A& a, const B& b) { return apply<detail::Binary<Op::Min>>(a, b); }
// The remainder of a / b truncated: it has the sign of a. fmod(a, 0) is NaN, for integers 0.
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto fmod(const A& a, const B& b) { return apply<detail::Binary<Op::Fmod>>(a, b); }
// The remainder of a / b rounded down, as Python's %: it has the sign of b. Defined below.
template <class A, class B>
  requires OperandPair<A, B>
constexpr auto remainder(const A& a, const B& b);
// Largest integer not above x. Gradient 0.
template <Operand X>
constexpr auto floor(const X& x) { return apply<detail::Unary<Op::Floor>>(x); }
// Smallest integer not below x. Gradient 0.
template <Operand X>
constexpr auto ceil(const X& x) { return apply<detail::Unary<Op::Ceil>>(x); }
// Nearest integer, halves to even. Gradient 0.
template <Operand X>
constexpr auto round(const X& x) { return apply<detail::Unary<Op::Round>>(x); }
// x without its fraction. Gradient 0.
template <Operand X>
constexpr auto trunc(const X& x) { return apply<detail::Unary<Op::Trunc>>(x); }
// x itself, through which no gradient flows.
template <Operand X>
constexpr auto stop_gradient(const X& x) { return apply<detail::Unary<Op::StopGradient>>(x); }
// a where the condition holds, b elsewhere. The branch that is not taken contributes no gradient, whatever the
// derivatives behind it (see autodiff/gradient.hpp).
template <Operand C, class A, class B>
constexpr auto where(const C& condition, const A& a, const B& b) {
  return apply<detail::Where>(condition, a, b);
}

namespace detail {
struct Remainder {
  constexpr auto operator()(const auto& a, const auto& b) const {
    const auto r = fmod(a, b);
    return where((r < 0 && 0 < b) || (0 < r && b < 0), r + b, r);
  }
};
template <class T>
struct CastTo {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const Value v = build::cast(x, dtype_of<T>);
    if constexpr (TypedExpr<X>) return expr_of<T, decltype([] { return X::extents; })>(v);
    else return v;
  }
};
template <std::int64_t Classes>
struct Checked {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const Value v = build::unary(Op::CheckIndex, x, Classes);
    if constexpr (TypedExpr<X>) return expr_t<X>(v);
    else return v;
  }
};
}  // namespace detail

template <class A, class B>
  requires OperandPair<A, B>
constexpr auto remainder(const A& a, const B& b) { return apply<detail::Remainder>(a, b); }

// x converted to T. Floating to integer saturates and takes NaN to 0. Its gradient is converted back; between
// integers there is none.
template <class T, Operand X>
constexpr auto cast(const X& x) {
  return apply<detail::CastTo<T>>(x);
}

// x itself, an integer tensor whose elements must lie in [0, classes): running the program throws tg::Error with the
// first offending element otherwise.
template <std::int64_t Classes, Operand X>
constexpr auto check_index(const X& x) {
  return apply<detail::Checked<Classes>>(x);
}

template <>
struct Primitive<Op::Add> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::add;
    return add(a, b);
  }
  static constexpr Value gradient(int, Value g, const Operands&, Value) { return g; }
};

template <>
struct Primitive<Op::Sub> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::sub;
    return sub(a, b);
  }
  static constexpr Value gradient(int operand, Value g, const Operands&, Value) { return operand == 0 ? g : -g; }
};

template <>
struct Primitive<Op::Mul> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::mul;
    return mul(a, b);
  }
  static constexpr Value gradient(int operand, Value g, const Operands& in, Value) { return g * in[operand == 0 ? 1 : 0]; }
};

template <>
struct Primitive<Op::Div> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::div;
    return div(a, b);
  }
  static constexpr Value gradient(int operand, Value g, const Operands& in, Value out) { return operand == 0 ? g / in[1] : -(g * out / in[1]); }
};

template <>
struct Primitive<Op::Neg> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::neg;
    return neg(x);
  }
  static constexpr Value gradient(int, Value g, const Operands&, Value) { return -g; }
};

template <>
struct Primitive<Op::Abs> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::abs;
    return abs(x);
  }
  static constexpr Value gradient(int, Value g, const Operands& in, Value) { return g * sign(in[0]); }
};

template <>
struct Primitive<Op::Sign> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::sign;
    return sign(x);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

// Ties share the gradient equally; where one operand is NaN the gradient is NaN's.
template <>
struct Primitive<Op::Max> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::maximum;
    return maximum(a, b);
  }
  static constexpr Value gradient(int operand, Value g, const Operands& in, Value) {
    const Value mine = in[operand == 0 ? 0 : 1], other = in[operand == 0 ? 1 : 0];
    return where(mine > other, g, where(mine == other, g * 0.5, 0.0));
  }
};

template <>
struct Primitive<Op::Min> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::minimum;
    return minimum(a, b);
  }
  static constexpr Value gradient(int operand, Value g, const Operands& in, Value) {
    const Value mine = in[operand == 0 ? 0 : 1], other = in[operand == 0 ? 1 : 0];
    return where(mine < other, g, where(mine == other, g * 0.5, 0.0));
  }
};

template <>
struct Primitive<Op::Fmod> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::fmod;
    return fmod(a, b);
  }
  static constexpr Value gradient(int operand, Value g, const Operands& in, Value) { return operand == 0 ? g : -(g * trunc(in[0] / in[1])); }
};

template <>
struct Primitive<Op::Floor> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::floor;
    return floor(x);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::Ceil> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::ceil;
    return ceil(x);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::Round> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::round;
    return round(x);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::Trunc> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::trunc;
    return trunc(x);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::StopGradient> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    return x;
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

// The check itself belongs to the back ends; as a value it is the identity.
template <>
struct Primitive<Op::CheckIndex> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    return x;
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::Less> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::less;
    return less(a, b);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::LessEqual> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::less_equal;
    return less_equal(a, b);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::Equal> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::equal;
    return equal(a, b);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::NotEqual> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::not_equal;
    return not_equal(a, b);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::And> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::logical_and;
    return logical_and(a, b);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::Or> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V a, V b) {
    using math::logical_or;
    return logical_or(a, b);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::Not> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V x) {
    using math::logical_not;
    return logical_not(x);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

template <>
struct Primitive<Op::Select> {
  template <class C, class V>
  TYPEGRAD_HOST_DEVICE static auto apply(C condition, V a, V b) {
    using math::select;
    return select(condition, a, b);
  }
  static constexpr Value gradient(int operand, Value g, const Operands& in, Value) {
    return operand == 0 ? Value{} : operand == 1 ? where(in[0], g, 0.0) : where(in[0], 0.0, g);
  }
};

template <>
struct Primitive<Op::Cast> {
  static constexpr Value gradient(int, Value g, const Operands& in, Value out) {
    return is_floating(in[0].dtype()) && is_floating(out.dtype()) ? build::cast(g, in[0].dtype()) : Value{};
  }
};

}  // namespace tg
