// Losses and metrics.
#pragma once

#include "typegrad/ops/contraction.hpp"
#include "typegrad/ops/reduction.hpp"

namespace tg {
namespace detail {

// The logit at each label, picked by comparing with a ramp, so that a loss stays one pass over each row.
template <class X, class L>
constexpr auto pick_label(const X& logits, const L& label) {
  return sum<-1>(where(iota_like<typename L::value_type, -1>(logits) == label, logits, 0.0));
}

template <class X, class Y>
consteval bool labels_fit() {
  const Extents x = X::extents, y = Y::extents;
  if (x.rank != y.rank + 1 || !x[x.rank - 1].is_static() || !is_integer(Y::element)) return false;
  for (int i = 0; i < y.rank; ++i)
    if (!(x[i] == y[i])) return false;
  return true;
}

template <std::int64_t Ignored>
struct CrossEntropy {
  template <class X, class Y, class S>
  constexpr auto operator()(const X& logits, const Y& labels, const S& smoothing) const {
    return compute(logits, labels, smoothing, nullptr);
  }
  template <class X, class Y, class S, class W>
  constexpr auto operator()(const X& logits, const Y& labels, const S& smoothing, const W& weights) const {
    return compute(logits, labels, smoothing, weights);
  }

 private:
  template <class X, class Y, class S, class W>
  static constexpr auto compute(const X& logits, const Y& labels, const S& smoothing, const W& weights) {
    constexpr bool weighted = TypedExpr<W>;
    if constexpr (is_floating(Y::element) && !weighted && Ignored == none) {
      return mean(sum<-1>(labels * (logsumexp<-1>(logits, keepdims) - logits)));
    } else if constexpr (!labels_fit<X, Y>()) {
      constexpr Message m = Message("cross_entropy: logits ") << X::extents << " need integer labels of their leading shape, got "
                                                              << name(Y::element) << " " << Y::extents;
      fail<m, expr_t<X>, expr_t<Y>>();
    } else {
      constexpr int classes = static_cast<int>(X::extents[X::extents.rank - 1].coefficient);
      using T = typename X::value_type;
      const auto counted = [&] {
        if constexpr (Ignored == none) return labels == labels;
        else return labels != Ignored;
      }();
      const auto known = [&] {
        if constexpr (Ignored == none) return labels;
        else return where(counted, labels, 0);
      }();
      const auto label = unsqueeze<-1>(check_index<classes>(known));
      const auto total = logsumexp<-1>(logits);
      const auto at_label = total - pick_label(logits, label);
      const auto losses = [&] {
        if constexpr (Number<S>) {
          if (smoothing == S{0}) return at_label;
        }
        return at_label * (1.0 - smoothing) + (total - mean<-1>(logits)) * smoothing;
      }();
      if constexpr (Ignored == none && !weighted) {
        return mean(losses);
      } else {
        // Every row counts 1 or its class's weight; the mean over none is 0.
        const auto share = [&] {
          if constexpr (weighted) return where(counted, pick_label(broadcast_to_rows(weights, logits), label), 0.0);
          else return cast<T>(counted);
        }();
        const auto divisor = sum(share);
        return sum(where(counted, losses * share, 0.0)) / where(divisor == 0.0, 1.0, divisor);
      }
    }
  }
  template <class W, class X>
  static constexpr auto broadcast_to_rows(const W& weights, const X& logits) {
    static_assert(W::extents.rank == 1, "typegrad: cross_entropy takes one weight for each class");
    return weights + full_like(logits, 0.0);
  }

 public:
  static constexpr std::int64_t none = (std::numeric_limits<std::int64_t>::min)();
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
struct Huber {
  constexpr auto operator()(const auto& a, const auto& b, const auto& delta) const {
    const auto d = abs(a - b);
    return mean(where(d <= delta, d * d * 0.5, (d - delta * 0.5) * delta));
  }
};
struct SmoothL1 {
  constexpr auto operator()(const auto& a, const auto& b, const auto& beta) const {
    const auto d = abs(a - b);
    return mean(where(d < beta, d * d * 0.5 / beta, d - beta * 0.5));
  }
};
struct NllLoss {
  template <class X, class Y>
  constexpr auto operator()(const X& log_probabilities, const Y& labels) const {
    if constexpr (!labels_fit<X, Y>()) {
      constexpr Message m = Message("nll_loss: log-probabilities ") << X::extents << " need integer labels of their leading shape, got "
                                                                    << name(Y::element) << " " << Y::extents;
      fail<m, expr_t<X>, expr_t<Y>>();
    } else {
      constexpr int classes = static_cast<int>(X::extents[X::extents.rank - 1].coefficient);
      return -mean(pick_label(log_probabilities, unsqueeze<-1>(check_index<classes>(labels))));
    }
  }
};
struct KlDiv {
  constexpr auto operator()(const auto& input, const auto& target) const {
    return mean(sum<-1>(where(target == 0.0, 0.0, target * (log(target) - input))));
  }
};
struct CosineSimilarity {
  constexpr auto operator()(const auto& a, const auto& b, const auto& eps) const {
    return sum<-1>(a * b) / maximum(norm2<-1>(a) * norm2<-1>(b), eps);
  }
};
struct TripletMargin {
  constexpr auto operator()(const auto& anchor, const auto& positive, const auto& negative, const auto& margin) const {
    return mean(relu(norm2<-1>(anchor - positive) - norm2<-1>(anchor - negative) + margin));
  }
};
// Row i of a belongs to row i of b and to no other.
struct InfoNce {
  template <class A, class B>
  constexpr auto operator()(const A& a, const B& b, const auto& temperature) const {
    static_assert(A::extents.rank == 2 && B::extents.rank == 2, "typegrad: info_nce compares the rows of two matrices");
    const auto unit = [](const auto& x) { return x / maximum(norm2<-1>(x, keepdims), 1e-12); };
    const auto scores = matmul(unit(a), transpose(unit(b))) / temperature;
    const auto own = sum<-1>(where(iota_like<std::int64_t, 0>(scores) == iota_like<std::int64_t, 1>(scores), scores, 0.0));
    return mean(logsumexp<-1>(scores) - own);
  }
};
struct BceWithLogits {
  constexpr auto operator()(const auto& x, const auto& y) const { return mean(softplus(x) - x * y); }
};

}  // namespace detail

// Mean over all rows of -log softmax(logits)[label]. logits: [..., classes] floating, labels: [...] integer; a label
// outside [0, classes) is a tg::Error when the program runs. Rows whose label is IgnoreIndex do not count; if none is left
// the loss is 0 with zero gradient (PyTorch gives NaN). label_smoothing s mixes the label with all classes as (1 - s) and
// s / classes (Szegedy et al. 2016). Floating labels of the logits' shape are probabilities of the classes.
template <std::int64_t IgnoreIndex = detail::CrossEntropy<0>::none, Operand X, Operand Y, class S = double>
constexpr auto cross_entropy(const X& logits, const Y& labels, const S& label_smoothing = 0.0) {
  return apply<detail::CrossEntropy<IgnoreIndex>>(logits, labels, label_smoothing);
}
// The same with a weight for each class: the mean is sum(weight[label] · loss) / sum(weight[label]), as in PyTorch.
template <std::int64_t IgnoreIndex = detail::CrossEntropy<0>::none, Operand X, Operand Y, Operand W, class S = double>
constexpr auto weighted_cross_entropy(const X& logits, const Y& labels, const W& weights, const S& label_smoothing = 0.0) {
  return apply<detail::CrossEntropy<IgnoreIndex>>(logits, labels, label_smoothing, weights);
}
// The share of rows whose largest logit is at the label, as float.
template <Operand X, Operand Y>
constexpr auto accuracy(const X& logits, const Y& labels) { return apply<detail::Accuracy>(logits, labels); }
// mean((a - b)²).
template <Operand A, Operand B>
constexpr auto mse_loss(const A& a, const B& b) { return apply<detail::MseLoss>(a, b); }
// mean(|a - b|).
template <Operand A, Operand B>
constexpr auto l1_loss(const A& a, const B& b) { return apply<detail::L1Loss>(a, b); }
// Mean of d²/2 where d = |a - b| <= delta and of delta · (d - delta/2) beyond (Huber 1964).
template <Operand A, Operand B, class D = double>
constexpr auto huber_loss(const A& a, const B& b, const D& delta = 1.0) { return apply<detail::Huber>(a, b, delta); }
// Mean of d²/(2 beta) where d = |a - b| < beta and of d - beta/2 beyond.
template <Operand A, Operand B, class D = double>
constexpr auto smooth_l1_loss(const A& a, const B& b, const D& beta = 1.0) { return apply<detail::SmoothL1>(a, b, beta); }
// -mean of the log-probability at each label; shapes and errors as in cross_entropy.
template <Operand X, Operand Y>
constexpr auto nll_loss(const X& log_probabilities, const Y& labels) { return apply<detail::NllLoss>(log_probabilities, labels); }
// Kullback-Leibler divergence of log-probabilities `input` from probabilities `target` along the last axis, mean over the
// rows (torch's batchmean); a target of 0 contributes 0.
template <Operand X, Operand Y>
constexpr auto kl_div(const X& input, const Y& target) { return apply<detail::KlDiv>(input, target); }
// a·b / max(|a| |b|, eps) along the last axis; gradient 0 where a vector is zero.
template <Operand A, Operand B, class E = double>
constexpr auto cosine_similarity(const A& a, const B& b, const E& eps = 1e-8) { return apply<detail::CosineSimilarity>(a, b, eps); }
// mean(max(|anchor - positive| - |anchor - negative| + margin, 0)), distances along the last axis.
template <Operand A, Operand P, Operand N, class M = double>
constexpr auto triplet_margin_loss(const A& anchor, const P& positive, const N& negative, const M& margin = 1.0) {
  return apply<detail::TripletMargin>(anchor, positive, negative, margin);
}
// InfoNCE (van den Oord et al. 2018): rows of a and b with equal index belong together; cross-entropy over the cosine
// similarities divided by the temperature. a, b: [n, features].
template <Operand A, Operand B, class T = double>
constexpr auto info_nce(const A& a, const B& b, const T& temperature = 0.07) { return apply<detail::InfoNce>(a, b, temperature); }
// Binary cross-entropy of targets y in [0, 1] from logits x, without overflow: mean(softplus(x) - x·y).
template <Operand X, Operand Y>
constexpr auto bce_with_logits(const X& x, const Y& y) { return apply<detail::BceWithLogits>(x, y); }

}  // namespace tg
