// Recurrent cells and their run over a sequence.
#pragma once

#include <tuple>

#include "typegrad/nn/linear.hpp"
#include "typegrad/ops/rearrange.hpp"
#include "typegrad/ops/transcendental.hpp"

namespace tg::nn {
namespace detail {

// x Wᵀ + b with the weights of a cell.
constexpr auto affine(const auto& x, const auto& weight, const auto& bias) { return matmul(x, transpose(weight)) + bias; }

// Zeros of x's leading axes and Hidden numbers, for x [..., features].
template <int Hidden, class X>
constexpr auto zero_state(const X& x) {
  constexpr auto extents = [] {
    Extents e = X::extents;
    e[e.rank - 1] = Hidden;
    return e;
  };
  return tg::detail::expr_of<typename X::value_type, decltype(extents)>(build::constant(*x.graph, X::element, to_shape(*x.graph, extents()), 0.0));
}

}  // namespace detail

// A cell has
//   cell(x, state)      the next state, from x [batch, In] of one time; its output is the state, or the state's first part
//   cell.initial(x)     the state before the first time, zeros
// and may have, so that the products with the inputs of all times are one
//   cell.project(x)     what the cell computes from x [..., In] alone
//   cell.advance(p, s)  the next state from that
// Parameters, their names, their initial values (uniform within 1 / sqrt(Hidden)) and the order of gates are PyTorch's.

// h = tanh(W_ih x + b_ih + W_hh h + b_hh) (Elman 1990).
template <int In, int Hidden, class T = float>
struct RnnCell {
  Param<T, Hidden, In> weight_ih{init::fan_in_uniform(Hidden)};
  Param<T, Hidden, Hidden> weight_hh{init::fan_in_uniform(Hidden)};
  Param<T, Hidden> bias_ih{init::fan_in_uniform(Hidden)};
  Param<T, Hidden> bias_hh{init::fan_in_uniform(Hidden)};

  constexpr auto initial(auto x) const { return detail::zero_state<Hidden>(x); }
  constexpr auto project(auto x) const { return detail::affine(x, weight_ih, bias_ih); }
  constexpr auto advance(auto projected, auto h) const { return tanh(projected + detail::affine(h, weight_hh, bias_hh)); }
  constexpr auto operator()(auto x, auto h) const { return advance(project(x), h); }
  static constexpr auto members = tg::members("weight_ih", &RnnCell::weight_ih, "weight_hh", &RnnCell::weight_hh, "bias_ih", &RnnCell::bias_ih,
                                              "bias_hh", &RnnCell::bias_hh);
};

// Long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000). The state is the tuple
// of h and c; gates i, f, g, o: c = f c + i g, h = o tanh(c).
template <int In, int Hidden, class T = float>
struct LstmCell {
  Param<T, 4 * Hidden, In> weight_ih{init::fan_in_uniform(Hidden)};
  Param<T, 4 * Hidden, Hidden> weight_hh{init::fan_in_uniform(Hidden)};
  Param<T, 4 * Hidden> bias_ih{init::fan_in_uniform(Hidden)};
  Param<T, 4 * Hidden> bias_hh{init::fan_in_uniform(Hidden)};

  constexpr auto initial(auto x) const { return std::tuple(detail::zero_state<Hidden>(x), detail::zero_state<Hidden>(x)); }
  constexpr auto project(auto x) const { return detail::affine(x, weight_ih, bias_ih); }
  constexpr auto advance(auto projected, auto state) const {
    const auto& [h, c] = state;
    const auto [i, f, g, o] = split<-1, 4>(projected + detail::affine(h, weight_hh, bias_hh));
    const auto next = sigmoid(f) * c + sigmoid(i) * tanh(g);
    return std::tuple(sigmoid(o) * tanh(next), next);
  }
  constexpr auto operator()(auto x, auto state) const { return advance(project(x), state); }
  static constexpr auto members = tg::members("weight_ih", &LstmCell::weight_ih, "weight_hh", &LstmCell::weight_hh, "bias_ih", &LstmCell::bias_ih,
                                              "bias_hh", &LstmCell::bias_hh);
};

// Gated recurrent unit (Cho et al. 2014), in the form in which the reset gate acts on the product: gates r, z, n,
// n = tanh(W_in x + b_in + r (W_hn h + b_hn)), h = (1 - z) n + z h.
template <int In, int Hidden, class T = float>
struct GruCell {
  Param<T, 3 * Hidden, In> weight_ih{init::fan_in_uniform(Hidden)};
  Param<T, 3 * Hidden, Hidden> weight_hh{init::fan_in_uniform(Hidden)};
  Param<T, 3 * Hidden> bias_ih{init::fan_in_uniform(Hidden)};
  Param<T, 3 * Hidden> bias_hh{init::fan_in_uniform(Hidden)};

  constexpr auto initial(auto x) const { return detail::zero_state<Hidden>(x); }
  constexpr auto project(auto x) const { return detail::affine(x, weight_ih, bias_ih); }
  constexpr auto advance(auto projected, auto h) const {
    const auto [ri, zi, ni] = split<-1, 3>(projected);
    const auto [rh, zh, nh] = split<-1, 3>(detail::affine(h, weight_hh, bias_hh));
    const auto z = sigmoid(zi + zh);
    const auto n = tanh(ni + sigmoid(ri + rh) * nh);
    return n + z * (h - n);
  }
  constexpr auto operator()(auto x, auto h) const { return advance(project(x), h); }
  static constexpr auto members = tg::members("weight_ih", &GruCell::weight_ih, "weight_hh", &GruCell::weight_hh, "bias_ih", &GruCell::bias_ih,
                                              "bias_hh", &GruCell::bias_hh);
};

namespace detail {

constexpr auto output_of(const auto& state) {
  if constexpr (TypedExpr<std::remove_cvref_t<decltype(state)>>) return state;
  else return std::get<0>(state);
}

}  // namespace detail

// Runs a cell over a sequence x [time, batch, features] from a state: the pair of the outputs of all times, [time, batch,
// hidden], and the last state. The number of times is static; the program holds one copy of the cell for each.
template <class Cell, class X, class State>
constexpr auto scan(const Cell& cell, const X& x, const State& initial) {
  if constexpr (X::extents.rank < 2 || !X::extents[0].is_static() || X::extents[0].coefficient < 1) {
    constexpr Message m = Message("scan: expected [time, batch, features] with a static number of times, got ") << X::extents;
    tg::detail::fail<m, expr_t<X>>();
  } else {
    constexpr std::int64_t times = X::extents[0].coefficient;
    constexpr bool projects = requires { cell.project(x); };
    const auto inputs = [&] {
      if constexpr (projects) return cell.project(x);
      else return expr_t<X>(x);
    }();
    using Input = decltype(squeeze<0>(slice<0, 0, 1>(inputs)));
    State state = initial;
    Value outputs;
    for (std::int64_t t = 0; t < times; ++t) {
      Shape one = inputs.shape();
      one[0] = 1;
      AttributeList start, step;
      for (int i = 0; i < one.rank; ++i) {
        start.push(i == 0 ? t : 0);
        step.push(1);
      }
      const Input now(build::reshape(build::slice(inputs, one, start, step), to_shape(*x.graph, Input::extents)));
      if constexpr (projects) state = State(cell.advance(now, state));
      else state = State(cell(now, state));
      const auto output = detail::output_of(state);
      Shape row;
      row.push(1);
      for (int i = 0; i < output.rank(); ++i) row.push(output.shape()[i]);
      const Value next = build::reshape(output, row);
      outputs = t == 0 ? next : build::concat(outputs, next, 0);
    }
    using Output = std::remove_cvref_t<decltype(detail::output_of(state))>;
    constexpr auto stacked = [] {
      Extents e;
      e.push(times);
      for (int i = 0; i < Output::extents.rank; ++i) e.push(Output::extents[i]);
      return e;
    };
    return std::pair(tg::detail::expr_of<typename Output::value_type, decltype(stacked)>(outputs), state);
  }
}
// The same from the cell's initial state.
template <class Cell, class X>
constexpr auto scan(const Cell& cell, const X& x) {
  return scan(cell, x, cell.initial(squeeze<0>(slice<0, 0, 1>(x))));
}

}  // namespace tg::nn
