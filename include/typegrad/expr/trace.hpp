// Tracing: a function over expressions, called once, gives its graph.
#pragma once

#include <tuple>

#include "typegrad/expr/expr.hpp"

namespace tg {
namespace detail {

// The expressions a traced function returns, as a tuple: one expression, a pair, a tuple or an array of them, nested.
template <class R>
constexpr auto flatten(const R& r) {
  if constexpr (TypedExpr<R>) {
    return std::tuple<expr_t<R>>(static_cast<const expr_t<R>&>(r));
  } else if constexpr (requires { std::tuple_size<R>::value; }) {
    return std::apply([](const auto&... part) { return std::tuple_cat(flatten(part)...); }, r);
  } else {
    static_assert(TypedExpr<R>, "typegrad: a traced function returns an expression, or a tuple, pair or array of expressions");
  }
}

// Calls what a user wrote, or says what it was given if it does not take that.
template <class F, class... X>
constexpr auto call(const F& f, const X&... x) {
  if constexpr (std::is_invocable_v<const F&, const X&...>) {
    return f(x...);
  } else {
    constexpr Message m = [] {
      Message text = Message("call: the function does not take (");
      int n = 0;
      auto describe = [&]<class A>(std::type_identity<A>) {
        text << (n++ == 0 ? "" : ", ");
        if constexpr (TypedExpr<A>) text << name(A::element) << " " << A::extents;
        else text << "a model";
      };
      (describe(std::type_identity<X>{}), ...);
      return text << ")";
    }();
    fail<m>();
  }
}

}  // namespace detail

// F is a stateless type whose call operator takes expressions of types E...; the graph has one input for each.
template <class F, class... E>
struct Tracer {
  using result = decltype(F{}(std::declval<const E&>()...));
  using flat_result = decltype(detail::flatten(std::declval<const result&>()));
  using arguments = std::tuple<E...>;

  // depth: how many blocks of a stack are traced at most.
  static constexpr Graph trace(int depth = Graph::all_blocks) {
    Graph g;
    g.depth = depth;
    const std::tuple<E...> inputs = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<E...>{E(build::input(g, E::element, to_shape(g, E::extents), static_cast<std::int64_t>(I)))...};
    }(std::index_sequence_for<E...>{});
    const auto outputs = detail::flatten(std::apply([](const auto&... e) { return F{}(e...); }, inputs));
    std::apply([&](const auto&... o) { (g.outputs.push_back(o.id), ...); }, outputs);
    if constexpr (requires { F::donors; })
      for (int d : F::donors) g.donors.push_back(d);
    return g;
  }
};

// A constexpr function object as a type.
template <auto F>
struct Function {
  template <class... X>
  constexpr auto operator()(const X&... x) const {
    return detail::call(F, x...);
  }
};

}  // namespace tg
