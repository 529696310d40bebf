// Lazy<F, operands...>: an op on concrete tensors, kept as a value until it is assigned to a tensor.
#pragma once

#include <tuple>

#include "typegrad/expr/expr.hpp"

namespace tg {

// A tensor, or an expression over tensors: it names the Expr type it has while being traced.
template <class X>
concept Concrete = requires { typename std::remove_cvref_t<X>::expr_type; } && !Traced<X>;

template <class X>
concept Number = std::is_arithmetic_v<std::remove_cvref_t<X>>;

template <class X>
concept Operand = Traced<X> || Concrete<X>;

// A number that meets a tensor in an expression: an input of rank 0, so that its value may change between runs.
template <class T>
struct ScalarOperand {
  using expr_type = Expr<T>;
  T value;
};

// F is a stateless function over expressions, Operands are tensors, other Lazy expressions and numbers, all held by
// value (a tensor is a shared handle), so a Lazy outlives the statement that made it.
template <class F, class... Operands>
struct Lazy {
  using function = F;
  using expr_type = expr_t<decltype(F{}(std::declval<typename Operands::expr_type>()...))>;
  std::tuple<Operands...> operands;
};

namespace detail {

template <class Found, class... X>
struct number_type {
  using type = Found;
};
template <class Found, class First, class... Rest>
struct number_type<Found, First, Rest...> {
  static consteval auto pick() {
    if constexpr (Concrete<First>) {
      using T = typename std::remove_cvref_t<First>::expr_type::value_type;
      if constexpr (!std::same_as<T, bool>) return std::type_identity<T>{};
      else return number_type<Found, Rest...>{};
    } else {
      return number_type<Found, Rest...>{};
    }
  }
  using type = typename decltype(pick())::type;
};

template <class T, class X>
constexpr auto lazy_operand(const X& x) {
  static_assert(!(Number<X> && std::is_floating_point_v<X> && std::is_integral_v<T>),
                "typegrad: a floating-point number meets a tensor of an integer dtype; convert the tensor with tg::cast");
  if constexpr (Number<X>) return ScalarOperand<T>{static_cast<T>(static_cast<compute_t<T>>(x))};
  else return x;
}

}  // namespace detail

// The one gate of every op: on traced values F runs now; on concrete ones it becomes a Lazy.
template <class F, class... X>
constexpr auto apply(const X&... x) {
  if constexpr ((Concrete<X> || ...)) {
    static_assert(!(Traced<X> || ...), "typegrad: a traced function cannot use a tensor; pass it as an argument");
    using T = typename detail::number_type<float, X...>::type;  // numbers take the type of the tensor they meet
    return Lazy<F, decltype(detail::lazy_operand<T>(x))...>{{detail::lazy_operand<T>(x)...}};
  } else {
    return F{}(x...);
  }
}

}  // namespace tg
