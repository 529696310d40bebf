// What layers see of the step they are traced in: whether it trains, random keys, and new values for buffers.
#pragma once

#include "typegrad/nn/module.hpp"
#include "typegrad/ops/random.hpp"

namespace tg {

// Whether x is traced in a training step (tg::Trainer::step). Everywhere else layers infer: dropout passes its input on,
// batch norm uses its running statistics.
constexpr bool is_training(Value x) { return x.graph->training.active; }

// A random key of this training step (an int64 scalar): another one at each call, each step and for each seed of the
// trainer. Only while training.
constexpr Expr<std::int64_t> next_key(Value x) {
  Training& t = x.graph->training;
  if (t.key < 0) throw "typegrad: next_key gives keys only while training; ask is_training first";
  const Value key{x.graph, t.key};
  // The number of the draw is data, not a constant: layers that draw share their kernels.
  const Value draw = build::size(*x.graph, DType::i64, Shape{Dim(t.draws++)});
  return Expr<std::int64_t>(build::binary(Op::RandomBits, key, draw));
}

// The value that a buffer has at this place of the step: that of the last update before it.
template <class T, auto... Ds>
constexpr Expr<T, Ds...> latest(const Buffer<T, Ds...>& b) {
  int id = b.id;
  for (const auto& [buffer, value] : b.graph->training.updates)
    if (buffer == b.id) id = value;
  return Expr<T, Ds...>(Value{b.graph, id});
}

// Gives the buffer this value after the step. Without effect except while training; no gradient flows through it.
template <class T, auto... Ds>
constexpr void update(const Buffer<T, Ds...>& b, const Expr<T, Ds...>& value) {
  if (!is_training(b)) return;
  b.graph->training.updates.push_back({b.id, stop_gradient(value).id});
}

}  // namespace tg
