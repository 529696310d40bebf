// Losses and metrics.
#pragma once

#include "typegrad/ops/contraction.hpp"
#include "typegrad/ops/reduction.hpp"

namespace tg {
namespace detail {

struct CrossEntropy {
  template <class X, class Y>
  constexpr auto operator()(const X& logits, const Y& labels) const {
    constexpr bool fits = [] {
      const Extents x = X::extents, y = Y::extents;
      if (x.rank != y.rank + 1 || !x[x.rank - 1].is_static() || !is_integer(Y::element)) return false;
      for (int i = 0; i < y.rank; ++i)
        if (!(x[i] == y[i])) return false;
      return true;
    }();
    if constexpr (!fits) {
      constexpr Message m = Message("cross_entropy: logits ") << X::extents << " need integer labels of their leading shape, got "
                                                              << name(Y::element) << " " << Y::extents;
      fail<m, expr_t<X>, expr_t<Y>>();
    } else {
      // The label's logit is picked by comparing with a ramp, so that the loss stays one pass over each row.
      constexpr int classes = static_cast<int>(X::extents[X::extents.rank - 1].coefficient);
      using L = typename Y::value_type;
      const auto label = unsqueeze<-1>(check_index<classes>(labels));
      const auto picked = where(iota_like<L, -1>(logits) == label, logits, 0.0);
      return mean(logsumexp<-1>(logits) - sum<-1>(picked));
    }
  }
};

struct Accuracy {
  template <class X, class Y>
  constexpr auto operator()(const X& logits, const Y& labels) const {
    return mean(cast<float>(argmax<-1>(logits) == cast<std::int64_t>(labels)));
  }
};

struct MseLoss {
  constexpr auto operator()(const auto& a, const auto& b) const { return mean(square(a - b)); }
};
struct L1Loss {
  constexpr auto operator()(const auto& a, const auto& b) const { return mean(abs(a - b)); }
};
struct BceWithLogits {
  constexpr auto operator()(const auto& x, const auto& y) const { return mean(softplus(x) - x * y); }
};

}  // namespace detail

// Mean over all rows of -log softmax(logits)[label]. logits: [..., classes] floating, labels: [...] integer; a label
// outside [0, classes) is a tg::Error when the program runs.
template <Operand X, Operand Y>
constexpr auto cross_entropy(const X& logits, const Y& labels) { return apply<detail::CrossEntropy>(logits, labels); }
// The share of rows whose largest logit is at the label, as float.
template <Operand X, Operand Y>
constexpr auto accuracy(const X& logits, const Y& labels) { return apply<detail::Accuracy>(logits, labels); }
// mean((a - b)²).
template <Operand A, Operand B>
constexpr auto mse_loss(const A& a, const B& b) { return apply<detail::MseLoss>(a, b); }
// mean(|a - b|).
template <Operand A, Operand B>
constexpr auto l1_loss(const A& a, const B& b) { return apply<detail::L1Loss>(a, b); }
// Binary cross-entropy of targets y in [0, 1] from logits x, without overflow: mean(softplus(x) - x·y).
template <Operand X, Operand Y>
constexpr auto bce_with_logits(const X& x, const Y& y) { return apply<detail::BceWithLogits>(x, y); }

}  // namespace tg
