// What the routines of all back ends share: their types, and the integers that sort as numbers do.
#pragma once

#include <bit>
#include <tuple>

#include "typegrad/kernels/region.hpp"

namespace tg::kernel {

// The parts of a Routine region: its operands lie in the slots 0, 1, ..., its result in the last one.
template <class P>
struct RoutineTraits;
template <class First, Op O, class T, std::int64_t Bits, int A, class S>
struct RoutineTraits<Program<First, Routine<O, T, Bits, A>, S>> {
  using first = typename step_traits<First>::type;
  using second = first;
  using result = T;
  static constexpr std::int64_t attribute = Bits;
  static constexpr Op op = O;
  static constexpr int result_slot = 1;
};
template <class First, class Second, Op O, class T, std::int64_t Bits, int A, int B, class S>
struct RoutineTraits<Program<First, Second, Routine<O, T, Bits, A, B>, S>> {
  using first = typename step_traits<First>::type;
  using second = typename step_traits<Second>::type;
  using result = T;
  static constexpr std::int64_t attribute = Bits;
  static constexpr Op op = O;
  static constexpr int result_slot = 2;
};

// The kernel of a back end that implements a Routine region.
template <class R, template <class> class Scatter, template <class> class Sort, template <class> class Scan>
struct choose_routine {
  static constexpr Op op = RoutineTraits<typename R::program>::op;
  // Only the chosen template is instantiated.
  static consteval auto choose() {
    if constexpr (is_scatter(op)) return std::type_identity<Scatter<R>>{};
    else if constexpr (op == Op::ArgSort) return std::type_identity<Sort<R>>{};
    else return std::type_identity<Scan<R>>{};
  }
  using type = typename decltype(choose())::type;
};

// What running sums are computed in: those of floats in double.
template <class T>
using running_sum_t = std::conditional_t<is_floating(dtype_of<T>), double, compute_t<T>>;

// Unsigned integers that compare as the values do, with NaN above everything and -0 equal to 0.
template <class T>
struct SortKey {
  using C = compute_t<T>;
  using type = std::conditional_t<sizeof(C) == 8, std::uint64_t, std::uint32_t>;
  TYPEGRAD_HOST_DEVICE static type of(T value, bool descending) {
    const C x = static_cast<C>(value);
    constexpr type top = type{1} << (8 * sizeof(type) - 1);
    type key{};
    if constexpr (is_floating(dtype_of<T>)) {
      if (x != x) {
        key = ~type{0};
      } else {
        const type bits = x == C{0} ? type{0} : __builtin_bit_cast(type, x);
        key = (bits & top) != 0 ? ~bits : bits | top;
      }
    } else {
      key = static_cast<type>(static_cast<std::conditional_t<sizeof(C) == 8, std::int64_t, std::int32_t>>(x)) ^ top;
    }
    return descending ? ~key : key;
  }
};

}  // namespace tg::kernel
