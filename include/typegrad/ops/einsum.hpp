// einsum, outer and vdot: products of tensors written with a label for each axis.
#pragma once

#include "typegrad/ops/contraction.hpp"
#include "typegrad/ops/reduction.hpp"

namespace tg {
namespace detail {

// The labels of a subscript string such as "bhqd,bhkd->bhqk".
struct Subscripts {
  std::string_view operand[2]{};
  std::string_view result{};
  int operands = 0;
  bool valid = false;

  constexpr explicit Subscripts(std::string_view s) {
    const std::size_t arrow = s.find("->");
    if (arrow == std::string_view::npos) return;
    result = s.substr(arrow + 2);
    std::string_view left = s.substr(0, arrow);
    const std::size_t comma = left.find(',');
    operand[0] = left.substr(0, comma);
    operands = 1;
    if (comma != std::string_view::npos) {
      operand[1] = left.substr(comma + 1);
      operands = 2;
    }
    valid = are_labels(operand[0]) && are_labels(operand[1]) && are_labels(result);
    for (char c : result) valid = valid && (has(0, c) || has(1, c));
  }
  static constexpr bool are_labels(std::string_view part) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      const char c = part[i];
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!letter || part.find(c, i + 1) != std::string_view::npos) return false;
    }
    return true;
  }
  constexpr bool has(int which, char c) const { return operand[which].find(c) != std::string_view::npos; }
};

constexpr int place_of(std::string_view labels, char c) { return static_cast<int>(labels.find(c)); }

// Sums the axes whose labels neither the result nor the other operand has, which drops them.
constexpr Value sum_unused(Value x, const Subscripts& s, int which, std::string_view& labels, std::array<char, max_rank>& kept) {
  std::int64_t mask = 0;
  std::size_t n = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const char c = labels[i];
    if (s.result.find(c) == std::string_view::npos && !s.has(1 - which, c)) mask |= std::int64_t{1} << i;
    else kept[n++] = c;
  }
  labels = std::string_view(kept.data(), n);
  const Value r = build::reduce(Op::ReduceSum, x, mask);
  return build::reshape(r, build::without_axes(r.shape(), mask));
}

constexpr Value arrange(Value x, std::string_view from, std::string_view to) {
  AttributeList p;
  for (char c : to) p.push(place_of(from, c));
  return build::transpose(x, p);
}

template <FixedString Text>
struct Einsum {
  static constexpr Subscripts s{Text.view()};

  template <class... X>
  static consteval Message problem() {
    Message m = Message("einsum \"") << Text.view() << "\": ";
    constexpr Extents extents[] = {X::extents...};
    if (!s.valid) return m << "expected labels such as \"ij,jk->ik\", each once in an operand, those of the result among them";
    if (s.operands != static_cast<int>(sizeof...(X))) return m << s.operands << " operands, given " << static_cast<std::int64_t>(sizeof...(X));
    for (int i = 0; i < s.operands; ++i)
      if (extents[i].rank != static_cast<int>(s.operand[i].size()))
        return m << "operand " << i << " has labels \"" << s.operand[i] << "\" and extents " << extents[i];
    if constexpr (sizeof...(X) == 2) {
      for (char c : s.operand[0]) {
        if (!s.has(1, c)) continue;
        const Extent &a = extents[0][place_of(s.operand[0], c)], &b = extents[1][place_of(s.operand[1], c)];
        if (!(a == b)) return m << extents[0] << " and " << extents[1] << ": label '" << std::string_view(&c, 1) << "' is " << a << " and " << b;
      }
    }
    return {};
  }

  template <class... X>
  static constexpr Message wrong = problem<X...>();

  template <class... X>
  static consteval Extents result_extents() {
    constexpr Extents extents[] = {X::extents...};
    Extents e;
    for (char c : s.result) {
      const int which = s.has(0, c) ? 0 : 1;
      e.push(extents[which][place_of(s.operand[which], c)]);
    }
    return e;
  }

  template <class A, class... B>
  constexpr auto operator()(const A& a, const B&... b) const {
    if constexpr (wrong<A, B...>.text[0] != 0) {
      fail<wrong<A, B...>, expr_t<A>, expr_t<B>...>();
    } else if constexpr (!(std::same_as<typename A::value_type, typename B::value_type> && ...)) {
      constexpr Message m = Message("einsum \"") << Text.view() << "\": the operands' dtypes differ; convert one with tg::cast";
      fail<m, expr_t<A>, expr_t<B>...>();
    } else {
      constexpr auto extents = [] { return result_extents<A, B...>(); };
      return expr_of<typename A::value_type, decltype(extents)>(compute(a, b...));
    }
  }

 private:
  static constexpr Value compute(Value a) {
    std::string_view labels = s.operand[0];
    std::array<char, max_rank> kept{};
    const Value r = sum_unused(a, s, 0, labels, kept);
    return arrange(r, labels, s.result);
  }
  static constexpr Value compute(Value a, Value b) {
    std::string_view la = s.operand[0], lb = s.operand[1];
    std::array<char, max_rank> ka{}, kb{};
    const Value x = sum_unused(a, s, 0, la, ka), y = sum_unused(b, s, 1, lb, kb);
    return build::labelled_dot(x, la, y, lb, s.result);
  }
};

struct Outer {
  template <class A, class B>
  constexpr auto operator()(const A& a, const B& b) const {
    return unsqueeze<-1>(a) * unsqueeze<-2>(b);
  }
};

}  // namespace detail

// A sum of products in Einstein's notation: tg::einsum<"bhqd,bhkd->bhqk">(q, k). Each axis of the one or two operands has
// a letter, each letter once per operand; letters that the result does not name are summed over. Letters both operands
// and the result have are batched. Wrong labels and extents that disagree are compile errors. Costs what the matmul it
// is costs; a product in which nothing is summed is an element-wise kernel. Ellipses and repeated letters are not there.
template <detail::FixedString Subscripts, Operand... X>
constexpr auto einsum(const X&... x) { return apply<detail::Einsum<Subscripts>>(x...); }
// Sum of the products of two vectors' elements.
template <Operand A, Operand B>
constexpr auto vdot(const A& a, const B& b) { return apply<detail::Einsum<"i,i->">>(a, b); }
// a[i] * b[j] of two vectors.
template <Operand A, Operand B>
constexpr auto outer(const A& a, const B& b) { return apply<detail::Outer>(a, b); }

}  // namespace tg
