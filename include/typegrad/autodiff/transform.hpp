// Differentiation of typed functions while they are traced.
#pragma once

#include <tuple>

#include "typegrad/autodiff/gradient.hpp"
#include "typegrad/expr/trace.hpp"

namespace tg {

// Positions of arguments to differentiate in.
template <int... I>
struct Wrt {};
template <int... I>
inline constexpr Wrt<I...> wrt{};

// Gradients of a scalar expression in other expressions it was computed from, as a tuple; usable in traced functions,
// also on gradients. Zeros where the scalar does not depend on them.
template <TypedExpr Loss, TypedExpr... X>
constexpr auto gradients(const Loss& loss, const X&... x) {
  static_assert(is_floating(Loss::element) && Loss::extents.size().is(1), "typegrad: gradients are taken of a floating-point scalar; reduce it with tg::sum or tg::mean");
  static_assert((is_floating(X::element) && ...), "typegrad: gradients are taken in floating-point expressions");
  const std::vector<Value> d = gradient(loss, {x.id...});
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return std::tuple<expr_t<X>...>{expr_t<X>(d[K])...};
  }(std::index_sequence_for<X...>{});
}

// f's gradient as a function of the same arguments.
template <class F, class Which>
struct GradientOf;
template <class F, int... I>
struct GradientOf<F, Wrt<I...>> {
  template <class... X>
  constexpr auto operator()(const X&... x) const {
    const std::tuple<const X&...> all(x...);
    const auto g = gradients(F{}(x...), std::get<static_cast<std::size_t>(I)>(all)...);
    if constexpr (sizeof...(I) == 1) return std::get<0>(g);
    else return g;
  }
};

// f's value and its gradient.
template <class F, class Which>
struct ValueAndGradient;
template <class F, int... I>
struct ValueAndGradient<F, Wrt<I...>> {
  template <class... X>
  constexpr auto operator()(const X&... x) const {
    const std::tuple<const X&...> all(x...);
    const auto value = F{}(x...);
    const auto g = gradients(value, std::get<static_cast<std::size_t>(I)>(all)...);
    if constexpr (sizeof...(I) == 1) return std::tuple(value, std::get<0>(g));
    else return std::tuple(value, g);
  }
};

}  // namespace tg
