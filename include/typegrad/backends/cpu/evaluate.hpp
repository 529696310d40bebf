// Evaluation of a region's steps at one place of its iteration, at most once each.
#pragma once

#include <tuple>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "typegrad/backends/cpu/lanes.hpp"
#include "typegrad/kernels/fold.hpp"

namespace tg::cpu {

using kernel::slot;
using kernel::SlotsBase;

// The values of all steps in lanes L.
template <class L, class P>
struct ValuesOf;
template <class L, class... Steps>
struct ValuesOf<L, kernel::Program<Steps...>> {
  using type = SlotsBase<std::make_integer_sequence<int, static_cast<int>(sizeof...(Steps))>,
                         typename L::template value<typename kernel::step_traits<Steps>::type>...>;
};
template <class L, class R>
using values_of = typename ValuesOf<L, typename R::program>::type;

// Where a kernel is: for each operand the element at the current index, and its stride along the innermost axis.
template <class R>
struct Position {
  static constexpr std::size_t n = R::operands > 0 ? R::operands : 1;
  std::byte* pointer[n];
  std::int64_t stride[n];
  std::int64_t ramp[n];  // the position of an Index operand
};

// How values are kept between two passes over a row.
template <class R>
using kept_t = std::conditional_t<pick_lanes<R>() == 1, float, double>;

struct Faults {
  kernel::IndexFault* fault;
  // The fault with the lowest position is kept, so that the report does not depend on threads.
  void report(std::int64_t position, std::int64_t value, std::int64_t classes) const {
#if defined(_OPENMP)
#pragma omp critical(typegrad_index_fault)
#endif
    if (fault->position < 0 || position < fault->position) *fault = {position, value, classes};
  }
};

template <class R, class P = typename R::program>
struct Evaluator;

template <class R, class... Steps>
struct Evaluator<R, kernel::Program<Steps...>> {
  template <int I>
  using step_type = typename kernel::step_traits<std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<Steps...>>>::type;

  // The value of step A in lanes L, read from the values of the elements or spread from those of the row.
  template <class L, int A, class Rows>
  static TYPEGRAD_ALWAYS_INLINE auto arg(const values_of<L, R>& v, const Rows& rows) {
    constexpr kernel::StepInfo s = R::info[static_cast<std::size_t>(A)];
    if constexpr (s.code == Code::Literal) return literal<L>(std::get<static_cast<std::size_t>(A)>(std::tuple<Steps...>{}));
    else if constexpr (s.row && !std::same_as<Rows, values_of<L, R>>) return L::template broadcast<step_type<A>>(slot<A>(rows));
    else if constexpr (s.row) return slot<A>(rows);
    else return slot<A>(v);
  }
  template <class L, class T, std::int64_t Bits>
  static TYPEGRAD_ALWAYS_INLINE auto literal(kernel::Literal<T, Bits>) {
    if constexpr (is_floating(dtype_of<T>)) return L::template broadcast<T>(static_cast<compute_t<T>>(std::bit_cast<double>(Bits)));
    else return L::template broadcast<T>(static_cast<T>(Bits));
  }

  // The steps of pass P over the elements, in order. `product` is the contraction's row, `kept` the memory of values that
  // another pass needs again, one row of `length` each.
  template <class L, int P, class Rows>
  static TYPEGRAD_ALWAYS_INLINE void elements(const Position<R>& at, std::int64_t index, values_of<L, R>& v, const Rows& rows,
                                              const std::byte* product, std::byte* kept, std::int64_t length, const Faults& faults) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (element<L, P, I>(at, index, v, rows, product, kept, length, faults), ...);
    }(std::make_integer_sequence<int, static_cast<int>(sizeof...(Steps))>{});
  }
  template <class L, int P, int I, class Rows>
  static TYPEGRAD_ALWAYS_INLINE void element(const Position<R>& at, std::int64_t index, values_of<L, R>& v, const Rows& rows,
                                             const std::byte* product, std::byte* kept, std::int64_t length, const Faults& faults) {
    using Mode = typename R::Mode;
    constexpr Mode mode = R::modes[static_cast<std::size_t>(P)][static_cast<std::size_t>(I)];
    using K = kept_t<R>;
    constexpr int place = R::kept_index[static_cast<std::size_t>(I)];
    if constexpr (mode == Mode::reload) {
      slot<I>(v) = static_cast<std::remove_cvref_t<decltype(slot<I>(v))>>(
          L::template load<K, Access::contiguous>(reinterpret_cast<const K*>(kept) + place * length + index, 1));
    } else if constexpr (mode != Mode::skip) {
      exec<L, I>(std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<Steps...>>{}, at, index, v, rows, product, faults);
      if constexpr (mode == Mode::keep)
        L::template store<K, Access::contiguous>(reinterpret_cast<K*>(kept) + place * length + index, 1, slot<I>(v));
    }
  }

  // The steps that are constant along the reduced axes and follow P passes.
  template <class L, int P>
  static TYPEGRAD_ALWAYS_INLINE void row(const Position<R>& at, std::int64_t index, values_of<L, R>& rows, const Faults& faults) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (
          [&] {
            constexpr kernel::StepInfo s = R::info[static_cast<std::size_t>(I)];
            if constexpr (s.row && s.code != Code::Fold && R::phase[static_cast<std::size_t>(I)] == P)
              exec<L, I>(std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<Steps...>>{}, at, index, rows, rows, nullptr, faults);
          }(),
          ...);
    }(std::make_integer_sequence<int, static_cast<int>(sizeof...(Steps))>{});
  }

  template <class L, int I, class T, int S, bool Row, class Rows>
  static TYPEGRAD_ALWAYS_INLINE void exec(kernel::Load<T, S, Row>, const Position<R>& at, std::int64_t index, values_of<L, R>& v,
                                          const Rows&, const std::byte*, const Faults&) {
    slot<I>(v) = L::template load<T, R::access[S]>(reinterpret_cast<const T*>(at.pointer[S]) + index * at.stride[S], at.stride[S]);
  }
  template <class L, int I, class T, std::int64_t Bits, class Rows>
  static TYPEGRAD_ALWAYS_INLINE void exec(kernel::Literal<T, Bits>, const Position<R>&, std::int64_t, values_of<L, R>& v, const Rows&,
                                          const std::byte*, const Faults&) {
    slot<I>(v) = literal<L>(kernel::Literal<T, Bits>{});
  }
  template <class L, int I, class T, int S, bool Row, class Rows>
  static TYPEGRAD_ALWAYS_INLINE void exec(kernel::Index<T, S, Row>, const Position<R>& at, std::int64_t index, values_of<L, R>& v,
                                          const Rows&, const std::byte*, const Faults&) {
    slot<I>(v) = L::template ramp<T>(at.ramp[S] + index * at.stride[S], at.stride[S]);
  }
  template <class L, int I, Op O, class T, bool Row, int... A, class Rows>
  static TYPEGRAD_ALWAYS_INLINE void exec(kernel::Compute<O, T, Row, A...>, const Position<R>&, std::int64_t, values_of<L, R>& v,
                                          const Rows& rows, const std::byte*, const Faults&) {
    constexpr int args[] = {A...};
    using From = step_type<args[sizeof...(A) - 1]>;
    slot<I>(v) = compute<L, O, T, From>(arg<L, A>(v, rows)...);
  }
  template <class L, int I, class T, bool Row, std::int64_t Classes, int A, class Rows>
  static TYPEGRAD_ALWAYS_INLINE void exec(kernel::Check<T, Row, Classes, A>, const Position<R>& at, std::int64_t index,
                                          values_of<L, R>& v, const Rows& rows, const std::byte*, const Faults& faults) {
    // What is out of range becomes 0, so that nothing is read there before the fault is thrown.
    slot<I>(v) = arg<L, A>(v, rows);
    auto check = [&](auto& x, std::int64_t lane) {
      if (x < 0 || x >= Classes) {
        // The position is counted in the checked tensor itself when it is read directly.
        constexpr int source = R::info[static_cast<std::size_t>(A)].slot;
        std::int64_t position = index + lane;
        if constexpr (source >= 0)
          position = (at.pointer[source] - reinterpret_cast<std::byte*>(at.ramp[source])) / static_cast<std::int64_t>(sizeof(T)) +
                     (index + lane) * at.stride[source];
        faults.report(position, static_cast<std::int64_t>(x), Classes);
        x = 0;
      }
    };
    auto& found = slot<I>(v);
    if constexpr (requires { found.v[0]; }) {
      for (int i = 0; i < L::size; ++i) check(found.v[i], i);
    } else {
      check(found, 0);
    }
  }
  template <class L, int I, class T, int S, bool Row, int A, class Rows>
  static TYPEGRAD_ALWAYS_INLINE void exec(kernel::Gather<T, S, Row, A>, const Position<R>& at, std::int64_t, values_of<L, R>& v,
                                          const Rows& rows, const std::byte*, const Faults&) {
    slot<I>(v) = L::template gather<T>(reinterpret_cast<const T*>(at.pointer[S]), arg<L, A>(v, rows));
  }
  template <class L, int I, class T, class Rows>
  static TYPEGRAD_ALWAYS_INLINE void exec(kernel::Product<T>, const Position<R>&, std::int64_t index, values_of<L, R>& v, const Rows&,
                                          const std::byte* product, const Faults&) {
    using C = compute_t<T>;
    if constexpr (std::integral<T>) {
      slot<I>(v) = L::template load<T, Access::contiguous>(reinterpret_cast<const T*>(product) + index, 1);
    } else {
      slot<I>(v) = L::template load<C, Access::contiguous>(reinterpret_cast<const C*>(product) + index, 1);
    }
  }
  template <class L, int I, class T, int S, bool Row, int A, class Rows>
  static TYPEGRAD_ALWAYS_INLINE void exec(kernel::Store<T, S, Row, A>, const Position<R>& at, std::int64_t index, values_of<L, R>& v,
                                          const Rows& rows, const std::byte*, const Faults&) {
    L::template store<T, R::access[S]>(reinterpret_cast<T*>(at.pointer[S]) + index * at.stride[S], at.stride[S], arg<L, A>(v, rows));
  }
  template <class L, int I, Op O, class T, int A, class Rows>
  static TYPEGRAD_ALWAYS_INLINE void exec(kernel::Fold<O, T, A>, const Position<R>&, std::int64_t, values_of<L, R>&, const Rows&,
                                          const std::byte*, const Faults&) {}
};

// The place of a kernel at index 0 of every axis; `inner` is the axis that loops run along.
template <class R>
Position<R> position(const kernel::Launch& l, int inner) {
  Position<R> p;
  for (int s = 0; s < R::operands; ++s) {
    p.pointer[s] = l.pointers[s];
    p.stride[s] = l.strides[s * R::axes + inner];
    // Where a ramp starts; for loads the operand's first address, from which positions are counted in error messages.
    p.ramp[s] = reinterpret_cast<std::int64_t>(l.pointers[s]);
  }
  return p;
}
template <class R>
void move(Position<R>& p, const kernel::Launch& l, int axis, std::int64_t steps) {
  for (int s = 0; s < R::operands; ++s) {
    const std::int64_t d = steps * l.strides[s * R::axes + axis];
    if (R::element_size[static_cast<std::size_t>(s)] == 0) p.ramp[s] += d;
    else p.pointer[s] += d * R::element_size[static_cast<std::size_t>(s)];
  }
}

// Walks through the axes [First, Last) of a kernel in row-major order.
template <class R, int First, int Last>
struct Walk {
  static constexpr int rank = Last > First ? Last - First : 0;
  const kernel::Launch& launch;
  Position<R>& at;
  std::int64_t index[rank > 0 ? rank : 1]{};

  static std::int64_t count(const kernel::Launch& l) {
    std::int64_t n = 1;
    for (int a = First; a < Last; ++a) n *= l.extents[a];
    return n;
  }
  void seek(std::int64_t linear) {
    for (int a = rank; a-- > 0;) {
      const std::int64_t e = launch.extents[First + a];
      const std::int64_t i = linear % e;
      linear /= e;
      move(at, launch, First + a, i - index[a]);
      index[a] = i;
    }
  }
  void next() {
    for (int a = rank; a-- > 0;) {
      move(at, launch, First + a, 1);
      if (++index[a] < launch.extents[First + a]) return;
      move(at, launch, First + a, -index[a]);
      index[a] = 0;
    }
  }
};

// What a kernel runs with: scratch memory of the size it asked for and the number of threads.
struct Context {
  std::byte* scratch = nullptr;
  int threads = 1;
  kernel::IndexFault* fault = nullptr;
};

// Work below this many elements is not worth waking threads for.
inline constexpr std::int64_t parallel_threshold = 16384;

inline int thread_index() {
#if defined(_OPENMP)
  return omp_get_thread_num();
#else
  return 0;
#endif
}

// Calls body(begin, end) on parts of [0, count), one for each thread.
template <class Body>
void parallel(std::int64_t count, int threads, Body body) {
#if defined(_OPENMP)
  if (threads > 1 && count > 1) {
#pragma omp parallel num_threads(threads)
    {
      const std::int64_t n = omp_get_num_threads(), t = omp_get_thread_num();
      body(count * t / n, count * (t + 1) / n);
    }
    return;
  }
#endif
  (void)threads;
  body(std::int64_t{0}, count);
}

}  // namespace tg::cpu
