// Layers made of contractions.
#pragma once

#include "typegrad/nn/module.hpp"
#include "typegrad/ops/contraction.hpp"

namespace tg::nn {

// y = x Wᵀ + b over the last axis. weight: [Out, In], bias: [Out], as in PyTorch, whose initial values it uses.
template <int In, int Out, class T = float>
struct Linear {
  Param<T, Out, In> weight{init::fan_in_uniform(In)};
  Param<T, Out> bias{init::fan_in_uniform(In)};
  constexpr auto operator()(auto x) const { return matmul(x, transpose(weight)) + bias; }
  static constexpr auto members = tg::members("weight", &Linear::weight, "bias", &Linear::bias);
};

}  // namespace tg::nn
