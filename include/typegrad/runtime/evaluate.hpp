// evaluate, grad, value_and_grad on tensors, and tensors made from lazy expressions.
#pragma once

#include "typegrad/autodiff/transform.hpp"
#include "typegrad/runtime/program.hpp"

namespace tg {
namespace detail {

// The tensors and numbers a Lazy refers to, as a flat list of tensors.
template <class Device, class X>
auto leaves_of(const X& x) {
  if constexpr (is_tensor<X>::value) {
    static_assert(std::same_as<typename X::device, Device>, "typegrad: the tensors of a program lie on one device; move them with to<Device>()");
    return std::tuple<X>(x);
  } else if constexpr (requires { x.operands; }) {
    return std::apply([](const auto&... o) { return std::tuple_cat(leaves_of<Device>(o)...); }, x.operands);
  } else {
    return std::tuple<tensor_t<Device, typename X::expr_type>>(tensor_t<Device, typename X::expr_type>::full(x.value, {}));
  }
}

template <class X>
struct leaf_count : std::integral_constant<std::size_t, 1> {};
template <class F, class... Operands>
struct leaf_count<Lazy<F, Operands...>> : std::integral_constant<std::size_t, (leaf_count<Operands>::value + ... + 0)> {};

// The function a Lazy stands for, over the expressions of its leaves.
template <class X>
struct Rebuild {
  template <class Leaf>
  static constexpr auto call(const std::tuple<Leaf>& leaves) {
    return std::get<0>(leaves);
  }
};
template <class F, class... Operands>
struct Rebuild<Lazy<F, Operands...>> {
  template <class Leaves>
  static constexpr auto call(const Leaves& leaves) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return F{}(Rebuild<Operands>::call(part<I, leaf_count<Operands>::value>(leaves))...);
    }(std::index_sequence_for<Operands...>{});
  }
  template <std::size_t I, std::size_t N, class Leaves>
  static constexpr auto part(const Leaves& leaves) {
    constexpr std::array<std::size_t, sizeof...(Operands)> counts{leaf_count<Operands>::value...};
    constexpr std::size_t first = [&] {
      std::size_t n = 0;
      for (std::size_t k = 0; k < I; ++k) n += counts[k];
      return n;
    }();
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return std::tuple(std::get<first + K>(leaves)...); }(std::make_index_sequence<N>{});
  }
};
template <class L>
struct LazyFunction {
  template <class... E>
  constexpr auto operator()(const E&... e) const {
    return Rebuild<L>::call(std::tuple<E...>(e...));
  }
};

// Arguments of evaluate: a Lazy is computed first.
template <class X>
auto as_tensor(const X& x) {
  if constexpr (is_tensor<X>::value) {
    return x;
  } else {
    static_assert(Concrete<X>, "typegrad: arguments of evaluate, grad and value_and_grad are tensors");
    return tensor_t<typename first_device<X>::type, typename X::expr_type>(x);
  }
}

template <class F, class... X>
auto run(const X&... x) {
  using Device = typename first_device<X...>::type;
  static_assert((std::same_as<typename X::device, Device> && ...), "typegrad: the tensors of a program lie on one device; move them with to<Device>()");
  return Program<Device, F, typename X::expr_type...>::instance()(x...);
}

// Gives a flat tuple of tensors the nesting of the function's result.
template <std::size_t First, class R, class Flat>
auto nest(const Flat& flat) {
  if constexpr (TypedExpr<R>) {
    return std::get<First>(flat);
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      constexpr std::array<std::size_t, sizeof...(I)> counts{std::tuple_size_v<decltype(flatten(std::declval<const std::tuple_element_t<I, R>&>()))>...};
      auto before = [&](std::size_t k) {
        std::size_t n = 0;
        for (std::size_t j = 0; j < k; ++j) n += counts[j];
        return n;
      };
      (void)before;
      return std::tuple(nest<First + [&] {
        std::size_t n = 0;
        for (std::size_t j = 0; j < I; ++j) n += counts[j];
        return n;
      }(), std::tuple_element_t<I, R>>(flat)...);
    }(std::make_index_sequence<std::tuple_size_v<R>>{});
  }
}

}  // namespace detail

// Runs the function f on tensors: evaluate<f>(a, b). Whatever f returns (an expression, or a tuple of them) comes back as
// tensors. f is traced and compiled with the program; a run launches its kernels.
template <auto F, class... X>
auto evaluate(const X&... x) {
  return [](const auto&... t) {
    const auto flat = detail::run<Function<F>>(t...);
    return detail::nest<0, typename Tracer<Function<F>, typename std::remove_cvref_t<decltype(t)>::expr_type...>::result>(flat);
  }(detail::as_tensor(x)...);
}

// The gradient of the scalar f(x...) in its first argument, or in those named: grad<f, wrt<0, 2>>(a, b, c) gives a tuple.
template <auto F, auto Which = wrt<0>, class... X>
auto grad(const X&... x) {
  return evaluate<GradientOf<Function<F>, std::remove_cvref_t<decltype(Which)>>{}>(x...);
}

// The value and the gradient of the scalar f(x...), as a pair: auto [v, g] = value_and_grad<f>(a, b). With several
// arguments, value_and_grad<f, wrt<0, 1>>, the gradients come as a tuple.
template <auto F, auto Which = wrt<0>, class... X>
auto value_and_grad(const X&... x) {
  return evaluate<ValueAndGradient<Function<F>, std::remove_cvref_t<decltype(Which)>>{}>(x...);
}

template <class Device, class T, auto... Ds>
template <class F, class... Operands>
Tensor<Device, T, Ds...>::Tensor(const Lazy<F, Operands...>& lazy)
    : Tensor([&] {
        using L = Lazy<F, Operands...>;
        static_assert(std::same_as<typename L::expr_type, expr_type>, "typegrad: the expression has another dtype or shape than the tensor");
        const auto leaves = detail::leaves_of<Device>(lazy);
        return std::get<0>(std::apply([](const auto&... leaf) { return detail::run<detail::LazyFunction<L>>(leaf...); }, leaves));
      }()) {}

namespace detail {
template <class Device, class E>
struct deduce;
template <class Device, class T, auto... Ds>
struct deduce<Device, Expr<T, Ds...>> {
  using device = Device;
};
}  // namespace detail

// The value of a lazy expression, as a tensor whose type follows from it.
template <class F, class... Operands>
auto materialize(const Lazy<F, Operands...>& lazy) {
  using L = Lazy<F, Operands...>;
  return tensor_t<typename detail::first_device<L>::type, typename L::expr_type>(lazy);
}

}  // namespace tg
