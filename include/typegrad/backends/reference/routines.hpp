// The meaning of the routines: scatters, sorts and scans, with plain loops over whole arrays.
#pragma once

#include <algorithm>
#include <numeric>

#include "typegrad/backends/reference/array.hpp"
#include "typegrad/kernels/math.hpp"
#include "typegrad/ops/scan.hpp"
#include "typegrad/ops/sort.hpp"
#include "typegrad/runtime/error.hpp"

namespace tg::reference {
namespace detail {

inline void scatter(Op op, const Array& updates, const Array& positions, Array& r) {
  if (op == Op::ScatterMax) std::fill(r.integer.begin(), r.integer.end(), -1);
  for (std::int64_t i = 0; i < updates.size(); ++i) {
    const auto k = static_cast<std::size_t>(i), at = static_cast<std::size_t>(positions.integer[k]);
    if (op == Op::ScatterMax) r.integer[at] = (std::max)(r.integer[at], updates.integer[k]);
    else if (is_floating(r.dtype)) r.real[at] += updates.real[k];
    else r.integer[at] = math::add(r.integer[at], updates.integer[k]);
  }
}

inline void argsort(std::int64_t attribute, const Array& x, std::size_t rows, std::size_t length, Array& r) {
  const auto [count, descends] = SortAttribute::of(attribute);
  const std::size_t kept = static_cast<std::size_t>(count);
  const bool descending = descends;
  std::vector<std::size_t> order(length);
  for (std::size_t row = 0; row < rows; ++row) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto sort = [&](const auto& values) {
      std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
        const auto a = values[row * length + i], b = values[row * length + j];
        return descending ? sort_less(b, a) : sort_less(a, b);
      });
    };
    if (is_floating(x.dtype)) sort(x.real);
    else sort(x.integer);
    for (std::size_t i = 0; i < kept; ++i) r.integer[row * kept + i] = static_cast<std::int64_t>(order[i]);
  }
}

inline void scan(Op op, bool reverse, const std::vector<const Array*>& in, std::size_t rows, std::size_t length, Array& r) {
  const auto one = [&](auto& result, const auto& first, const auto& second) {
    using T = std::remove_cvref_t<decltype(result[0])>;
    for (std::size_t row = 0; row < rows; ++row) {
      T h{};
      for (std::size_t t = 0; t < length; ++t) {
        const std::size_t i = row * length + (reverse ? length - 1 - t : t);
        h = op == Op::CumSum ? math::add(h, first[i]) : math::add(math::mul(first[i], h), second[i]);
        result[i] = h;
      }
    }
  };
  const Array& last = *in.back();
  if (is_floating(r.dtype)) one(r.real, in[0]->real, last.real);
  else one(r.integer, in[0]->integer, last.integer);
}

}  // namespace detail

// The result, of dtype t and the given shape, of a routine on whole operands.
inline Array run_routine(Op op, std::int64_t attribute, const std::vector<const Array*>& in, DType t, std::vector<std::int64_t> shape) {
  Array r = blank(t, std::move(shape));
  const Array& x = *in[0];
  const auto length = static_cast<std::size_t>(x.shape.empty() ? 1 : x.shape.back());
  const std::size_t rows = length == 0 ? 0 : static_cast<std::size_t>(x.size()) / length;
  switch (op) {
    case Op::ScatterAdd:
    case Op::ScatterMax: detail::scatter(op, x, *in[1], r); break;
    case Op::ArgSort: detail::argsort(attribute, x, rows, length, r); break;
    case Op::CumSum:
    case Op::LinearScan: detail::scan(op, attribute != 0, in, rows, length, r); break;
    default: throw Error(tg::detail::concat_text("reference: no meaning for ", name(op)));
  }
  for (double& v : r.real) v = detail::round_to(t, v);
  for (std::int64_t& v : r.integer) v = detail::wrap_to(t, v);
  return r;
}

}  // namespace tg::reference
