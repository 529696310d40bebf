// Lanes: how a kernel holds its values, N at a time in packets or one by one, and how each step is computed on them.
#pragma once

#include "typegrad/backends/cpu/packet.hpp"
#include "typegrad/kernels/region.hpp"
#include "typegrad/ops/reduction.hpp"

namespace tg::cpu {

using kernel::Access;

// One value at a time.
struct ScalarLanes {
  static constexpr int size = 1;
  template <class T>
  using value = compute_t<T>;

  template <class T>
  static value<T> broadcast(compute_t<T> v) { return v; }
  template <class T, Access A>
  static value<T> load(const T* p, std::int64_t) { return static_cast<compute_t<T>>(*p); }
  template <class T>
  static value<T> gather(const T* p, std::int64_t position) { return static_cast<compute_t<T>>(p[position]); }
  template <class T, Access A>
  static void store(T* p, std::int64_t, value<T> v) { *p = static_cast<T>(v); }
  template <class T>
  static value<T> ramp(std::int64_t first, std::int64_t) { return static_cast<value<T>>(first); }
  template <class To, class From>
  static value<To> convert(value<From> v) {
    // The narrow types round here, as they would if the value were stored.
    return static_cast<value<To>>(static_cast<To>(math::convert<compute_t<To>>(v)));
  }
  template <class T>
  static value<T> wrap(value<T> v) { return v; }
  template <class T>
  static value<T> choose(bool c, value<T> a, value<T> b) { return c ? a : b; }
};

// Reals<F>::size values at a time; floating values are of type F (bf16 and f16 are computed in float).
template <class F>
struct VectorLanes {
  static constexpr int size = Reals<F>::size;
  using packet = typename Reals<F>::packet;

  template <class T>
  static consteval auto pick() {
    if constexpr (std::same_as<T, bool>) return std::type_identity<Bools<F>>{};
    else if constexpr (std::integral<T>) return std::type_identity<Ints<T, size>>{};
    else return std::type_identity<Reals<F>>{};
  }
  template <class T>
  using value = typename decltype(pick<T>())::type;
  using Lane = std::conditional_t<sizeof(F) == 4, std::int32_t, std::int64_t>;

  static TYPEGRAD_ALWAYS_INLINE Bools<F> from_bools(const bool* b) {
    alignas(64) Lane lane[size];
    for (int i = 0; i < size; ++i) lane[i] = b[i] ? Lane{-1} : Lane{0};
    return {ei::pload<packet>(reinterpret_cast<const F*>(lane))};
  }
  static TYPEGRAD_ALWAYS_INLINE void to_bools(Bools<F> v, bool* b) {
    alignas(64) F lane[size];
    ei::pstore(lane, v.p);
    for (int i = 0; i < size; ++i) b[i] = std::bit_cast<Lane>(lane[i]) != 0;
  }

  template <class T>
  static TYPEGRAD_ALWAYS_INLINE value<T> broadcast(compute_t<T> v) {
    if constexpr (std::same_as<T, bool>) {
      return v ? all_true<F>() : Bools<F>{ei::pset1<packet>(F{0})};
    } else if constexpr (std::integral<T>) {
      value<T> r;
      for (int i = 0; i < size; ++i) r.v[i] = v;
      return r;
    } else {
      return {ei::pset1<packet>(static_cast<F>(v))};
    }
  }
  template <class T, Access A>
  static TYPEGRAD_ALWAYS_INLINE value<T> load(const T* p, std::int64_t stride) {
    if constexpr (A == Access::uniform) {
      return broadcast<T>(static_cast<compute_t<T>>(*p));
    } else if constexpr (std::same_as<T, F> && A == Access::contiguous) {
      return {ei::ploadu<packet>(p)};
    } else if constexpr (std::same_as<T, bool>) {
      bool b[size];
      for (int i = 0; i < size; ++i) b[i] = p[A == Access::contiguous ? i : i * stride];
      return from_bools(b);
    } else if constexpr (std::integral<T>) {
      value<T> r;
      for (int i = 0; i < size; ++i) r.v[i] = p[A == Access::contiguous ? i : i * stride];
      return r;
    } else {
      alignas(64) F r[size];
      for (int i = 0; i < size; ++i) r[i] = static_cast<F>(p[A == Access::contiguous ? i : i * stride]);
      return {ei::pload<packet>(r)};
    }
  }
  template <class T>
  static TYPEGRAD_ALWAYS_INLINE value<T> gather(const T* p, const Ints<std::int64_t, size>& position) {
    if constexpr (std::same_as<T, bool>) {
      bool b[size];
      for (int i = 0; i < size; ++i) b[i] = p[position.v[i]];
      return from_bools(b);
    } else if constexpr (std::integral<T>) {
      value<T> r;
      for (int i = 0; i < size; ++i) r.v[i] = p[position.v[i]];
      return r;
    } else {
      alignas(64) F r[size];
      for (int i = 0; i < size; ++i) r[i] = static_cast<F>(p[position.v[i]]);
      return {ei::pload<packet>(r)};
    }
  }
  template <class T, Access A>
  static TYPEGRAD_ALWAYS_INLINE void store(T* p, std::int64_t stride, value<T> v) {
    if constexpr (std::same_as<T, F> && A == Access::contiguous) {
      ei::pstoreu(p, v.p);
    } else if constexpr (std::same_as<T, bool>) {
      bool b[size];
      to_bools(v, b);
      for (int i = 0; i < size; ++i) p[A == Access::contiguous ? i : i * stride] = b[i];
    } else if constexpr (std::integral<T>) {
      for (int i = 0; i < size; ++i) p[A == Access::contiguous ? i : i * stride] = v.v[i];
    } else {
      alignas(64) F r[size];
      ei::pstore(r, v.p);
      for (int i = 0; i < size; ++i) p[A == Access::contiguous ? i : i * stride] = static_cast<T>(r[i]);
    }
  }
  template <class T>
  static TYPEGRAD_ALWAYS_INLINE value<T> ramp(std::int64_t first, std::int64_t stride) {
    if constexpr (std::integral<T>) {
      value<T> r;
      for (int i = 0; i < size; ++i) r.v[i] = static_cast<T>(first + i * stride);
      return r;
    } else {
      alignas(64) F r[size];
      for (int i = 0; i < size; ++i) r[i] = static_cast<F>(first + i * stride);
      return {ei::pload<packet>(r)};
    }
  }
  template <class To, class From>
  static TYPEGRAD_ALWAYS_INLINE value<To> convert(value<From> v) {
    if constexpr (std::same_as<To, From>) {
      return v;
    } else if constexpr (std::same_as<To, bool>) {
      if constexpr (std::integral<From>) {
        bool b[size];
        for (int i = 0; i < size; ++i) b[i] = v.v[i] != 0;
        return from_bools(b);
      } else {
        return not_equal(v, constant(F{0}));
      }
    } else if constexpr (std::same_as<From, bool>) {
      if constexpr (std::integral<To>) {
        bool b[size];
        to_bools(v, b);
        value<To> r;
        for (int i = 0; i < size; ++i) r.v[i] = b[i];
        return r;
      } else {
        return select(v, constant(F{1}), constant(F{0}));
      }
    } else if constexpr (std::integral<To> && std::integral<From>) {
      value<To> r;
      for (int i = 0; i < size; ++i) r.v[i] = static_cast<To>(v.v[i]);
      return r;
    } else if constexpr (std::integral<From>) {
      alignas(64) F r[size];
      for (int i = 0; i < size; ++i) r[i] = static_cast<F>(static_cast<To>(static_cast<F>(v.v[i])));
      return {ei::pload<packet>(r)};
    } else {
      alignas(64) F in[size];
      ei::pstore(in, v.p);
      if constexpr (std::integral<To>) {
        value<To> r;
        for (int i = 0; i < size; ++i) r.v[i] = math::convert<To>(in[i]);
        return r;
      } else {
        for (int i = 0; i < size; ++i) in[i] = static_cast<F>(static_cast<To>(in[i]));
        return {ei::pload<packet>(in)};
      }
    }
  }
  // Comparisons of integers come as Ints<bool>.
  template <class T, class V>
  static TYPEGRAD_ALWAYS_INLINE value<T> wrap(const V& v) {
    if constexpr (std::same_as<V, Ints<bool, size>>) return from_bools(v.v);
    else return v;
  }
  template <class T>
  static TYPEGRAD_ALWAYS_INLINE value<T> choose(Bools<F> c, const value<T>& a, const value<T>& b) {
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      bool m[size];
      to_bools(c, m);
      value<T> r;
      for (int i = 0; i < size; ++i) r.v[i] = m[i] ? a.v[i] : b.v[i];
      return r;
    } else {
      return select(c, a, b);
    }
  }
};

// The lanes of a region: packets of its one floating type, else scalars.
template <class R>
consteval auto pick_lanes() {
  bool real32 = false, real64 = false;
  for (const kernel::StepInfo& s : R::info) {
    real64 = real64 || s.dtype == DType::f64;
    real32 = real32 || s.dtype == DType::f32 || s.dtype == DType::bf16 || s.dtype == DType::f16;
  }
  return real32 == real64 ? 0 : real32 ? 1 : 2;
}
template <class R>
using lanes_of = std::conditional_t<pick_lanes<R>() == 0, ScalarLanes,
                                    std::conditional_t<pick_lanes<R>() == 1, VectorLanes<float>, VectorLanes<double>>>;

// Applies an element-wise op to values of lanes L; From is the element type of its (last) operand.
template <class L, Op O, class T, class From, class... V>
TYPEGRAD_ALWAYS_INLINE typename L::template value<T> compute(const V&... v) {
  if constexpr (O == Op::Cast) return L::template convert<T, From>(v...);
  else if constexpr (O == Op::Select) return L::template choose<T>(v...);
  else return L::template wrap<T>(Primitive<O>::apply(v...));
}

// Folds two partial results of a reduction.
template <Op O, class V>
TYPEGRAD_ALWAYS_INLINE V combine(const V& a, const V& b) {
  using math::add, math::mul, math::maximum, math::minimum;
  if constexpr (O == Op::ReduceSum) return add(a, b);
  else if constexpr (O == Op::ReduceProd) return mul(a, b);
  else if constexpr (O == Op::ReduceMax) return maximum(a, b);
  else return minimum(a, b);
}
template <Op O, class F>
TYPEGRAD_ALWAYS_INLINE Bools<F> combine(const Bools<F>& a, const Bools<F>& b) {
  if constexpr (O == Op::ReduceMax) return logical_or(a, b);
  else return logical_and(a, b);
}

// The lanes of v folded pairwise; sums and products of floats in double.
template <class L, Op O, class T>
TYPEGRAD_ALWAYS_INLINE auto fold_lanes(const typename L::template value<T>& v) {
  using C = compute_t<T>;
  if constexpr (L::size == 1) {
    return v;
  } else {
    C lane[L::size];
    if constexpr (std::same_as<C, bool>) L::to_bools(v, lane);
    else if constexpr (std::integral<C>) for (int i = 0; i < L::size; ++i) lane[i] = v.v[i];
    else ei::pstoreu(lane, v.p);
    if constexpr (std::same_as<C, float> && (O == Op::ReduceSum || O == Op::ReduceProd)) {
      double wide[L::size];
      for (int i = 0; i < L::size; ++i) wide[i] = static_cast<double>(lane[i]);
      for (int half = L::size / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) wide[i] = combine<O>(wide[i], wide[i + half]);
      return wide[0];
    } else if constexpr (std::same_as<C, bool>) {
      bool r = lane[0];
      for (int i = 1; i < L::size; ++i) r = O == Op::ReduceMax ? (r || lane[i]) : (r && lane[i]);
      return r;
    } else {
      C r = lane[0];
      for (int i = 1; i < L::size; ++i) r = combine<O>(r, lane[i]);
      return r;
    }
  }
}

}  // namespace tg::cpu
