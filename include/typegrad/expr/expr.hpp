// Expr<T, dims...>: a node of the graph being traced, whose type holds its dtype and shape.
#pragma once

#include "typegrad/expr/extent.hpp"
#include "typegrad/expr/message.hpp"
#include "typegrad/expr/value.hpp"

namespace tg {

// T is an element type (float, double, tg::bf16, ...), each of Ds an int or tg::dyn<"name">. Users get expressions
// as the arguments of the functions they trace and from the ops; they never build one by hand.
template <class T, auto... Ds>
struct Expr : Value {
  using value_type = T;
  static constexpr Extents extents = detail::extents_of<Ds...>();
  static constexpr DType element = dtype_of<T>;

  constexpr Expr() = default;
  constexpr explicit Expr(Value v) : Value(v) {}
};

namespace detail {
template <class T, auto... Ds>
void as_expr(const Expr<T, Ds...>&);
template <class T, auto... Ds>
Expr<T, Ds...> expr_type(const Expr<T, Ds...>&);
}  // namespace detail

// An Expr or something derived from it (a model's parameter).
template <class X>
concept TypedExpr = requires(const X& x) { detail::as_expr(x); };

// Anything a traced function computes with: a typed expression or an untyped handle.
template <class X>
concept Traced = std::derived_from<std::remove_cvref_t<X>, Value>;

// The Expr that X is or derives from.
template <class X>
using expr_t = decltype(detail::expr_type(std::declval<const X&>()));

namespace detail {

// The Expr type for extents computed at compile time. F is a stateless callable giving the Extents.
template <class T, class F>
consteval auto expr_from(F) {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return Expr<T, spelling<F{}().dims[I]>()...>{};
  }(std::make_index_sequence<static_cast<std::size_t>(F{}().rank)>{});
}
template <class T, class F>
using expr_of = decltype(expr_from<T>(F{}));

// An axis given by a user (negative ones count from the end) as an index below rank.
template <int Axis, int Rank>
consteval int normal_axis() {
  if constexpr (Axis < -Rank || Axis >= Rank) {
    constexpr Message m = Message("axis ") << Axis << " is out of range for a tensor of rank " << Rank;
    fail<m>();
  }
  return Axis < 0 ? Axis + Rank : Axis;
}

// A bit mask of axes; no axis at all means every axis.
template <int Rank, int... Axes>
consteval std::int64_t axes_mask() {
  if constexpr (sizeof...(Axes) == 0) return (std::int64_t{1} << Rank) - 1;
  else return ((std::int64_t{1} << normal_axis<Axes, Rank>()) | ...);
}

}  // namespace detail
}  // namespace tg
