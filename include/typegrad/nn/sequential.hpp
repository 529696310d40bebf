// Layers one after the other, residual connections, and functions as layers.
#pragma once

#include <tuple>

#include "typegrad/nn/module.hpp"
#include "typegrad/ops/activation.hpp"
#include "typegrad/ops/pooling.hpp"

namespace tg::nn {

// The first layer's result goes into the second, and so on. Parameters have the paths "0.weight", "1.bias", ...
template <class... Layers>
struct Sequential {
  std::tuple<Layers...> layers;
  constexpr Sequential() = default;
  constexpr explicit Sequential(const Layers&... l)
    requires(sizeof...(Layers) > 0)
      : layers(l...) {}

  constexpr auto operator()(auto x) const { return run<0>(x); }
  static constexpr auto members = tg::members("", &Sequential::layers);

 private:
  template <std::size_t I, class X>
  constexpr auto run(const X& x) const {
    if constexpr (I == sizeof...(Layers)) return x;
    else return run<I + 1>(std::get<I>(layers)(x));
  }
};

// x + body(x). The paths are those of the body.
template <class Body>
struct Residual {
  Body body;
  constexpr auto operator()(auto x) const { return x + body(x); }
  static constexpr auto members = tg::members("", &Residual::body);
};
template <class Body>
Residual(Body) -> Residual<Body>;

struct Relu {
  constexpr auto operator()(auto x) const { return relu(x); }
};
struct Gelu {
  constexpr auto operator()(auto x) const { return gelu(x); }
};
struct Silu {
  constexpr auto operator()(auto x) const { return silu(x); }
};
struct Tanh {
  constexpr auto operator()(auto x) const { return tanh(x); }
};
struct Sigmoid {
  constexpr auto operator()(auto x) const { return sigmoid(x); }
};
template <int Size, int Stride = Size, int Padding = 0>
struct MaxPool2d {
  constexpr auto operator()(auto x) const { return max_pool2d<Size, Stride, Padding>(x); }
};
template <int Size, int Stride = Size, int Padding = 0>
struct AvgPool2d {
  constexpr auto operator()(auto x) const { return avg_pool2d<Size, Stride, Padding>(x); }
};
struct GlobalAvgPool2d {
  constexpr auto operator()(auto x) const { return global_avg_pool2d(x); }
};
// All axes but the first as one.
struct Flatten {
  template <class X>
  constexpr auto operator()(X x) const {
    constexpr auto extents = [] {
      Extents e;
      e.push(X::extents[0]);
      Extent n = 1;
      for (int i = 1; i < X::extents.rank; ++i) n = n * X::extents[i];
      e.push(n);
      return e;
    };
    return tg::detail::expr_of<typename X::value_type, decltype(extents)>(build::reshape(x, to_shape(*x.graph, extents())));
  }
};

}  // namespace tg::nn
