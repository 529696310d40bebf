// Convolution layers with PyTorch's parameters and initial values.
#pragma once

#include "typegrad/nn/linear.hpp"
#include "typegrad/ops/pooling.hpp"

namespace tg::nn {

// How a convolution moves: Conv2d<16, 32, 3, ConvOptions{.stride = 2, .padding = 1, .bias = false}>. Padding may be
// tg::same_padding.
struct ConvOptions {
  int stride = 1;
  int padding = 0;
  int dilation = 1;
  int groups = 1;
  bool bias = true;
};

namespace detail {
// A bias of one number for each channel, as a column that broadcasts over so many spatial axes.
template <int Spatial, class B>
constexpr auto as_channels(const B& bias) {
  constexpr int channels = static_cast<int>(B::extents[0].coefficient);
  if constexpr (Spatial == 1) return reshape<channels, 1>(bias);
  else return reshape<channels, 1, 1>(bias);
}
}  // namespace detail

// x [n, In, length] -> [n, Out, positions]. weight: [Out, In / groups, Window], bias: [Out].
template <int In, int Out, int Window, ConvOptions O = ConvOptions{}, class T = float>
struct Conv1d {
  using bias_type = detail::optional<O.bias, Param<T, Out>>;
  Param<T, Out, In / O.groups, Window> weight{init::fan_in_uniform(In / O.groups * Window)};
  bias_type bias = detail::initial<bias_type>(init::fan_in_uniform(In / O.groups * Window));
  constexpr auto operator()(auto x) const {
    const auto y = conv1d<O.stride, O.padding, O.dilation, O.groups>(x, weight);
    if constexpr (O.bias) return y + detail::as_channels<1>(bias);
    else return y;
  }
  static constexpr auto members = tg::members("weight", &Conv1d::weight, "bias", &Conv1d::bias);
};

// x [n, In, height, width] -> [n, Out, rows, columns] with a square window. weight: [Out, In / groups, Window, Window],
// bias: [Out].
template <int In, int Out, int Window, ConvOptions O = ConvOptions{}, class T = float>
struct Conv2d {
  using bias_type = detail::optional<O.bias, Param<T, Out>>;
  Param<T, Out, In / O.groups, Window, Window> weight{init::fan_in_uniform(In / O.groups * Window * Window)};
  bias_type bias = detail::initial<bias_type>(init::fan_in_uniform(In / O.groups * Window * Window));
  constexpr auto operator()(auto x) const {
    const auto y = conv2d<O.stride, O.padding, O.dilation, O.groups>(x, weight);
    if constexpr (O.bias) return y + detail::as_channels<2>(bias);
    else return y;
  }
  static constexpr auto members = tg::members("weight", &Conv2d::weight, "bias", &Conv2d::bias);
};

// The transposed convolution, which enlarges: conv_transpose2d with a square window. weight: [In, Out, Window, Window],
// bias: [Out]. PyTorch takes the fan-in of the initial values from the second axis, and so does this.
template <int In, int Out, int Window, int Stride = 1, int Padding = 0, int OutputPadding = 0, class T = float>
struct ConvTranspose2d {
  Param<T, In, Out, Window, Window> weight{init::fan_in_uniform(Out * Window * Window)};
  Param<T, Out> bias{init::fan_in_uniform(Out * Window * Window)};
  constexpr auto operator()(auto x) const { return conv_transpose2d<Stride, Padding, OutputPadding>(x, weight) + detail::as_channels<2>(bias); }
  static constexpr auto members = tg::members("weight", &ConvTranspose2d::weight, "bias", &ConvTranspose2d::bias);
};

}  // namespace tg::nn
