// What back ends share about values of a region: storage by step index, and the folds of each pass.
#pragma once

#include <limits>

#include "typegrad/kernels/math.hpp"
#include "typegrad/kernels/region.hpp"

namespace tg::kernel {

template <int I, class V>
struct Slot {
  V value;
};
template <class Sequence, class... V>
struct SlotsBase;
template <int... I, class... V>
struct SlotsBase<std::integer_sequence<int, I...>, V...> : Slot<I, V>... {};

template <int I, class V>
TYPEGRAD_HOST_DEVICE constexpr V& slot(Slot<I, V>& s) { return s.value; }
template <int I, class V>
TYPEGRAD_HOST_DEVICE constexpr const V& slot(const Slot<I, V>& s) { return s.value; }

// What a reduction of nothing gives; for max and min also where every fold begins.
template <Op O, class C>
TYPEGRAD_HOST_DEVICE constexpr C identity_of() {
  if constexpr (O == Op::ReduceSum) return C{0};
  else if constexpr (O == Op::ReduceProd) return C{1};
  else if constexpr (std::same_as<C, bool>) return O == Op::ReduceMin;
  else if constexpr (std::floating_point<C>)
    return O == Op::ReduceMax ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::infinity();
  else return O == Op::ReduceMax ? std::numeric_limits<C>::lowest() : (std::numeric_limits<C>::max)();
}

// Folds two partial results of a reduction.
template <Op O, class V>
  requires std::is_arithmetic_v<V>
TYPEGRAD_HOST_DEVICE constexpr V combine(V a, V b) {
  if constexpr (std::same_as<V, bool>) return O == Op::ReduceMax ? a || b : a && b;
  else if constexpr (O == Op::ReduceSum) return math::add(a, b);
  else if constexpr (O == Op::ReduceProd) return math::mul(a, b);
  else if constexpr (O == Op::ReduceMax) return math::maximum(a, b);
  else return math::minimum(a, b);
}

// The folds of one pass, by step index.
template <class R, int P>
struct Folds {
  static constexpr int count = [] {
    int n = 0;
    for (int i = 0; i < R::steps; ++i) n += R::info[static_cast<std::size_t>(i)].code == Code::Fold && R::phase[static_cast<std::size_t>(i)] == P + 1;
    return n;
  }();
  static constexpr std::array<int, static_cast<std::size_t>(count > 0 ? count : 1)> step = [] {
    std::array<int, static_cast<std::size_t>(count > 0 ? count : 1)> r{};
    std::size_t n = 0;
    for (int i = 0; i < R::steps; ++i)
      if (R::info[static_cast<std::size_t>(i)].code == Code::Fold && R::phase[static_cast<std::size_t>(i)] == P + 1) r[n++] = i;
    return r;
  }();
  template <int F>
  static constexpr StepInfo info = R::info[static_cast<std::size_t>(step[static_cast<std::size_t>(F)])];
  template <int F>
  using type = element_t<info<F>.dtype>;
  template <int F>
  static constexpr int arg = info<F>.args[0];

  // Calls f.template operator()<F>() for each fold.
  template <class Fn>
  TYPEGRAD_HOST_DEVICE static constexpr void each(Fn f) {
    [&]<int... F>(std::integer_sequence<int, F...>) { (f.template operator()<F>(), ...); }(std::make_integer_sequence<int, count>{});
  }
};

}  // namespace tg::kernel
