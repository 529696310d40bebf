// Extents as part of a type: an int, or a product of named run-time extents (tg::dyn<"batch">).
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "typegrad/graph/graph.hpp"

namespace tg {

// A static extent has no names; a run-time extent is coefficient × the product of its names.
struct Extent {
  std::int64_t coefficient = 0;
  Name names[4]{};

  constexpr Extent() = default;
  constexpr Extent(std::int64_t n) : coefficient(n) {}
  constexpr Extent(std::int64_t c, const Name& n) : coefficient(c), names{n} {}
  constexpr bool operator==(const Extent&) const = default;
  constexpr bool is_static() const { return names[0] == Name{}; }
  constexpr bool is(std::int64_t n) const { return is_static() && coefficient == n; }

  friend constexpr Extent operator*(const Extent& a, const Extent& b) {
    Extent r;
    r.coefficient = a.coefficient * b.coefficient;
    int n = 0;
    for (const Extent* e : {&a, &b})
      for (const Name& name : e->names)
        if (!(name == Name{})) {
          if (n == 4) throw "a product of more than four named extents";
          int at = n++;
          for (; at > 0 && name.view() < r.names[at - 1].view(); --at) r.names[at] = r.names[at - 1];
          r.names[at] = name;
        }
    return r;
  }
  friend constexpr Extent operator*(const Extent& a, int b) { return a * Extent(b); }
  friend constexpr Extent operator*(int a, const Extent& b) { return Extent(a) * b; }
};

namespace detail {
template <std::size_t N>
struct FixedString {
  char text[N]{};
  constexpr FixedString(const char (&s)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = s[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
};
}  // namespace detail

// A named run-time extent. Equal names are equal extents, checked when tensors are bound.
template <detail::FixedString Text>
inline constexpr Extent dyn{1, Name(Text.view())};

// The extents of a typed expression, as a value.
struct Extents {
  int rank = 0;
  Extent dims[max_rank]{};
  constexpr void push(const Extent& e) {
    if (rank == max_rank) throw "a tensor has at most eight axes";
    dims[rank++] = e;
  }
  constexpr Extent& operator[](int axis) { return dims[axis]; }
  constexpr const Extent& operator[](int axis) const { return dims[axis]; }
  constexpr Extent size() const {
    Extent n = 1;
    for (int i = 0; i < rank; ++i) n = n * dims[i];
    return n;
  }
  constexpr bool operator==(const Extents& o) const {
    if (rank != o.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (!(dims[i] == o.dims[i])) return false;
    return true;
  }
};

// The graph's form of an extent.
constexpr Dim to_dim(Graph& g, const Extent& e) {
  Dim d = e.coefficient;
  for (const Name& n : e.names)
    if (!(n == Name{})) d = d * g.intern(n);
  return d;
}
constexpr Shape to_shape(Graph& g, const Extents& e) {
  Shape s;
  for (int i = 0; i < e.rank; ++i) s.push(to_dim(g, e[i]));
  return s;
}

namespace detail {
// The spelling of an extent as a template argument: int wherever it fits, so that types print as Expr<float, 2, 3>.
template <Extent E>
consteval auto spelling() {
  if constexpr (!E.is_static()) return E;
  else if constexpr (E.coefficient <= (std::numeric_limits<int>::max)()) return static_cast<int>(E.coefficient);
  else return E.coefficient;
}

template <class T>
concept ExtentSpelling = std::same_as<T, int> || std::same_as<T, std::int64_t> || std::same_as<T, Extent>;

// The extents of a pack of template arguments.
template <auto... Ds>
consteval Extents extents_of() {
  static_assert((ExtentSpelling<std::remove_cvref_t<decltype(Ds)>> && ...),
                "typegrad: an extent is an int (std::int64_t beyond its range) or tg::dyn<\"name\">");
  Extents e;
  (e.push(Extent(Ds)), ...);
  return e;
}
}  // namespace detail
}  // namespace tg
