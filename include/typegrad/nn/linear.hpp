// Layers made of products: Linear, Embedding.
#pragma once

#include "typegrad/nn/module.hpp"
#include "typegrad/ops/contraction.hpp"
#include "typegrad/ops/gather.hpp"

namespace tg::nn {

namespace detail {
struct Absent {};
// A parameter that a layer may go without.
template <bool Present, class P>
using optional = std::conditional_t<Present, P, Absent>;
template <class P>
constexpr P initial(Init i) {
  if constexpr (std::same_as<P, Absent>) return {};
  else return P(i);
}
}  // namespace detail

// y = x Wᵀ + b over the last axis. weight: [Out, In], bias: [Out], as in PyTorch, whose initial values it uses.
template <int In, int Out, class T = float, bool Bias = true>
struct Linear {
  using bias_type = detail::optional<Bias, Param<T, Out>>;
  Param<T, Out, In> weight{init::fan_in_uniform(In)};
  bias_type bias = detail::initial<bias_type>(init::fan_in_uniform(In));
  constexpr auto operator()(auto x) const {
    if constexpr (Bias) return matmul(x, transpose(weight)) + bias;
    else return matmul(x, transpose(weight));
  }
  static constexpr auto members = tg::members("weight", &Linear::weight, "bias", &Linear::bias);
};

// Rows of a table of Count vectors: ids of any integer dtype and shape [...] give [..., Size]. Initial values are standard
// normal, as in PyTorch. An id out of range is an Error.
template <int Count, int Size, class T = float>
struct Embedding {
  Param<T, Count, Size> weight{init::normal(1.0)};
  constexpr auto operator()(auto ids) const { return embedding(weight, ids); }
  static constexpr auto members = tg::members("weight", &Embedding::weight);
};

}  // namespace tg::nn
