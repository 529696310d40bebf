// Dropout as a layer.
#pragma once

#include "typegrad/nn/training.hpp"

namespace tg::nn {

// In a training step each element is set to 0 with probability rate and divided by 1 - rate otherwise, anew at each call and
// step; elsewhere x passes unchanged. The choice is a function of the trainer's seed, and is computed again rather than
// stored.
struct Dropout {
  double rate = 0.5;
  template <class X>
  constexpr auto operator()(X x) const {
    using R = expr_t<X>;
    if (rate < 0.0 || rate >= 1.0) throw "typegrad: Dropout: the rate is at least 0 and below 1";
    return rate > 0.0 && is_training(x) ? R(dropout(x, next_key(x), rate)) : R(x);
  }
};

}  // namespace tg::nn
