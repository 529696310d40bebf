// Layouts: where the elements of a node lie in the buffer of the node it is a view of.
#pragma once

#include "typegrad/graph/graph.hpp"

namespace tg {

// A sum of products of extents, as offsets into buffers are.
struct Offset {
  std::array<Dim, 3> terms{};
  constexpr void add(Dim d) {
    if (d.coefficient == 0) return;
    for (Dim& t : terms)
      if (t.coefficient == 0 || t.symbols == d.symbols) {
        t = Dim(t.coefficient + d.coefficient, d.symbols);
        return;
      }
    throw "an offset with more than three different products of named extents";
  }
  constexpr std::int64_t evaluate(const std::int64_t* extents) const {
    std::int64_t v = 0;
    for (const Dim& t : terms) v += t.evaluate(extents);
    return v;
  }
  constexpr bool operator==(const Offset&) const = default;
};

struct Layout {
  int base = -1;  // the node whose buffer is read; -1 where no affine map exists
  Offset offset;
  std::array<Dim, max_rank> strides{};
  constexpr Dim& stride(int axis) { return strides[static_cast<std::size_t>(axis)]; }
  constexpr const Dim& stride(int axis) const { return strides[static_cast<std::size_t>(axis)]; }
};

constexpr Layout row_major(int base, const Shape& s) {
  Layout l;
  l.base = base;
  Dim n = 1;
  for (int i = s.rank - 1; i >= 0; --i) {
    l.stride(i) = n;
    n = n * s[i];
  }
  return l;
}

constexpr bool is_row_major(const Layout& l, const Shape& s) {
  Dim n = 1;
  for (int i = s.rank - 1; i >= 0; --i) {
    if (!s[i].is(1) && !(l.stride(i) == n)) return false;
    n = n * s[i];
  }
  return true;
}

// The layout of a node seen through the views between it and `base`, the first node for which is_base holds.
// Base -1: a reshape in between would need a copy.
template <class IsBase>
constexpr Layout view_layout(const Graph& g, int id, IsBase is_base) {
  const Shape& s = g.shape(id);
  if (is_base(id) || !is_view(g[id].op)) return row_major(id, s);
  const int x = g[id].in[0];
  const Layout inner = view_layout(g, x, is_base);
  if (inner.base < 0) return inner;
  Layout l;
  l.base = inner.base;
  l.offset = inner.offset;
  const Shape& from = g.shape(x);
  switch (g[id].op) {
    case Op::Broadcast:
      for (int i = 1; i <= from.rank; ++i)
        if (!from[from.rank - i].is(1) || s[s.rank - i].is(1)) l.stride(s.rank - i) = inner.stride(from.rank - i);
      return l;
    case Op::Transpose: {
      const AttributeList& p = g.list(id);
      for (int i = 0; i < s.rank; ++i) l.stride(i) = inner.stride(static_cast<int>(p[i]));
      return l;
    }
    case Op::Slice: {
      const AttributeList& a = g.list(id);
      for (int i = 0; i < s.rank; ++i) {
        l.offset.add(Dim(a[i]) * inner.stride(i));
        l.stride(i) = Dim(a[s.rank + i]) * inner.stride(i);
      }
      return l;
    }
    case Op::Window: {
      const AttributeList& a = g.list(id);
      for (int i = 0, w = from.rank; i < from.rank; ++i) {
        l.stride(i) = Dim(a[3 * i + 1]) * inner.stride(i);
        if (a[3 * i] > 0) l.stride(w++) = Dim(a[3 * i + 2]) * inner.stride(i);
      }
      return l;
    }
    case Op::Reshape: {
      if (is_row_major(inner, from)) {
        const Layout whole = row_major(inner.base, s);
        l.strides = whole.strides;
        return l;
      }
      // Axes of extent 1 come and go without moving an element.
      int j = 0;
      bool only_units = true;
      for (int i = 0; i < s.rank; ++i) {
        if (s[i].is(1)) continue;
        while (j < from.rank && from[j].is(1)) ++j;
        if (j == from.rank || !(from[j] == s[i])) {
          only_units = false;
          break;
        }
        l.stride(i) = inner.stride(j++);
      }
      if (!only_units) l.base = -1;
      return l;
    }
    default: return l;
  }
}

}  // namespace tg
