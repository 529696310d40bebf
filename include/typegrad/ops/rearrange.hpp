// Ops composed of slices, broadcasts and concatenations: stack, split, pad, roll, tile, repeat, tril, triu, one_hot,
// masked_fill, and the tensors arange, linspace and eye.
#pragma once

#include "typegrad/ops/activation.hpp"
#include "typegrad/ops/shape.hpp"

namespace tg {

// What pad puts outside of a tensor: one number, the elements mirrored at the edge without repeating it, or the edge.
enum class PadMode : std::uint8_t { constant, reflect, replicate };

namespace detail {

template <int Axis>
struct Stack {
  template <class... X>
  constexpr auto operator()(const X&... x) const {
    return concat<Axis>(unsqueeze<Axis>(x)...);
  }
};

template <int Axis, int Parts>
struct Split {
  template <class X>
  constexpr auto operator()(const X& x) const {
    constexpr int axis = normal_axis<Axis, X::extents.rank>();
    constexpr Extent whole = X::extents[axis];
    if constexpr (!whole.is_static() || Parts < 1 || whole.coefficient % Parts != 0) {
      constexpr Message m = Message("split: axis ") << Axis << " of " << X::extents << " into " << Parts << " equal parts";
      fail<m, expr_t<X>>();
    } else {
      constexpr std::int64_t n = whole.coefficient / Parts;
      return [&]<int... I>(std::integer_sequence<int, I...>) {
        return std::array{SliceAxis<Axis, I * n, (I + 1) * n, 1>{}(x)...};
      }(std::make_integer_sequence<int, Parts>{});
    }
  }
};

template <int Axis, std::int64_t Before, std::int64_t After, PadMode Mode>
struct PadAxis {
  template <class X, class V>
  constexpr auto operator()(const X& x, const V& value) const {
    constexpr int axis = normal_axis<Axis, X::extents.rank>();
    constexpr Extent whole = X::extents[axis];
    constexpr std::int64_t n = whole.coefficient;
    constexpr bool fits = whole.is_static() && Before >= 0 && After >= 0 &&
                          (Mode == PadMode::constant || (Mode == PadMode::replicate ? n > 0 : Before < n && After < n));
    if constexpr (!fits) {
      constexpr Message m = Message("pad: ") << Before << " before and " << After << " after axis " << Axis << " of " << X::extents
                                             << (Mode == PadMode::reflect ? ": a mirror needs a larger extent" : "");
      fail<m, expr_t<X>>();
    } else if constexpr (Before == 0 && After == 0) {
      return x;
    } else {
      const auto middle = [&] {
        if constexpr (Before == 0) return x;
        else return concat<axis>(edge<axis, true, Before>(x, value), x);
      }();
      if constexpr (After == 0) return middle;
      else return concat<axis>(middle, edge<axis, false, After>(x, value));
    }
  }

 private:
  template <int A, bool First, std::int64_t Count, class X, class V>
  static constexpr auto edge(const X& x, const V& value) {
    constexpr std::int64_t n = X::extents[A].coefficient;
    constexpr auto extents = [] {
      Extents e = X::extents;
      e[A] = Count;
      return e;
    };
    using R = expr_of<typename X::value_type, decltype(extents)>;
    const Shape s = to_shape(*x.graph, extents());
    if constexpr (Mode == PadMode::constant) return R(build::broadcast_to(Value(to_value<Op::Pad>(x, value)), s));
    else if constexpr (Mode == PadMode::replicate) return R(build::broadcast_to(SliceAxis<A, First ? 0 : n - 1, First ? 1 : n, 1>{}(x), s));
    else if constexpr (First) return Flip<A>{}(SliceAxis<A, 1, Count + 1, 1>{}(x));
    else return Flip<A>{}(SliceAxis<A, n - 1 - Count, n - 1, 1>{}(x));
  }
};

template <int Axis, std::int64_t Shift>
struct Roll {
  template <class X>
  constexpr auto operator()(const X& x) const {
    constexpr Extent whole = X::extents[normal_axis<Axis, X::extents.rank>()];
    if constexpr (!whole.is_static()) {
      constexpr Message m = Message("roll: axis ") << Axis << " of " << X::extents << " is known only at run time";
      fail<m, expr_t<X>>();
    } else {
      constexpr std::int64_t n = whole.coefficient, shift = n == 0 ? 0 : (Shift % n + n) % n;
      if constexpr (shift == 0) return x;
      else return concat<Axis>(SliceAxis<Axis, n - shift, n, 1>{}(x), SliceAxis<Axis, 0, n - shift, 1>{}(x));
    }
  }
};

// Each element Count times in a row (Inner), or the whole axis Count times.
template <int Axis, int Count, bool Inner>
struct Repeat {
  template <class X>
  constexpr auto operator()(const X& x) const {
    static_assert(Count >= 0, "typegrad: a number of repetitions is not negative");
    constexpr int rank = X::extents.rank, axis = normal_axis<Axis, rank>(), at = Inner ? axis + 1 : axis;
    constexpr auto extents = [] {
      Extents e = X::extents;
      e[axis] = e[axis] * Count;
      return e;
    };
    Shape one, many;
    for (int i = 0; i <= rank; ++i) {
      if (i == at) {
        one.push(1);
        many.push(Count);
      }
      if (i < rank) {
        one.push(x.shape()[i]);
        many.push(x.shape()[i]);
      }
    }
    return expr_of<typename X::value_type, decltype(extents)>(
        build::reshape(build::broadcast_to(build::reshape(x, one), many), to_shape(*x.graph, extents())));
  }
};

template <bool Lower, int Diagonal>
struct Triangle {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const auto row = iota_like<std::int64_t, -2>(x), column = iota_like<std::int64_t, -1>(x);
    if constexpr (Lower) return where(column <= row + Diagonal, x, 0);
    else return where(row + Diagonal <= column, x, 0);
  }
};

template <class T, int Classes>
struct OneHot {
  template <class Y>
  constexpr auto operator()(const Y& labels) const {
    static_assert(is_integer(Y::element), "typegrad: one_hot takes integer labels");
    constexpr auto extents = [] {
      Extents e = Y::extents;
      e.push(Classes);
      return e;
    };
    using L = typename Y::value_type;
    using R = expr_of<L, decltype(extents)>;
    const Shape s = to_shape(*labels.graph, extents());
    const R ramp(build::iota(*labels.graph, dtype_of<L>, s, s.rank - 1));
    return cast<T>(ramp == unsqueeze<-1>(check_index<Classes>(labels)));
  }
};

struct MaskedFill {
  constexpr auto operator()(const auto& x, const auto& mask, const auto& value) const { return where(mask, value, x); }
};

}  // namespace detail

// The operands, of one shape, along a new axis.
template <int Axis, Operand... X>
constexpr auto stack(const X&... x) { return apply<detail::Stack<Axis>>(x...); }
// Equal parts of a static axis, as a std::array. In traced functions.
template <int Axis, int Parts, TypedExpr X>
constexpr auto split(const X& x) { return detail::Split<Axis, Parts>{}(x); }
// Elements before and after a static axis (numpy.pad): a number, the mirrored elements (Before and After below the
// extent), or copies of the edge.
template <int Axis, std::int64_t Before, std::int64_t After, PadMode Mode = PadMode::constant, Operand X, class V = int>
constexpr auto pad(const X& x, const V& value = 0) { return apply<detail::PadAxis<Axis, Before, After, Mode>>(x, value); }
// The elements of a static axis moved by Shift; those pushed off the end come in at the beginning.
template <int Axis, std::int64_t Shift, Operand X>
constexpr auto roll(const X& x) { return apply<detail::Roll<Axis, Shift>>(x); }
// The whole axis Count times (numpy.tile along one axis).
template <int Axis, int Count, Operand X>
constexpr auto tile(const X& x) { return apply<detail::Repeat<Axis, Count, false>>(x); }
// Each element of the axis Count times in a row (numpy.repeat, torch.repeat_interleave).
template <int Axis, int Count, Operand X>
constexpr auto repeat(const X& x) { return apply<detail::Repeat<Axis, Count, true>>(x); }
// The last two axes' lower triangle, up to the given diagonal (0 the main one, positive ones above it); zeros elsewhere.
template <int Diagonal = 0, Operand X>
constexpr auto tril(const X& x) { return apply<detail::Triangle<true, Diagonal>>(x); }
// The upper triangle, from the given diagonal on.
template <int Diagonal = 0, Operand X>
constexpr auto triu(const X& x) { return apply<detail::Triangle<false, Diagonal>>(x); }
// 1 at the label and 0 elsewhere along a new last axis; a label outside [0, Classes) is a tg::Error at run time.
template <int Classes, class T = float, Operand Y>
constexpr auto one_hot(const Y& labels) { return apply<detail::OneHot<T, Classes>>(labels); }
// value where the mask holds, x elsewhere; no gradient flows to x where it holds.
template <Operand X, Operand M, class V>
constexpr auto masked_fill(const X& x, const M& mask, const V& value) { return apply<detail::MaskedFill>(x, mask, value); }

// 0, 1, ..., N - 1. In traced functions; the argument, any value of the function, says into which graph it goes.
template <class T, int N, Traced X>
constexpr auto arange(const X& of) { return Expr<T, N>(build::iota(*of.graph, dtype_of<T>, Shape{N}, 0)); }
// N numbers from first to last, both included; N is at least 2.
template <class T, int N, Traced X>
constexpr auto linspace(const X& of, double first, double last) {
  static_assert(N >= 2 && is_floating(dtype_of<T>), "typegrad: linspace gives at least two floating-point numbers");
  return arange<T, N>(of) * ((last - first) / (N - 1)) + first;
}
// The identity matrix.
template <class T, int N, Traced X>
constexpr auto eye(const X& of) {
  using I = Expr<std::int64_t, N, N>;
  const I row(build::iota(*of.graph, DType::i64, Shape{N, N}, 0)), column(build::iota(*of.graph, DType::i64, Shape{N, N}, 1));
  return cast<T>(row == column);
}

}  // namespace tg
