// Evaluation of a region's steps by one thread, for V neighbouring elements of the innermost axis.
#pragma once

#include <tuple>

#include "typegrad/backends/cuda/device.hpp"
#include "typegrad/kernels/fold.hpp"
#include "typegrad/ops/reduction.hpp"

namespace tg::cuda {

using kernel::Access;
using kernel::slot;

// A kernel's launch as its parameter.
template <class R>
struct Arguments {
  static constexpr int n = R::operands > 0 ? R::operands : 1;
  std::int64_t extents[R::axes];
  std::int64_t strides[n][R::axes];
  std::byte* pointers[n];
  const std::byte* product;    // Contract: the products, row-major over the kept axes
  std::byte* partial;          // Row and Column: results of parts
  kernel::IndexFault* fault;
};

template <class P>
struct ValuesOf;
template <class... Steps>
struct ValuesOf<kernel::Program<Steps...>> {
  using type = kernel::SlotsBase<std::make_integer_sequence<int, static_cast<int>(sizeof...(Steps))>,
                                 compute_t<typename kernel::step_traits<Steps>::type>...>;
};
template <class R>
using Values = typename ValuesOf<typename R::program>::type;

// Where a thread is: each operand's element at index 0 of the innermost axis, or an Index's number there.
template <class R>
struct Position {
  std::byte* pointer[Arguments<R>::n];
  std::int64_t ramp[Arguments<R>::n];
};

template <class R>
__device__ Position<R> origin(const Arguments<R>& a) {
  Position<R> p;
#pragma unroll
  for (int s = 0; s < R::operands; ++s) {
    p.pointer[s] = a.pointers[s];
    p.ramp[s] = reinterpret_cast<std::int64_t>(a.pointers[s]);
  }
  return p;
}
template <class R, int... S>
__device__ void move(Position<R>& p, const Arguments<R>& a, int axis, std::int64_t steps, std::integer_sequence<int, S...>) {
  (
      [&] {
        constexpr std::int64_t size = R::element_size[static_cast<std::size_t>(S)];
        const std::int64_t d = steps * a.strides[S][axis];
        if constexpr (size == 0) p.ramp[S] += d;
        else p.pointer[S] += d * size;
      }(),
      ...);
}
template <class R>
__device__ void move(Position<R>& p, const Arguments<R>& a, int axis, std::int64_t steps) {
  move<R>(p, a, axis, steps, std::make_integer_sequence<int, R::operands>{});
}
// Moves to a linear index over the axes [First, Last), row-major.
template <int First, int Last, class R>
__device__ void seek(Position<R>& p, const Arguments<R>& a, std::int64_t linear) {
  if constexpr (Last - First == 1) {
    move(p, a, First, linear);
  } else {
#pragma unroll
    for (int axis = Last; axis-- > First;) {
      const std::int64_t e = a.extents[axis];
      move(p, a, axis, axis == First ? linear : linear % e);
      linear /= e;
    }
  }
}

// The fault with the lowest position is kept: in unsigned numbers "none" (-1) is above all positions. Value and classes
// may be those of another fault if several are found at once.
inline __device__ void report(kernel::IndexFault* fault, std::int64_t position, std::int64_t value, std::int64_t classes) {
  const auto p = static_cast<unsigned long long>(position);
  if (p >= atomicMin(reinterpret_cast<unsigned long long*>(&fault->position), p)) return;
  fault->value = value;
  fault->classes = classes;
}

// Whether an earlier kernel found a fault and left its results unwritten, which must not serve as addresses then. Called
// by all threads of a block, which get one answer.
inline __device__ bool faulty(const kernel::IndexFault* fault) {
  __shared__ bool found;
  if (threadIdx.x == 0 && threadIdx.y == 0) found = fault->position >= 0;
  __syncthreads();
  return found;
}
template <class R>
inline constexpr bool gathers = [] {
  for (const kernel::StepInfo& s : R::info)
    if (s.code == Code::Gather) return true;
  return false;
}();
// Whether a region would read at positions that a fault has left unwritten.
template <class R>
__device__ bool unreadable(const Arguments<R>& a) {
  if constexpr (gathers<R>) return faulty(a.fault);
  else return false;
}

template <class T, int V>
struct alignas(sizeof(T) * V <= 16 ? sizeof(T) * V : 16) Packet {
  T v[V];
};

template <class R, class P = typename R::program>
struct Evaluator;

template <class R, class... Steps>
struct Evaluator<R, kernel::Program<Steps...>> {
  template <int I>
  using step_type = typename kernel::step_traits<std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<Steps...>>>::type;
  template <int I>
  using step = std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<Steps...>>;

  template <int A>
  __device__ static compute_t<step_type<A>> arg(const Values<R>& v, const Values<R>& row) {
    constexpr kernel::StepInfo s = R::info[static_cast<std::size_t>(A)];
    if constexpr (s.code == Code::Literal) return literal(step<A>{});
    else if constexpr (s.row) return slot<A>(row);
    else return slot<A>(v);
  }
  template <class T, std::int64_t Bits>
  __device__ static compute_t<T> literal(kernel::Literal<T, Bits>) {
    if constexpr (is_floating(dtype_of<T>)) return static_cast<compute_t<T>>(__longlong_as_double(Bits));
    else return static_cast<T>(Bits);
  }

  // The steps of pass P over V elements from `index` on.
  template <int P, int V>
  __device__ static void elements(const Arguments<R>& a, const Position<R>& at, std::int64_t index, Values<R> (&v)[V], const Values<R>& row,
                                  std::int64_t product) {
    run<P, V>(a, at, index, v, row, product, std::make_integer_sequence<int, static_cast<int>(sizeof...(Steps))>{});
  }
  template <int P, int V, int... I>
  __device__ static void run(const Arguments<R>& a, const Position<R>& at, std::int64_t index, Values<R> (&v)[V], const Values<R>& row,
                             std::int64_t product, std::integer_sequence<int, I...>) {
    (element<P, V, I>(a, at, index, v, row, product), ...);
  }
  template <int P, int V, int I>
  __device__ static void element(const Arguments<R>& a, const Position<R>& at, std::int64_t index, Values<R> (&v)[V], const Values<R>& row,
                                 std::int64_t product) {
    constexpr auto mode = R::recomputing_modes[static_cast<std::size_t>(P)][static_cast<std::size_t>(I)];
    if constexpr (mode != R::Mode::skip) exec<V, I>(step<I>{}, a, at, index, v, row, product);
  }
  // The steps that are constant along the reduced axes and follow P passes.
  template <int P>
  __device__ static void rows(const Arguments<R>& a, const Position<R>& at, std::int64_t index, Values<R>& row, bool store) {
    run_rows<P>(a, at, index, row, store, std::make_integer_sequence<int, static_cast<int>(sizeof...(Steps))>{});
  }
  template <int P, int... I>
  __device__ static void run_rows(const Arguments<R>& a, const Position<R>& at, std::int64_t index, Values<R>& row, bool store,
                                  std::integer_sequence<int, I...>) {
    (row_step<P, I>(a, at, index, row, store), ...);
  }
  template <int P, int I>
  __device__ static void row_step(const Arguments<R>& a, const Position<R>& at, std::int64_t index, Values<R>& row, bool store) {
    constexpr kernel::StepInfo s = R::info[static_cast<std::size_t>(I)];
    if constexpr (s.row && s.code != Code::Fold && R::phase[static_cast<std::size_t>(I)] == P) {
      if (s.code == Code::Store && !store) return;
      exec<1, I>(step<I>{}, a, at, index, reinterpret_cast<Values<R>(&)[1]>(row), row, 0);
    }
  }

  template <int V, int I, class T, int S, bool Row>
  __device__ static void exec(kernel::Load<T, S, Row>, const Arguments<R>& a, const Position<R>& at, std::int64_t index, Values<R> (&v)[V],
                              const Values<R>&, std::int64_t) {
    const T* p = reinterpret_cast<const T*>(at.pointer[S]);
    constexpr Access access = Row ? Access::strided : R::access[static_cast<std::size_t>(S)];
    if constexpr (access == Access::contiguous && V > 1) {
      const Packet<T, V> x = *reinterpret_cast<const Packet<T, V>*>(p + index);
#pragma unroll
      for (int k = 0; k < V; ++k) slot<I>(v[k]) = static_cast<compute_t<T>>(x.v[k]);
    } else if constexpr (access == Access::uniform) {
      const auto x = static_cast<compute_t<T>>(*p);
#pragma unroll
      for (int k = 0; k < V; ++k) slot<I>(v[k]) = x;
    } else {
      const std::int64_t stride = inner_stride<S>(a);
#pragma unroll
      for (int k = 0; k < V; ++k) slot<I>(v[k]) = static_cast<compute_t<T>>(p[(index + k) * stride]);
    }
  }
  template <int V, int I, class T, std::int64_t Bits>
  __device__ static void exec(kernel::Literal<T, Bits>, const Arguments<R>&, const Position<R>&, std::int64_t, Values<R> (&)[V],
                              const Values<R>&, std::int64_t) {}
  template <int V, int I, class T, int S, bool Row>
  __device__ static void exec(kernel::Index<T, S, Row>, const Arguments<R>& a, const Position<R>& at, std::int64_t index, Values<R> (&v)[V],
                              const Values<R>&, std::int64_t) {
#pragma unroll
    for (int k = 0; k < V; ++k) slot<I>(v[k]) = static_cast<compute_t<T>>(at.ramp[S] + (index + k) * inner_stride<S>(a));
  }
  template <int V, int I, Op O, class T, bool Row, int... A>
  __device__ static void exec(kernel::Compute<O, T, Row, A...>, const Arguments<R>&, const Position<R>&, std::int64_t, Values<R> (&v)[V],
                              const Values<R>& row, std::int64_t) {
#pragma unroll
    for (int k = 0; k < V; ++k) slot<I>(v[k]) = compute<O, T>(arg<A>(v[k], row)...);
  }
  template <Op O, class T, class... X>
  __device__ static compute_t<T> compute(X... x) {
    // The narrow types round here, as they would if the value were stored.
    if constexpr (O == Op::Cast) return static_cast<compute_t<T>>(static_cast<T>(math::convert<compute_t<T>>(x...)));
    else if constexpr (O == Op::Select) return math_select(x...);
    else return static_cast<compute_t<T>>(Primitive<O>::apply(x...));
  }
  template <class X>
  __device__ static X math_select(bool c, X a, X b) { return c ? a : b; }
  template <int V, int I, class T, bool Row, std::int64_t Classes, int A>
  __device__ static void exec(kernel::Check<T, Row, Classes, A>, const Arguments<R>& a, const Position<R>& at, std::int64_t index,
                              Values<R> (&v)[V], const Values<R>& row, std::int64_t) {
    // What is out of range becomes 0, so that nothing is read there.
    for (int k = 0; k < V; ++k) {
      const T x = arg<A>(v[k], row);
      const bool valid = x >= 0 && x < Classes;
      slot<I>(v[k]) = valid ? x : T{0};
      if (valid) continue;
      constexpr int source = R::info[static_cast<std::size_t>(A)].slot;
      std::int64_t position = index + k;
      if constexpr (source >= 0)
        position = (at.pointer[source] - a.pointers[source]) / static_cast<std::int64_t>(sizeof(T)) + (index + k) * inner_stride<source>(a);
      report(a.fault, position, static_cast<std::int64_t>(x), Classes);
    }
  }
  template <int V, int I, class T, int S, bool Row, int A>
  __device__ static void exec(kernel::Gather<T, S, Row, A>, const Arguments<R>&, const Position<R>& at, std::int64_t, Values<R> (&v)[V],
                              const Values<R>& row, std::int64_t) {
    const T* p = reinterpret_cast<const T*>(at.pointer[S]);
#pragma unroll
    for (int k = 0; k < V; ++k) slot<I>(v[k]) = static_cast<compute_t<T>>(p[arg<A>(v[k], row)]);
  }
  template <int V, int I, class T>
  __device__ static void exec(kernel::Product<T>, const Arguments<R>& a, const Position<R>&, std::int64_t, Values<R> (&v)[V],
                              const Values<R>&, std::int64_t product) {
    using C = compute_t<T>;
    const C* p = reinterpret_cast<const C*>(a.product) + product;
#pragma unroll
    for (int k = 0; k < V; ++k) slot<I>(v[k]) = p[k];
  }
  template <int V, int I, class T, int S, bool Row, int A>
  __device__ static void exec(kernel::Store<T, S, Row, A>, const Arguments<R>& a, const Position<R>& at, std::int64_t index, Values<R> (&v)[V],
                              const Values<R>& row, std::int64_t) {
    T* p = reinterpret_cast<T*>(at.pointer[S]);
    constexpr Access access = Row ? Access::strided : R::access[static_cast<std::size_t>(S)];
    if constexpr (access == Access::contiguous && V > 1) {
      Packet<T, V> x;
#pragma unroll
      for (int k = 0; k < V; ++k) x.v[k] = static_cast<T>(arg<A>(v[k], row));
      *reinterpret_cast<Packet<T, V>*>(p + index) = x;
    } else {
      const std::int64_t stride = inner_stride<S>(a);
#pragma unroll
      for (int k = 0; k < V; ++k) p[(index + k) * stride] = static_cast<T>(arg<A>(v[k], row));
    }
  }

  // The axis that `index` counts along.
  static constexpr int inner = R::kind == KernelKind::Row ? R::axes - 1 : R::kept - 1;
  template <int S>
  __device__ static std::int64_t inner_stride(const Arguments<R>& a) {
    return a.strides[S][inner];
  }
};

// The folds of pass P: one accumulator each, in the type of the elements.
template <class R, int P, class Sequence = std::make_integer_sequence<int, kernel::Folds<R, P>::count>>
struct Totals;
template <class R, int P, int... F>
struct Totals<R, P, std::integer_sequence<int, F...>>
    : kernel::SlotsBase<std::integer_sequence<int, F...>, compute_t<typename kernel::Folds<R, P>::template type<F>>...> {
  using Info = kernel::Folds<R, P>;
  __device__ void reset() {
    (void(slot<F>(*this) = kernel::identity_of<Info::template info<F>.op, compute_t<typename Info::template type<F>>>()), ...);
  }
  __device__ void add(const Values<R>& v, const Values<R>& row) {
    (void(slot<F>(*this) = kernel::combine<Info::template info<F>.op>(slot<F>(*this), Evaluator<R>::template arg<Info::template arg<F>>(v, row))), ...);
  }
  __device__ void merge(const Totals& o) { (void(slot<F>(*this) = kernel::combine<Info::template info<F>.op>(slot<F>(*this), slot<F>(o))), ...); }
  // Writes the results where the steps that follow find them, rounded to their type.
  __device__ void finish(Values<R>& row) const {
    (void(slot<Info::step[static_cast<std::size_t>(F)]>(row) = static_cast<compute_t<typename Info::template type<F>>>(
              static_cast<typename Info::template type<F>>(slot<F>(*this)))),
     ...);
  }
};
template <class R, int P>
struct Merge {
  __device__ Totals<R, P> operator()(Totals<R, P> a, const Totals<R, P>& b) const {
    a.merge(b);
    return a;
  }
};

}  // namespace tg::cuda
