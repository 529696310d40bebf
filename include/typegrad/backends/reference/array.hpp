// Arrays of the reference back end: row-major, floating values in double, integers in int64.
#pragma once

#include <cstdint>
#include <vector>

#include "typegrad/graph/dtype.hpp"

namespace tg::reference {

// Floating dtypes use `real`, integers and bool use `integer`; the other vector is empty.
struct Array {
  DType dtype = DType::f64;
  std::vector<std::int64_t> shape;
  std::vector<double> real;
  std::vector<std::int64_t> integer;

  std::int64_t size() const {
    std::int64_t n = 1;
    for (std::int64_t e : shape) n *= e;
    return n;
  }
  double at(std::int64_t i) const {
    const auto k = static_cast<std::size_t>(i);
    return is_floating(dtype) ? real[k] : static_cast<double>(integer[k]);
  }
};

// Zeros.
inline Array blank(DType t, std::vector<std::int64_t> shape) {
  Array a;
  a.dtype = t;
  a.shape = std::move(shape);
  if (is_floating(t)) a.real.assign(static_cast<std::size_t>(a.size()), 0.0);
  else a.integer.assign(static_cast<std::size_t>(a.size()), 0);
  return a;
}

namespace detail {

inline double round_to(DType t, double v) {
  switch (t) {
    case DType::f32: return static_cast<double>(static_cast<float>(v));
    case DType::bf16: return static_cast<double>(static_cast<float>(bf16(static_cast<float>(v))));
    case DType::f16: return static_cast<double>(static_cast<float>(f16(static_cast<float>(v))));
    default: return v;
  }
}
inline std::int64_t wrap_to(DType t, std::int64_t v) {
  switch (t) {
    case DType::i8: return static_cast<std::int8_t>(v);
    case DType::i32: return static_cast<std::int32_t>(v);
    case DType::boolean: return v != 0;
    default: return v;
  }
}

}  // namespace detail
}  // namespace tg::reference
