// What all element-wise ops share: dtype and shape rules with their compile errors, and the form of a primitive.
#pragma once

#include "typegrad/expr/lazy.hpp"

namespace tg {

// Specialised once per element-wise op in this folder:
//   template <class V> static V apply(V...)       the meaning, for scalars and for packets of them; it calls
//                                                 functions of tg::math or, for packets, of their own namespace
//   static constexpr Value gradient(int operand, Value g, const Operands& in, Value out)
//                                                 the part of operand's gradient that comes from g, the gradient
//                                                 of the result; a Value without graph means zero
template <Op O>
struct Primitive;

using Operands = std::array<Value, 3>;

namespace detail {

// The NumPy rule on types; an extent known only at run time is never broadcast.
constexpr bool broadcasts(const Extents& a, const Extents& b) {
  for (int i = 1; i <= a.rank && i <= b.rank; ++i) {
    const Extent &x = a[a.rank - i], &y = b[b.rank - i];
    if (!(x == y) && !x.is(1) && !y.is(1)) return false;
  }
  return true;
}
constexpr Extents broadcast(const Extents& a, const Extents& b) {
  Extents r;
  r.rank = a.rank > b.rank ? a.rank : b.rank;
  for (int i = 1; i <= r.rank; ++i) {
    const Extent x = i <= a.rank ? a[a.rank - i] : Extent(1);
    const Extent y = i <= b.rank ? b[b.rank - i] : Extent(1);
    r[r.rank - i] = x.is(1) ? y : x;
  }
  return r;
}

template <Op O, class A, class B>
consteval void check_pair() {
  if constexpr (!std::same_as<typename A::value_type, typename B::value_type>) {
    constexpr Message m = Message(name(O)) << ": dtypes " << name(A::element) << " and " << name(B::element)
                                           << " differ; convert one with tg::cast";
    fail<m, A, B>();
  } else if constexpr (!broadcasts(A::extents, B::extents)) {
    constexpr Message m = [] {
      const Extents a = A::extents, b = B::extents;
      Message text = Message(name(O)) << ": shapes " << a << " and " << b << " do not broadcast: ";
      for (int i = 1; i <= a.rank && i <= b.rank; ++i) {
        const Extent &x = a[a.rank - i], &y = b[b.rank - i];
        if (!(x == y) && !x.is(1) && !y.is(1)) {
          text << "axis " << std::int64_t{-i} << " is " << x << " and " << y;
          break;
        }
      }
      return text;
    }();
    fail<m, A, B>();
  }
}

// A number met by a traced value becomes a constant of its dtype.
template <Op O, class Like, class X>
constexpr Value to_value(const Like& like, const X& x) {
  if constexpr (Number<X>) {
    if constexpr (TypedExpr<Like> && std::is_floating_point_v<X>) {
      if constexpr (!is_floating(Like::element)) {
        constexpr Message m = Message(name(O)) << ": a floating-point number meets a tensor of dtype "
                                               << name(Like::element);
        fail<m, expr_t<Like>>();
      }
    }
    return build::constant(*like.graph, like.dtype(), Shape{}, static_cast<double>(x));
  } else {
    return x;
  }
}

template <Op O>
struct Unary {
  template <class X>
  constexpr auto operator()(const X& x) const {
    const Value v = build::unary(O, x);
    if constexpr (TypedExpr<X>) {
      using T = typename X::value_type;
      constexpr bool arithmetic = O == Op::Neg || O == Op::Abs || O == Op::Sign || O == Op::Relu || O == Op::Not ||
                                  O == Op::StopGradient || O == Op::CheckIndex;
      if constexpr (!arithmetic && !is_floating(dtype_of<T>)) {
        constexpr Message m = Message(name(O)) << ": needs a floating-point tensor, got dtype " << name(dtype_of<T>)
                                               << "; convert it with tg::cast";
        fail<m, expr_t<X>>();
      }
      return expr_t<X>(v);
    } else {
      return v;
    }
  }
};

template <Op O>
struct Binary {
  template <class A, class B>
  constexpr auto operator()(const A& a, const B& b) const {
    if constexpr (TypedExpr<A> && TypedExpr<B>) check_pair<O, expr_t<A>, expr_t<B>>();
    Value x, y;
    if constexpr (Number<A>) {
      y = b;
      x = to_value<O>(b, a);
    } else {
      x = a;
      y = to_value<O>(a, b);
    }
    const Value v = build::binary(O, x, y);
    if constexpr (TypedExpr<A> || TypedExpr<B>) {
      using Like = std::conditional_t<TypedExpr<A>, A, B>;
      constexpr bool comparison = O >= Op::Less && O <= Op::NotEqual;
      using T = std::conditional_t<comparison, bool, typename Like::value_type>;
      constexpr auto extents = [] {
        if constexpr (TypedExpr<A> && TypedExpr<B>) return broadcast(A::extents, B::extents);
        else return Like::extents;
      };
      return expr_of<T, decltype(extents)>(v);
    } else {
      return v;
    }
  }
};

// The extents of one operand; a number broadcasts to anything.
template <class X>
consteval Extents extents_or_scalar() {
  if constexpr (TypedExpr<X>) return X::extents;
  else return {};
}

struct Where {
  template <class C, class A, class B>
  constexpr auto operator()(const C& condition, const A& a, const B& b) const {
    if constexpr (TypedExpr<A> && TypedExpr<B>) check_pair<Op::Select, expr_t<A>, expr_t<B>>();
    Value x, y;
    if constexpr (Number<A> && Number<B>) {
      x = build::constant(*condition.graph, DType::f32, Shape{}, static_cast<double>(a));
      y = build::constant(*condition.graph, DType::f32, Shape{}, static_cast<double>(b));
    } else if constexpr (Number<A>) {
      y = b;
      x = to_value<Op::Select>(b, a);
    } else {
      x = a;
      y = to_value<Op::Select>(a, b);
    }
    if constexpr (TypedExpr<C>) {
      using Like = std::conditional_t<TypedExpr<A>, A, std::conditional_t<TypedExpr<B>, B, Expr<float>>>;
      if constexpr (!std::same_as<typename C::value_type, bool>) {
        constexpr Message m = Message("where: the condition has dtype ") << name(C::element) << ", expected bool";
        fail<m, expr_t<C>>();
      }
      constexpr auto both = [] { return broadcast(extents_or_scalar<A>(), extents_or_scalar<B>()); };
      if constexpr (!broadcasts(C::extents, both())) {
        constexpr Message m = Message("where: condition ") << C::extents << " and values " << both()
                                                           << " do not broadcast";
        fail<m, expr_t<C>, Like>();
      }
      constexpr auto extents = [] {
        return broadcast(C::extents, broadcast(extents_or_scalar<A>(), extents_or_scalar<B>()));
      };
      return expr_of<typename Like::value_type, decltype(extents)>(build::select(condition, x, y));
    } else {
      return build::select(condition, x, y);
    }
  }
};

}  // namespace detail
}  // namespace tg
