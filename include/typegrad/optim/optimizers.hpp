// SGD, Adam, AdamW, RMSprop, Adagrad and Lion as functions of flat buffers; each becomes one fused kernel.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "typegrad/ops/loss.hpp"

namespace tg::optim {

// What an update returns: the new parameters and the new state.
template <class P, std::size_t S>
struct Updated {
  P parameters;
  std::array<P, S> state;
};

// An optimizer has
//   states                  the number of buffers of the parameters' size it keeps, at first zero
//   hyperparameters(step)   numbers that may change from step to step (the first step is 1), computed in double
//   update(p, g, state, h)  the traced update; h(i) is the i-th of those numbers
// Each element is updated from its own past alone. Methods that need the matrices behind the flat buffer (Adafactor's row
// and column statistics) are none of these.

// Stochastic gradient descent: d = g + weight_decay p, b = momentum b + d, p -= learning_rate (d + momentum b if
// nesterov, else b). As torch.optim.SGD without dampening.
struct Sgd {
  float learning_rate = 0.01f;
  float momentum = 0.0f;
  float weight_decay = 0.0f;
  bool nesterov = false;

  static constexpr std::size_t states = 1;
  std::array<float, 4> hyperparameters(std::int64_t) const { return {learning_rate, momentum, weight_decay, nesterov ? 1.0f : 0.0f}; }
  template <class P, class H>
  static constexpr auto update(const P& p, const P& g, const std::array<P, 1>& state, H h) {
    const auto d = g + h(2) * p;
    const auto b = h(1) * state[0] + d;
    const auto direction = where(h(3) != 0.0, d + h(1) * b, b);
    return Updated<P, 1>{p - h(0) * direction, {b}};
  }
};

namespace detail {
// The common part of Adam and AdamW: Kingma and Ba 2015, algorithm 1, with the bias corrections computed on the host.
template <class P, class H>
constexpr auto adam_moments(const P& p, const P& g, const std::array<P, 2>& state, H h) {
  const auto m = h(2) * state[0] + h(3) * g;
  const auto v = h(4) * state[1] + h(5) * (g * g);
  return Updated<P, 2>{p - h(0) * m / (sqrt(v) * h(1) + h(6)), {m, v}};
}
inline std::array<float, 8> adam_numbers(double rate, double beta1, double beta2, double epsilon, double last, std::int64_t step) {
  const double t = static_cast<double>(step);
  const double first = 1.0 - std::pow(beta1, t), second = 1.0 - std::pow(beta2, t);
  return {static_cast<float>(rate / first), static_cast<float>(1.0 / std::sqrt(second)), static_cast<float>(beta1), static_cast<float>(1.0 - beta1),
          static_cast<float>(beta2), static_cast<float>(1.0 - beta2), static_cast<float>(epsilon), static_cast<float>(last)};
}
}  // namespace detail

// Adam (Kingma and Ba 2015); weight decay is added to the gradient, as in torch.optim.Adam.
struct Adam {
  float learning_rate = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;

  static constexpr std::size_t states = 2;
  std::array<float, 8> hyperparameters(std::int64_t step) const {
    return detail::adam_numbers(learning_rate, beta1, beta2, epsilon, weight_decay, step);
  }
  template <class P, class H>
  static constexpr auto update(const P& p, const P& g, const std::array<P, 2>& state, H h) {
    return detail::adam_moments(p, g + h(7) * p, state, h);
  }
};

// AdamW (Loshchilov and Hutter 2019): the decay acts on the parameters, not on the gradient.
struct AdamW {
  float learning_rate = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0.01f;

  static constexpr std::size_t states = 2;
  std::array<float, 8> hyperparameters(std::int64_t step) const {
    return detail::adam_numbers(learning_rate, beta1, beta2, epsilon, 1.0 - static_cast<double>(learning_rate) * static_cast<double>(weight_decay), step);
  }
  template <class P, class H>
  static constexpr auto update(const P& p, const P& g, const std::array<P, 2>& state, H h) {
    return detail::adam_moments(p * h(7), g, state, h);
  }
};

// RMSprop (Hinton 2012), as torch.optim.RMSprop without centering: v = alpha v + (1 - alpha) g²,
// b = momentum b + g / (sqrt(v) + epsilon), p -= learning_rate b. Weight decay is added to the gradient.
struct RmsProp {
  float learning_rate = 0.01f;
  float alpha = 0.99f;
  float epsilon = 1e-8f;
  float momentum = 0.0f;
  float weight_decay = 0.0f;

  static constexpr std::size_t states = 2;
  std::array<float, 6> hyperparameters(std::int64_t) const {
    return {learning_rate, alpha, static_cast<float>(1.0 - static_cast<double>(alpha)), epsilon, momentum, weight_decay};
  }
  template <class P, class H>
  static constexpr auto update(const P& p, const P& g, const std::array<P, 2>& state, H h) {
    const auto d = g + h(5) * p;
    const auto v = h(1) * state[0] + h(2) * (d * d);
    const auto b = h(4) * state[1] + d / (sqrt(v) + h(3));
    return Updated<P, 2>{p - h(0) * b, {v, b}};
  }
};

// Adagrad (Duchi, Hazan and Singer 2011), as torch.optim.Adagrad: s = s + g²,
// p -= learning_rate / (1 + (step - 1) learning_rate_decay) g / (sqrt(s + initial_accumulator) + epsilon).
// Weight decay is added to the gradient.
struct Adagrad {
  float learning_rate = 0.01f;
  float learning_rate_decay = 0.0f;
  float initial_accumulator = 0.0f;
  float epsilon = 1e-10f;
  float weight_decay = 0.0f;

  static constexpr std::size_t states = 1;
  std::array<float, 4> hyperparameters(std::int64_t step) const {
    const double rate = static_cast<double>(learning_rate) / (1.0 + static_cast<double>(step - 1) * static_cast<double>(learning_rate_decay));
    return {static_cast<float>(rate), initial_accumulator, epsilon, weight_decay};
  }
  template <class P, class H>
  static constexpr auto update(const P& p, const P& g, const std::array<P, 1>& state, H h) {
    const auto d = g + h(3) * p;
    const auto s = state[0] + d * d;  // the initial value is added where it is used, because states begin at zero
    return Updated<P, 1>{p - h(0) * d / (sqrt(s + h(1)) + h(2)), {s}};
  }
};

// Lion (Chen et al. 2023, algorithm 2): c = beta1 m + (1 - beta1) g, p -= learning_rate (sign(c) + weight_decay p),
// m = beta2 m + (1 - beta2) g. Every element moves by the learning rate, so that rates are 3 to 10 times smaller than
// AdamW's and weight decays as many times larger.
struct Lion {
  float learning_rate = 1e-4f;
  float beta1 = 0.9f;
  float beta2 = 0.99f;
  float weight_decay = 0.0f;

  static constexpr std::size_t states = 1;
  std::array<float, 6> hyperparameters(std::int64_t) const {
    return {learning_rate, beta1, static_cast<float>(1.0 - static_cast<double>(beta1)), beta2, static_cast<float>(1.0 - static_cast<double>(beta2)),
            static_cast<float>(1.0 - static_cast<double>(learning_rate) * static_cast<double>(weight_decay))};
  }
  template <class P, class H>
  static constexpr auto update(const P& p, const P& g, const std::array<P, 1>& state, H h) {
    const auto direction = sign(h(1) * state[0] + h(2) * g);
    return Updated<P, 1>{p * h(5) - h(0) * direction, {h(3) * state[0] + h(4) * g}};
  }
};

}  // namespace tg::optim
