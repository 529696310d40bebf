// Positions of elements as integers: what indexing ops and random numbers compute with.
#pragma once

#include "typegrad/ops/arithmetic.hpp"

namespace tg::detail {

// An extent as an int64 scalar: a constant, or read when the program runs.
constexpr Value extent_value(Graph& g, Dim d) {
  if (d.is_static()) return build::constant(g, DType::i64, Shape{}, static_cast<double>(d.coefficient));
  return build::size(g, DType::i64, Shape{d});
}

// The position of an element among the axes [first, last) of a shape, row-major, as an int64 tensor that broadcasts to the
// shape.
constexpr Value row_major_position(Graph& g, const Shape& s, int first, int last) {
  bool all_static = true;
  Dim n = 1;
  Shape own;
  for (int i = 0; i < s.rank; ++i) {
    const bool inside = i >= first && i < last;
    own.push(inside ? s[i] : Dim(1));
    if (!inside) continue;
    n = n * s[i];
    all_static = all_static && s[i].is_static();
  }
  if (all_static) return build::reshape(build::iota(g, DType::i64, Shape{n}, 0), own);
  Value total = build::constant(g, DType::i64, Shape{}, 0.0);
  Dim stride = 1;
  for (int i = last; i-- > first;) {
    Shape along;
    for (int k = 0; k < s.rank; ++k) along.push(k == i ? s[k] : Dim(1));
    const Value ramp = build::iota(g, DType::i64, along, i);
    total = build::binary(Op::Add, total, stride.is(1) ? ramp : build::binary(Op::Mul, ramp, extent_value(g, stride)));
    stride = stride * s[i];
  }
  return total;
}

}  // namespace tg::detail
