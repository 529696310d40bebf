// Folds: the running results of a region's reductions, in lanes and in wide scalars.
#pragma once

#include "typegrad/backends/cpu/evaluate.hpp"

namespace tg::cpu {

// The scalar a reduction of T ends in: sums and products of floats go on in double.
template <Op O, class T>
using wide_t = std::conditional_t<std::same_as<compute_t<T>, float> && (O == Op::ReduceSum || O == Op::ReduceProd), double, compute_t<T>>;

using kernel::Folds;
using kernel::identity_of;

// One accumulator per fold, in lanes L.
template <class R, int P, class L, class Sequence = std::make_integer_sequence<int, Folds<R, P>::count>>
struct Accumulators;
template <class R, int P, class L, int... F>
struct Accumulators<R, P, L, std::integer_sequence<int, F...>>
    : SlotsBase<std::integer_sequence<int, F...>, typename L::template value<typename Folds<R, P>::template type<F>>...> {
  TYPEGRAD_ALWAYS_INLINE void reset() {
    (void(slot<F>(*this) = L::template broadcast<typename Folds<R, P>::template type<F>>(
              identity_of<Folds<R, P>::template info<F>.op, compute_t<typename Folds<R, P>::template type<F>>>())),
     ...);
  }
  TYPEGRAD_ALWAYS_INLINE void merge(const Accumulators& o) {
    (void(slot<F>(*this) = combine<Folds<R, P>::template info<F>.op>(slot<F>(*this), slot<F>(o))), ...);
  }
  template <class Rows>
  TYPEGRAD_ALWAYS_INLINE void add(const values_of<L, R>& v, const Rows& rows) {
    (void(slot<F>(*this) = combine<Folds<R, P>::template info<F>.op>(slot<F>(*this), Evaluator<R>::template arg<L, Folds<R, P>::template arg<F>>(v, rows))),
     ...);
  }
};

// The wide results of the folds of one pass.
template <class R, int P, class Sequence = std::make_integer_sequence<int, Folds<R, P>::count>>
struct Totals;
template <class R, int P, int... F>
struct Totals<R, P, std::integer_sequence<int, F...>>
    : SlotsBase<std::integer_sequence<int, F...>, wide_t<Folds<R, P>::template info<F>.op, typename Folds<R, P>::template type<F>>...> {
  void reset() {
    (void(slot<F>(*this) = identity_of<Folds<R, P>::template info<F>.op, std::remove_cvref_t<decltype(slot<F>(*this))>>()), ...);
  }
  void add(const Totals& o) { (void(slot<F>(*this) = combine<Folds<R, P>::template info<F>.op>(slot<F>(*this), slot<F>(o))), ...); }
  template <class L>
  void add_lanes(const Accumulators<R, P, L>& a) {
    (void(slot<F>(*this) = combine<Folds<R, P>::template info<F>.op>(
              slot<F>(*this), static_cast<std::remove_cvref_t<decltype(slot<F>(*this))>>(
                                  fold_lanes<L, Folds<R, P>::template info<F>.op, typename Folds<R, P>::template type<F>>(slot<F>(a))))),
     ...);
  }
  template <class Rows>
  void add_value(const values_of<ScalarLanes, R>& v, const Rows& rows) {
    (void(slot<F>(*this) = combine<Folds<R, P>::template info<F>.op>(
              slot<F>(*this), static_cast<std::remove_cvref_t<decltype(slot<F>(*this))>>(
                                  Evaluator<R>::template arg<ScalarLanes, Folds<R, P>::template arg<F>>(v, rows)))),
     ...);
  }
  // Writes the results where the steps that follow find them, rounded to their type.
  void finish(values_of<ScalarLanes, R>& rows) const {
    (void(slot<Folds<R, P>::step[F]>(rows) = static_cast<compute_t<typename Folds<R, P>::template type<F>>>(
              static_cast<typename Folds<R, P>::template type<F>>(static_cast<compute_t<typename Folds<R, P>::template type<F>>>(slot<F>(*this))))),
     ...);
  }
};

}  // namespace tg::cpu
