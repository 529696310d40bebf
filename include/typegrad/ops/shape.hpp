// Ops that rearrange elements: reshape, permute, transpose, squeeze, unsqueeze, broadcast_to, slice, flip, concat,
// and the ramps they are indexed with. All but concat are index maps inside the kernel that reads them.
#pragma once

#include "typegrad/ops/arithmetic.hpp"

namespace tg {

namespace detail {

template <auto... Ds>
struct ReshapeTo {
  template <class X>
  constexpr auto operator()(const X& x) const {
    constexpr Extents to = extents_of<Ds...>();
    if constexpr (TypedExpr<X>) {
      if constexpr (!(X::extents.size() == to.size())) {
        constexpr Message m = Message("reshape: ") << X::extents << " has " << X::extents.size() << " elements, " << to
                                                   << " has " << to.size();
        fail<m, expr_t<X>>();
      }
      return Expr<typename X::value_type, Ds...>(build::reshape(x, to_shape(*x.graph, to)));
    } else {
      return build::reshape(x, to_shape(*x.graph, to));
    }
  }
};

template <auto... Ds>
struct BroadcastTo {
  template <class X>
  constexpr auto operator()(const X& x) const {
    constexpr Extents to = extents_of<Ds...>();
    if constexpr (TypedExpr<X>) {
      constexpr bool fits = [&to] {
        if (X::extents.rank > to.rank) return false;
        for (int i = 1; i <= X::extents.rank; ++i) {
          const Extent &a = X::extents[X::extents.rank - i], &b = to[to.rank - i];
          if (!(a == b) && !a.is(1)) return false;
        }
        return true;
      }();
      if constexpr (!fits) {
        constexpr Message m = Message("broadcast_to: ") << X::extents << " does not broadcast to " << to;
        fail<m, expr_t<X>>();
      }
      return Expr<typename X::value_type, Ds...>(build::broadcast_to(x, to_shape(*x.graph, to)));
    } else {
      return build::broadcast_to(x, to_shape(*x.graph, to));
    }
  }
};

template <int... Axes>
struct Permute {
  template <class X>
  constexpr auto operator()(const X& x) const {
    AttributeList p;
    if constexpr (TypedExpr<X>) {
      constexpr int rank = X::extents.rank;
      constexpr bool valid = sizeof...(Axes) == static_cast<std::size_t>(rank) &&
                             ((std::int64_t{1} << normal_axis<Axes, rank>()) | ... | 0) == (std::int64_t{1} << rank) - 1;
      if constexpr (!valid) {
        constexpr Message m = Message("permute: the axes are not a permutation of those of ") << X::extents;
        fail<m, expr_t<X>>();
      }
      (p.push(normal_axis<Axes, rank>()), ...);
      constexpr auto extents = [] {
        Extents e;
        (e.push(X::extents[normal_axis<Axes, X::extents.rank>()]), ...);
        return e;
      };
      return expr_of<typename X::value_type, decltype(extents)>(build::transpose(x, p));
    } else {
      (p.push(Axes < 0 ? Axes + x.rank() : Axes), ...);
      return build::transpose(x, p);
    }
  }
};

template <int A, int B>
struct SwapAxes {
  template <class X>
  constexpr auto operator()(const X& x) const {
    if constexpr (TypedExpr<X>) {
      constexpr auto extents = [] {
        Extents e = X::extents;
        const Extent t = e[normal_axis<A, X::extents.rank>()];
        e[normal_axis<A, X::extents.rank>()] = e[normal_axis<B, X::extents.rank>()];
        e[normal_axis<B, X::extents.rank>()] = t;
        return e;
      };
      constexpr int rank = X::extents.rank;
      return expr_of<typename X::value_type, decltype(extents)>(
          build::swap_axes(x, normal_axis<A, rank>(), normal_axis<B, rank>()));
    } else {
      return build::swap_axes(x, A < 0 ? A + x.rank() : A, B < 0 ? B + x.rank() : B);
    }
  }
};

// Drops axes of extent 1 (every one of them when none is named).
template <int... Axes>
struct Squeeze {
  template <class X>
  static consteval std::int64_t mask() {
    if constexpr (sizeof...(Axes) == 0) {
      std::int64_t m = 0;
      for (int i = 0; i < X::extents.rank; ++i)
        if (X::extents[i].is(1)) m |= std::int64_t{1} << i;
      return m;
    } else {
      return axes_mask<X::extents.rank, Axes...>();
    }
  }
  template <class X>
  static consteval Extents squeezed() {
    Extents e;
    for (int i = 0; i < X::extents.rank; ++i)
      if (!((mask<X>() >> i) & 1)) e.push(X::extents[i]);
    return e;
  }
  template <class X>
  constexpr auto operator()(const X& x) const {
    if constexpr (!(squeezed<X>().size() == X::extents.size())) {
      constexpr Message m = Message("squeeze: an axis of ") << X::extents << " that is to be dropped is not 1";
      fail<m, expr_t<X>>();
    }
    constexpr auto extents = [] { return squeezed<X>(); };
    return expr_of<typename X::value_type, decltype(extents)>(
        build::reshape(x, build::without_axes(x.shape(), mask<X>())));
  }
};

// Inserts an axis of extent 1, so that it is axis Axis of the result.
template <int Axis>
struct Unsqueeze {
  template <class X>
  constexpr auto operator()(const X& x) const {
    if constexpr (TypedExpr<X>) {
      constexpr auto extents = [] {
        Extents e;
        for (int i = 0; i <= X::extents.rank; ++i) {
          if (i == normal_axis<Axis, X::extents.rank + 1>()) e.push(1);
          if (i < X::extents.rank) e.push(X::extents[i]);
        }
        return e;
      };
      return expr_of<typename X::value_type, decltype(extents)>(build::reshape(x, to_shape(*x.graph, extents())));
    } else {
      Shape s;
      for (int i = 0; i <= x.rank(); ++i) {
        if (i == (Axis < 0 ? Axis + x.rank() + 1 : Axis)) s.push(1);
        if (i < x.rank()) s.push(x.shape()[i]);
      }
      return build::reshape(x, s);
    }
  }
};

template <int Axis, std::int64_t Begin, std::int64_t End, std::int64_t Step>
struct SliceAxis {
  template <class X>
  constexpr auto operator()(const X& x) const {
    constexpr int axis = normal_axis<Axis, X::extents.rank>();
    constexpr Extent whole = X::extents[axis];
    if constexpr (!whole.is_static()) {
      constexpr Message m = Message("slice: axis ") << Axis << " of " << X::extents << " is known only at run time";
      fail<m, expr_t<X>>();
    }
    constexpr std::int64_t n = whole.coefficient;
    constexpr std::int64_t begin = Begin < 0 ? Begin + n : Begin, end = End < 0 ? End + n : End > n ? n : End;
    if constexpr (Step == 0 || begin < 0 || begin > n || end < -1 || (Step > 0 && end < begin)) {
      constexpr Message m = Message("slice: ") << Begin << " to " << End << " by " << Step << " of axis " << Axis << " of "
                                               << X::extents;
      fail<m, expr_t<X>>();
    }
    constexpr std::int64_t count = Step > 0 ? (end - begin + Step - 1) / Step : (begin - end - Step - 1) / -Step;
    constexpr auto extents = [] {
      Extents e = X::extents;
      e[axis] = count;
      return e;
    };
    AttributeList starts, steps;
    for (int i = 0; i < X::extents.rank; ++i) {
      starts.push(i == axis ? begin : 0);
      steps.push(i == axis ? Step : 1);
    }
    return expr_of<typename X::value_type, decltype(extents)>(
        build::slice(x, to_shape(*x.graph, extents()), starts, steps));
  }
};

template <int Axis>
struct Flip {
  template <class X>
  constexpr auto operator()(const X& x) const {
    constexpr int axis = normal_axis<Axis, X::extents.rank>();
    constexpr Extent whole = X::extents[axis];
    if constexpr (!whole.is_static()) {
      constexpr Message m = Message("flip: axis ") << Axis << " of " << X::extents << " is known only at run time";
      fail<m, expr_t<X>>();
    }
    AttributeList starts, steps;
    for (int i = 0; i < X::extents.rank; ++i) {
      starts.push(i == axis ? whole.coefficient - 1 : 0);
      steps.push(i == axis ? -1 : 1);
    }
    return expr_t<X>(build::slice(x, x.shape(), starts, steps));
  }
};

template <int Axis>
struct Concat {
  template <class A, class B>
  static consteval bool compatible() {
    if (A::extents.rank != B::extents.rank || !std::same_as<typename A::value_type, typename B::value_type>) return false;
    const int axis = Axis < 0 ? Axis + A::extents.rank : Axis;
    for (int i = 0; i < A::extents.rank; ++i)
      if (i == axis ? !(A::extents[i].is_static() && B::extents[i].is_static()) : !(A::extents[i] == B::extents[i]))
        return false;
    return true;
  }
  template <class A>
  constexpr auto operator()(const A& a) const { return a; }
  template <class A, class B, class... Rest>
  constexpr auto operator()(const A& a, const B& b, const Rest&... rest) const {
    if constexpr (!compatible<A, B>()) {
      constexpr Message m = Message("concat: ") << name(A::element) << A::extents << " and " << name(B::element)
                                                << B::extents << " along axis " << Axis
                                                << ": all other extents and the dtype must agree";
      fail<m, expr_t<A>, expr_t<B>>();
    }
    constexpr int axis = normal_axis<Axis, A::extents.rank>();
    constexpr auto extents = [] {
      Extents e = A::extents;
      e[axis] = e[axis].coefficient + B::extents[axis].coefficient;
      return e;
    };
    return (*this)(expr_of<typename A::value_type, decltype(extents)>(build::concat(a, b, axis)), rest...);
  }
};

}  // namespace detail

// The same elements in row-major order under new extents, whose product must be the same.
template <auto... Ds, Operand X>
constexpr auto reshape(const X& x) { return apply<detail::ReshapeTo<Ds...>>(x); }
// x repeated along new leading axes and axes of extent 1, as NumPy broadcasts.
template <auto... Ds, Operand X>
constexpr auto broadcast_to(const X& x) { return apply<detail::BroadcastTo<Ds...>>(x); }
// Axis i of the result is axis Axes[i] of x.
template <int... Axes, Operand X>
constexpr auto permute(const X& x) { return apply<detail::Permute<Axes...>>(x); }
// Exchanges two axes, by default the last two.
template <int A = -2, int B = -1, Operand X>
constexpr auto transpose(const X& x) { return apply<detail::SwapAxes<A, B>>(x); }
// Drops the named axes, which must have extent 1; without names, every axis of extent 1.
template <int... Axes, Operand X>
constexpr auto squeeze(const X& x) { return apply<detail::Squeeze<Axes...>>(x); }
// Inserts an axis of extent 1 at position Axis of the result.
template <int Axis, Operand X>
constexpr auto unsqueeze(const X& x) { return apply<detail::Unsqueeze<Axis>>(x); }
// Elements Begin, Begin + Step, ... before End of one axis, as NumPy's x[Begin:End:Step]; negative bounds count from
// the end. The axis is static.
template <int Axis, std::int64_t Begin, std::int64_t End, std::int64_t Step = 1, Operand X>
constexpr auto slice(const X& x) { return apply<detail::SliceAxis<Axis, Begin, End, Step>>(x); }
// The axis in reverse order. The axis is static.
template <int Axis, Operand X>
constexpr auto flip(const X& x) { return apply<detail::Flip<Axis>>(x); }
// The operands one after the other along Axis.
template <int Axis, Operand... X>
constexpr auto concat(const X&... x) { return apply<detail::Concat<Axis>>(x...); }
// 0, 1, 2, ... along Axis, in the shape of x.
template <class T, int Axis, TypedExpr X>
constexpr auto iota_like(const X& x) {
  constexpr int axis = detail::normal_axis<Axis, X::extents.rank>();
  return detail::expr_of<T, decltype([] { return X::extents; })>(build::iota(*x.graph, dtype_of<T>, x.shape(), axis));
}
// A tensor of the shape and dtype of x filled with one number.
template <TypedExpr X>
constexpr auto full_like(const X& x, double value) { return expr_t<X>(build::constant_like(x, value)); }

}  // namespace tg
