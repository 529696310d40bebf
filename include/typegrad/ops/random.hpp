// Random tensors as a function of a key: uniform, normal, bernoulli, dropout. An element's value depends on the key and
// on the element's position alone, so that it is computed again where it is needed again rather than stored.
#pragma once

#include "typegrad/ops/position.hpp"
#include "typegrad/ops/transcendental.hpp"

namespace tg {

template <>
struct Primitive<Op::RandomBits> {
  template <class V>
  TYPEGRAD_HOST_DEVICE static auto apply(V key, V counter) {
    using math::random_bits;
    return random_bits(key, counter);
  }
  static constexpr Value gradient(int, Value, const Operands&, Value) { return {}; }
};

namespace detail {

template <class K>
consteval void check_key() {
  if constexpr (!std::same_as<typename K::value_type, std::int64_t> || K::extents.rank != 0) {
    constexpr Message m = Message("random: a key is an int64 scalar, got ") << name(K::element) << " " << K::extents;
    fail<m, expr_t<K>>();
  }
}

struct FoldIn {
  template <class K>
  constexpr auto operator()(const K& key, const auto& data) const {
    check_key<K>();
    return Expr<std::int64_t>(build::binary(Op::RandomBits, key, to_value<Op::RandomBits>(key, data)));
  }
};

// Uniform in [0, 1), with the draws of element e at the counters Stride * e + Draw.
template <int Stride, int Draw, class X, class K>
constexpr auto uniform(const X& like, const K& key) {
  check_key<K>();
  using T = typename X::value_type;
  static_assert(is_floating(dtype_of<T>), "typegrad: random numbers are drawn in the shape of a floating-point tensor");
  const Value at = row_major_position(*like.graph, like.shape(), 0, like.rank());
  const Value scaled = Stride == 1 ? at : at * Stride + Draw;
  const Value bits = build::binary(Op::RandomBits, key, scaled);
  // Rounding to T must not reach 1.
  using C = compute_t<T>;
  constexpr double below_one = 1.0 - (dtype_of<T> == DType::f64 ? 0x1p-53 : 0x1p-24);
  const Value unit = build::cast(bits, dtype_of<C>) * 0x1p-53;
  return expr_of<C, decltype([] { return X::extents; })>(minimum(unit, below_one));
}

struct UniformLike {
  template <class X, class K>
  constexpr auto operator()(const X& like, const K& key) const {
    return cast<typename X::value_type>(uniform<1, 0>(like, key));
  }
};

struct NormalLike {
  template <class X, class K>
  constexpr auto operator()(const X& like, const K& key) const {
    // 1 - u lies in (0, 1].
    const auto radius = sqrt(log(1.0 - uniform<2, 0>(like, key)) * -2.0);
    return cast<typename X::value_type>(radius * cos(uniform<2, 1>(like, key) * 6.283185307179586));
  }
};

struct Bernoulli {
  template <class X, class K>
  constexpr auto operator()(const X& like, const K& key, const auto& probability) const {
    return uniform<1, 0>(like, key) < probability;
  }
};

struct Dropout {
  template <class X, class K>
  constexpr auto operator()(const X& x, const K& key, const auto& rate) const {
    return where(uniform<1, 0>(x, key) < rate, 0.0, x / (1.0 - rate));
  }
};

}  // namespace detail

// Keys are int64 scalars, arguments of the function: any number is a key. A function that draws twice folds different
// numbers into its key, or both draws are the same. The generator is Philox4x32-10 (Salmon et al. 2011).

// A new key from a key and a number.
template <Operand K, class N>
constexpr auto fold_in(const K& key, const N& data) { return apply<detail::FoldIn>(key, data); }
// Uniform in [0, 1), in the shape and dtype of x.
template <Operand X, Operand K>
constexpr auto uniform_like(const X& x, const K& key) { return apply<detail::UniformLike>(x, key); }
// Standard normal (Box and Muller 1958), in the shape and dtype of x.
template <Operand X, Operand K>
constexpr auto normal_like(const X& x, const K& key) { return apply<detail::NormalLike>(x, key); }
// True with the given probability, in the shape of x.
template <Operand X, Operand K>
constexpr auto bernoulli_like(const X& x, const K& key, double probability) { return apply<detail::Bernoulli>(x, key, probability); }
// x with each element set to 0 with probability rate and divided by 1 - rate otherwise (Srivastava et al. 2014); its mean
// is x. rate lies in [0, 1).
template <Operand X, Operand K>
constexpr auto dropout(const X& x, const K& key, double rate) { return apply<detail::Dropout>(x, key, rate); }

}  // namespace tg
