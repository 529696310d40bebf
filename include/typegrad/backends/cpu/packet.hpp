// Packets: a vector register's worth of values of one kernel, with the names of tg::math. Arithmetic is Eigen's packet
// math; transcendental functions are glibc's vector library where it has them (at most 4 ulp), else scalar loops.
#pragma once

// GCC 12 takes the undefined registers in its own AVX-512 intrinsics for uninitialised variables. It leaves out a warning
// where a function that was inlined lies in such a region, here Eigen's and this file's, and users' code keeps its warnings.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <Eigen/Core>
#include <cstddef>

#include "typegrad/graph/dtype.hpp"
#include "typegrad/kernels/math.hpp"

namespace tg::cpu {

namespace ei = Eigen::internal;

// N values of an integer type; loops that the compiler vectorises.
template <class T, int N>
struct Ints {
  T v[N];
};

// N floating values in one register.
template <class T>
struct Reals {
  using packet = typename ei::packet_traits<T>::type;
  static constexpr int size = ei::unpacket_traits<packet>::size;
  packet p;
};

// N booleans as lanes of all zeros or all ones of the floating type T.
template <class T>
struct Bools {
  typename Reals<T>::packet p;
};

#define TYPEGRAD_PACKET template <class T> TYPEGRAD_ALWAYS_INLINE

TYPEGRAD_PACKET Reals<T> add(Reals<T> a, Reals<T> b) { return {ei::padd(a.p, b.p)}; }
TYPEGRAD_PACKET Reals<T> sub(Reals<T> a, Reals<T> b) { return {ei::psub(a.p, b.p)}; }
TYPEGRAD_PACKET Reals<T> mul(Reals<T> a, Reals<T> b) { return {ei::pmul(a.p, b.p)}; }
TYPEGRAD_PACKET Reals<T> div(Reals<T> a, Reals<T> b) { return {ei::pdiv(a.p, b.p)}; }
TYPEGRAD_PACKET Reals<T> neg(Reals<T> a) { return {ei::pnegate(a.p)}; }
TYPEGRAD_PACKET Reals<T> abs(Reals<T> a) { return {ei::pabs(a.p)}; }
TYPEGRAD_PACKET Reals<T> constant(T v) { return {ei::pset1<typename Reals<T>::packet>(v)}; }
TYPEGRAD_PACKET Bools<T> less(Reals<T> a, Reals<T> b) { return {ei::pcmp_lt(a.p, b.p)}; }
TYPEGRAD_PACKET Bools<T> less_equal(Reals<T> a, Reals<T> b) { return {ei::pcmp_le(a.p, b.p)}; }
TYPEGRAD_PACKET Bools<T> equal(Reals<T> a, Reals<T> b) { return {ei::pcmp_eq(a.p, b.p)}; }
TYPEGRAD_PACKET Bools<T> logical_and(Bools<T> a, Bools<T> b) { return {ei::pand(a.p, b.p)}; }
TYPEGRAD_PACKET Bools<T> logical_or(Bools<T> a, Bools<T> b) { return {ei::por(a.p, b.p)}; }
TYPEGRAD_PACKET Bools<T> all_true() { return {ei::ptrue(ei::pset1<typename Reals<T>::packet>(T{0}))}; }
TYPEGRAD_PACKET Bools<T> logical_not(Bools<T> a) { return {ei::pandnot(all_true<T>().p, a.p)}; }
TYPEGRAD_PACKET Bools<T> not_equal(Reals<T> a, Reals<T> b) { return logical_not(equal(a, b)); }
TYPEGRAD_PACKET Reals<T> select(Bools<T> c, Reals<T> a, Reals<T> b) { return {ei::pselect(c.p, a.p, b.p)}; }
TYPEGRAD_PACKET Bools<T> select(Bools<T> c, Bools<T> a, Bools<T> b) { return {ei::pselect(c.p, a.p, b.p)}; }
TYPEGRAD_PACKET Reals<T> relu(Reals<T> a) { return select(less_equal(a, constant(T{0})), constant(T{0}), a); }
TYPEGRAD_PACKET Reals<T> maximum(Reals<T> a, Reals<T> b) {
  return select(logical_or(less(b, a), not_equal(a, a)), a, b);
}
TYPEGRAD_PACKET Reals<T> minimum(Reals<T> a, Reals<T> b) {
  return select(logical_or(less(a, b), not_equal(a, a)), a, b);
}
TYPEGRAD_PACKET Reals<T> sign(Reals<T> a) {
  return select(less(constant(T{0}), a), constant(T{1}), select(less(a, constant(T{0})), constant(T{-1}), a));
}

// Eigen's psqrt is an approximation that fails for infinity and subnormal numbers; the processor's own is exact.
#if defined(EIGEN_VECTORIZE_AVX512)
TYPEGRAD_ALWAYS_INLINE Reals<float> sqrt(Reals<float> a) { return {_mm512_sqrt_ps(a.p)}; }
TYPEGRAD_ALWAYS_INLINE Reals<double> sqrt(Reals<double> a) { return {_mm512_sqrt_pd(a.p)}; }
#elif defined(EIGEN_VECTORIZE_AVX)
TYPEGRAD_ALWAYS_INLINE Reals<float> sqrt(Reals<float> a) { return {_mm256_sqrt_ps(a.p)}; }
TYPEGRAD_ALWAYS_INLINE Reals<double> sqrt(Reals<double> a) { return {_mm256_sqrt_pd(a.p)}; }
#elif defined(EIGEN_VECTORIZE_SSE2)
TYPEGRAD_ALWAYS_INLINE Reals<float> sqrt(Reals<float> a) { return {_mm_sqrt_ps(a.p)}; }
TYPEGRAD_ALWAYS_INLINE Reals<double> sqrt(Reals<double> a) { return {_mm_sqrt_pd(a.p)}; }
#else
TYPEGRAD_PACKET Reals<T> sqrt(Reals<T> a) { return {ei::psqrt(a.p)}; }
#endif
TYPEGRAD_PACKET Reals<T> rsqrt(Reals<T> a) { return div(constant(T{1}), sqrt(a)); }

// Element by element through the scalar function, for what has no vector form.
template <class T, class F, class... P>
TYPEGRAD_ALWAYS_INLINE Reals<T> by_element(F f, P... p) {
  constexpr int n = Reals<T>::size;
  alignas(64) T in[sizeof...(P)][n], out[n];
  int k = 0;
  (ei::pstore(in[k++], p.p), ...);
  for (int i = 0; i < n; ++i) {
    if constexpr (sizeof...(P) == 1) out[i] = f(in[0][i]);
    else out[i] = f(in[0][i], in[1][i]);
  }
  return {ei::pload<typename Reals<T>::packet>(out)};
}

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(TYPEGRAD_NO_LIBMVEC)
#if __GLIBC_PREREQ(2, 35)
#define TYPEGRAD_HAS_LIBMVEC 1
#endif
#endif

#if defined(TYPEGRAD_HAS_LIBMVEC)
#if defined(EIGEN_VECTORIZE_AVX512)
#define TYPEGRAD_VECTOR_NAME(fn, args) _ZGVeN16##args##_##fn##f
#define TYPEGRAD_VECTOR_NAME_D(fn, args) _ZGVeN8##args##_##fn
#elif defined(EIGEN_VECTORIZE_AVX2)
#define TYPEGRAD_VECTOR_NAME(fn, args) _ZGVdN8##args##_##fn##f
#define TYPEGRAD_VECTOR_NAME_D(fn, args) _ZGVdN4##args##_##fn
#elif defined(EIGEN_VECTORIZE_AVX)
#define TYPEGRAD_VECTOR_NAME(fn, args) _ZGVcN8##args##_##fn##f
#define TYPEGRAD_VECTOR_NAME_D(fn, args) _ZGVcN4##args##_##fn
#else
#define TYPEGRAD_VECTOR_NAME(fn, args) _ZGVbN4##args##_##fn##f
#define TYPEGRAD_VECTOR_NAME_D(fn, args) _ZGVbN2##args##_##fn
#endif
#define TYPEGRAD_VECTOR_UNARY(f)                                                                          \
  extern "C" Reals<float>::packet TYPEGRAD_VECTOR_NAME(f, v)(Reals<float>::packet);                       \
  extern "C" Reals<double>::packet TYPEGRAD_VECTOR_NAME_D(f, v)(Reals<double>::packet);                   \
  inline Reals<float> f(Reals<float> x) { return {TYPEGRAD_VECTOR_NAME(f, v)(x.p)}; }                     \
  inline Reals<double> f(Reals<double> x) { return {TYPEGRAD_VECTOR_NAME_D(f, v)(x.p)}; }
#define TYPEGRAD_VECTOR_BINARY(f)                                                                         \
  extern "C" Reals<float>::packet TYPEGRAD_VECTOR_NAME(f, vv)(Reals<float>::packet, Reals<float>::packet);    \
  extern "C" Reals<double>::packet TYPEGRAD_VECTOR_NAME_D(f, vv)(Reals<double>::packet, Reals<double>::packet); \
  inline Reals<float> f(Reals<float> x, Reals<float> y) { return {TYPEGRAD_VECTOR_NAME(f, vv)(x.p, y.p)}; }     \
  inline Reals<double> f(Reals<double> x, Reals<double> y) { return {TYPEGRAD_VECTOR_NAME_D(f, vv)(x.p, y.p)}; }
#else
#define TYPEGRAD_VECTOR_UNARY(f) \
  TYPEGRAD_PACKET Reals<T> f(Reals<T> x) { return by_element<T>([](T v) { return math::f(v); }, x); }
#define TYPEGRAD_VECTOR_BINARY(f) \
  TYPEGRAD_PACKET Reals<T> f(Reals<T> x, Reals<T> y) { return by_element<T>([](T v, T w) { return math::f(v, w); }, x, y); }
#endif

TYPEGRAD_VECTOR_UNARY(exp)
TYPEGRAD_VECTOR_UNARY(expm1)
TYPEGRAD_VECTOR_UNARY(log)
TYPEGRAD_VECTOR_UNARY(log1p)
TYPEGRAD_VECTOR_UNARY(cbrt)
TYPEGRAD_VECTOR_UNARY(sin)
TYPEGRAD_VECTOR_UNARY(cos)
TYPEGRAD_VECTOR_UNARY(tan)
TYPEGRAD_VECTOR_UNARY(asin)
TYPEGRAD_VECTOR_UNARY(acos)
TYPEGRAD_VECTOR_UNARY(atan)
TYPEGRAD_VECTOR_UNARY(sinh)
TYPEGRAD_VECTOR_UNARY(cosh)
TYPEGRAD_VECTOR_UNARY(tanh)
TYPEGRAD_VECTOR_UNARY(erf)
TYPEGRAD_VECTOR_UNARY(erfc)
TYPEGRAD_VECTOR_BINARY(pow)
TYPEGRAD_VECTOR_BINARY(atan2)

TYPEGRAD_PACKET Reals<T> sigmoid(Reals<T> x) { return div(constant(T{1}), add(constant(T{1}), exp(neg(x)))); }
TYPEGRAD_PACKET Reals<T> floor(Reals<T> x) { return {ei::pfloor(x.p)}; }
TYPEGRAD_PACKET Reals<T> ceil(Reals<T> x) { return {ei::pceil(x.p)}; }
TYPEGRAD_PACKET Reals<T> round(Reals<T> x) { return by_element<T>([](T v) { return math::round(v); }, x); }
TYPEGRAD_PACKET Reals<T> trunc(Reals<T> x) { return by_element<T>([](T v) { return math::trunc(v); }, x); }
TYPEGRAD_PACKET Reals<T> fmod(Reals<T> x, Reals<T> y) {
  return by_element<T>([](T v, T w) { return math::fmod(v, w); }, x, y);
}

#undef TYPEGRAD_VECTOR_UNARY
#undef TYPEGRAD_VECTOR_BINARY
#undef TYPEGRAD_PACKET

// Integer packets. Their comparisons give Ints<bool, N>, which kernels turn into lanes where they meet reals.
#define TYPEGRAD_INTS template <class T, int N> TYPEGRAD_ALWAYS_INLINE
#define TYPEGRAD_INTS_BINARY(f, R)                                   \
  TYPEGRAD_INTS Ints<R, N> f(Ints<T, N> a, Ints<T, N> b) {           \
    Ints<R, N> r;                                                    \
    for (int i = 0; i < N; ++i) r.v[i] = math::f(a.v[i], b.v[i]);    \
    return r;                                                        \
  }
TYPEGRAD_INTS_BINARY(add, T)
TYPEGRAD_INTS_BINARY(sub, T)
TYPEGRAD_INTS_BINARY(mul, T)
TYPEGRAD_INTS_BINARY(div, T)
TYPEGRAD_INTS_BINARY(fmod, T)
TYPEGRAD_INTS_BINARY(random_bits, T)
TYPEGRAD_INTS_BINARY(maximum, T)
TYPEGRAD_INTS_BINARY(minimum, T)
TYPEGRAD_INTS_BINARY(less, bool)
TYPEGRAD_INTS_BINARY(less_equal, bool)
TYPEGRAD_INTS_BINARY(equal, bool)
TYPEGRAD_INTS_BINARY(not_equal, bool)
#define TYPEGRAD_INTS_UNARY(f)                             \
  TYPEGRAD_INTS Ints<T, N> f(Ints<T, N> a) {               \
    Ints<T, N> r;                                          \
    for (int i = 0; i < N; ++i) r.v[i] = math::f(a.v[i]);  \
    return r;                                              \
  }
TYPEGRAD_INTS_UNARY(neg)
TYPEGRAD_INTS_UNARY(abs)
TYPEGRAD_INTS_UNARY(sign)
TYPEGRAD_INTS_UNARY(relu)
#undef TYPEGRAD_INTS_BINARY
#undef TYPEGRAD_INTS_UNARY
#undef TYPEGRAD_INTS

}  // namespace tg::cpu

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
