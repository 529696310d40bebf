// A graph as text, one node a line, in the manner of HLO and of JAX's jaxprs.
#pragma once

#include <charconv>
#include <string>

#include "typegrad/graph/graph.hpp"

namespace tg {
namespace detail {

template <class N>
void append_number(std::string& out, N n) {
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), n).ptr);
}

inline void append_dim(std::string& out, const Dim& d, const std::vector<Name>& symbols) {
  if (d.is_static() || d.coefficient != 1) append_number(out, d.coefficient);
  bool first = d.coefficient == 1;
  for (std::uint32_t s = d.symbols; s != 0; s >>= 8) {
    if (!first) out += '*';
    out += symbols[(s & 255u) - 1].view();
    first = false;
  }
}

inline void append_shape(std::string& out, const Shape& s, const std::vector<Name>& symbols) {
  out += '[';
  for (int i = 0; i < s.rank; ++i) {
    if (i > 0) out += ", ";
    append_dim(out, s[i], symbols);
  }
  out += ']';
}

}  // namespace detail

// For example: %5 : float[batch, 512] = dot(%0, %4)
inline std::string to_string(const Graph& g) {
  std::string out;
  for (int id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    out += '%';
    detail::append_number(out, id);
    out += " : ";
    out += name(n.dtype);
    detail::append_shape(out, g.shape(id), g.symbols);
    out += " = ";
    out += name(n.op);
    out += '(';
    for (int a = 0; a < arity(n.op); ++a) {
      out += a > 0 ? ", %" : "%";
      detail::append_number(out, n.in[static_cast<std::size_t>(a)]);
    }
    switch (n.op) {
      case Op::Input: detail::append_number(out, n.attribute); break;
      case Op::Constant: detail::append_number(out, constant_value(n)); break;
      case Op::Size: detail::append_shape(out, g.shapes[static_cast<std::size_t>(n.attribute)], g.symbols); break;
      case Op::CheckIndex:
      case Op::Concat:
        out += ", ";
        detail::append_number(out, n.attribute);
        break;
      default: break;
    }
    out += ')';
    if (is_reduction(n.op)) {
      out += " over axes";
      for (int i = 0; i < max_rank; ++i)
        if ((n.attribute >> i) & 1) {
          out += ' ';
          detail::append_number(out, i);
        }
    } else if (n.op == Op::Transpose || n.op == Op::Slice || n.op == Op::Window || n.op == Op::Pad || n.op == Op::Dot) {
      const AttributeList& a = g.list(id);
      out += n.op == Op::Transpose ? " axes" : n.op == Op::Dot ? " batch and contracted axes" : n.op == Op::Window ? " size, step and dilation" : " from and step";
      for (int i = n.op == Op::Dot ? 1 : 0; i < a.size; ++i) {
        out += ' ';
        if (n.op == Op::Dot) {
          detail::append_number(out, a[i] / 16);
          out += '-';
          detail::append_number(out, a[i] % 16);
        } else {
          detail::append_number(out, a[i]);
        }
      }
    }
    out += '\n';
  }
  out += "return";
  for (std::size_t k = 0; k < g.outputs.size(); ++k) {
    out += k > 0 ? ", %" : " %";
    detail::append_number(out, g.outputs[k]);
    if (k < g.donors.size() && g.donors[k] >= 0) {
      out += " in place of input ";
      detail::append_number(out, g.donors[k]);
    }
  }
  out += '\n';
  return out;
}

}  // namespace tg
