// Contractions: matmul and linear.
#pragma once

#include "typegrad/ops/shape.hpp"

namespace tg {
namespace detail {

// Whether NumPy's matmul accepts ranks of at least 2: inner extents agree and leading axes broadcast.
template <class A, class B>
consteval bool matmul_fits() {
  const Extents a = A::extents, b = B::extents;
  if (a.rank < 2 || b.rank < 2 || !(a[a.rank - 1] == b[b.rank - 2])) return false;
  Extents la, lb;
  for (int i = 0; i < a.rank - 2; ++i) la.push(a[i]);
  for (int i = 0; i < b.rank - 2; ++i) lb.push(b[i]);
  return broadcasts(la, lb);
}

template <class A, class B>
consteval Extents matmul_extents() {
  Extents la, lb;
  for (int i = 0; i < A::extents.rank - 2; ++i) la.push(A::extents[i]);
  for (int i = 0; i < B::extents.rank - 2; ++i) lb.push(B::extents[i]);
  Extents e = broadcast(la, lb);
  e.push(A::extents[A::extents.rank - 2]);
  e.push(B::extents[B::extents.rank - 1]);
  return e;
}

struct Matmul {
  template <class A, class B>
  constexpr auto operator()(const A& a, const B& b) const {
    if constexpr (TypedExpr<A> && TypedExpr<B>) {
      if constexpr (!std::same_as<typename A::value_type, typename B::value_type>) {
        constexpr Message m = Message("matmul: dtypes ") << name(A::element) << " and " << name(B::element)
                                                         << " differ; convert one with tg::cast";
        fail<m, expr_t<A>, expr_t<B>>();
      } else if constexpr (!matmul_fits<A, B>()) {
        constexpr Message m = [] {
          Message text = Message("matmul: ") << A::extents << " x " << B::extents << ": ";
          if (A::extents.rank < 2 || B::extents.rank < 2) return text << "both operands need at least two axes";
          const Extent &k = A::extents[A::extents.rank - 1], &l = B::extents[B::extents.rank - 2];
          if (!(k == l)) return text << "inner extents " << k << " and " << l << " differ";
          return text << "leading axes do not broadcast";
        }();
        fail<m, expr_t<A>, expr_t<B>>();
      }
      constexpr auto extents = [] { return matmul_extents<A, B>(); };
      return expr_of<typename A::value_type, decltype(extents)>(build::matmul(a, b));
    } else {
      return build::matmul(a, b);
    }
  }
};

}  // namespace detail

// Matrix product over the last two axes, leading axes broadcast as in NumPy; bf16 and f16 accumulate in float.
// 2·m·n·k flops for each batch.
template <Operand A, Operand B>
constexpr auto matmul(const A& a, const B& b) { return apply<detail::Matmul>(a, b); }

}  // namespace tg
