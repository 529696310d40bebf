// The computation graph: plain data that every pass reads and writes, at compile time or at run time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "typegrad/graph/dtype.hpp"
#include "typegrad/graph/op.hpp"

namespace tg {

inline constexpr int max_rank = 8;

// The name of a run-time extent, at most 15 characters.
struct Name {
  char text[16]{};
  constexpr Name() = default;
  constexpr explicit Name(std::string_view s) {
    if (s.size() > 15) throw "the name of an extent has at most 15 characters";
    for (std::size_t i = 0; i < s.size(); ++i) text[i] = s[i];
  }
  constexpr std::string_view view() const { return {text}; }
  constexpr bool operator==(const Name&) const = default;
};

// An extent or a stride: coefficient × up to four named extents (ids into Graph::symbols, 1-based, packed a byte
// each, the largest in the lowest byte; 0 for none). Negative coefficients occur in strides only.
struct Dim {
  std::int64_t coefficient = 0;
  std::uint32_t symbols = 0;

  constexpr Dim() = default;
  constexpr Dim(std::int64_t extent) : coefficient(extent) {}
  constexpr Dim(std::int64_t c, std::uint32_t s) : coefficient(c), symbols(c == 0 ? 0 : s) {}
  constexpr bool is_static() const { return symbols == 0; }
  constexpr bool is(std::int64_t n) const { return symbols == 0 && coefficient == n; }
  constexpr bool operator==(const Dim&) const = default;

  friend constexpr Dim operator*(Dim a, Dim b) {
    if (a.symbols == 0 || b.symbols == 0) return {a.coefficient * b.coefficient, a.symbols | b.symbols};
    // Merges two descending lists of ids.
    std::uint32_t packed = 0, x = a.symbols, y = b.symbols;
    for (int shift = 0; x != 0 || y != 0; shift += 8) {
      if (shift == 32) throw "a product of more than four named extents";
      std::uint32_t& larger = (x & 255u) >= (y & 255u) ? x : y;
      packed |= (larger & 255u) << shift;
      larger >>= 8;
    }
    return {a.coefficient * b.coefficient, packed};
  }

  // The value once each named extent is known; extents[i] belongs to id i + 1.
  constexpr std::int64_t evaluate(const std::int64_t* extents) const {
    std::int64_t v = coefficient;
    for (std::uint32_t s = symbols; s != 0; s >>= 8) v *= extents[(s & 255u) - 1];
    return v;
  }
};

struct Shape {
  int rank = 0;
  std::array<Dim, max_rank> dims{};

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<Dim> extents) {
    for (Dim d : extents) push(d);
  }
  constexpr void push(Dim d) {
    if (rank == max_rank) throw "a tensor has at most eight axes";
    dims[static_cast<std::size_t>(rank++)] = d;
  }
  constexpr Dim& operator[](int axis) { return dims[static_cast<std::size_t>(axis)]; }
  constexpr const Dim& operator[](int axis) const { return dims[static_cast<std::size_t>(axis)]; }
  constexpr Dim size() const {
    Dim n = 1;
    for (int i = 0; i < rank; ++i) n = n * dims[static_cast<std::size_t>(i)];
    return n;
  }
  constexpr bool operator==(const Shape& o) const {
    if (rank != o.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (!((*this)[i] == o[i])) return false;
    return true;
  }
};

// Attributes longer than one number: permutation, slice starts and steps, dot axes, padding.
struct AttributeList {
  int size = 0;
  std::array<std::int64_t, 2 * max_rank> values{};
  constexpr void push(std::int64_t v) { values[static_cast<std::size_t>(size++)] = v; }
  constexpr std::int64_t operator[](int i) const { return values[static_cast<std::size_t>(i)]; }
  constexpr bool operator==(const AttributeList& o) const {
    if (size != o.size) return false;
    for (int i = 0; i < size; ++i)
      if ((*this)[i] != o[i]) return false;
    return true;
  }
};

// How many of the first positions a sort gives, and its order, as one number.
struct SortAttribute {
  std::int64_t count;
  bool descending;
  static constexpr SortAttribute of(std::int64_t bits) { return {bits / 2, bits % 2 != 0}; }
  constexpr std::int64_t bits() const { return 2 * count + descending; }
};

// One operation. `attribute` by op:
//   Input      position among the program's inputs
//   Constant   the value's bits: a double for floating types, the integer otherwise
//   Size       an index into Graph::shapes: the value is the number of elements of that shape, a scalar
//   CheckIndex the number of classes: 0 <= value < attribute is checked when the program runs
//   Reduce*    bit mask of the reduced axes
//   Concat     the axis
//   ArgSort    a SortAttribute
//   Transpose, Slice, Window, Pad, Dot   index into Graph::attributes
struct Node {
  Op op = Op::Input;
  DType dtype = DType::f32;
  std::int32_t shape = 0;  // index into Graph::shapes
  std::array<std::int32_t, 3> in{-1, -1, -1};
  std::int64_t attribute = 0;
  constexpr bool operator==(const Node&) const = default;
};

// What a training step offers the layers that are traced in it (nn/training.hpp). Not active: they infer.
struct Training {
  bool active = false;
  std::int32_t key = -1;   // the node of the step's random key
  std::int64_t draws = 0;  // how many layers have drawn from it
  std::vector<std::array<std::int32_t, 2>> updates;  // a buffer's node, the node of its value after the step
};

// Nodes in topological order: operands precede their users. Shapes and attribute lists are interned, so equal
// nodes compare equal member by member.
struct Graph {
  std::vector<Node> nodes;
  std::vector<Shape> shapes;
  std::vector<AttributeList> attributes;
  std::vector<Name> symbols;
  std::vector<std::int32_t> outputs;
  // For each output the input whose memory it takes over (an update in place), or -1; empty means none does.
  std::vector<std::int32_t> donors;
  // For each gradient that was taken the loss and the adjoints, in the order in which they are computed best: while what they
  // need is at hand (graph/order.hpp).
  std::vector<std::vector<std::int32_t>> sweeps;
  Training training;
  // How many blocks of a stack (nn/stack.hpp) the trace shows at most, and whether a stack has more.
  static constexpr int all_blocks = 0x7fffffff;
  int depth = all_blocks;
  bool shortened = false;

  constexpr int size() const { return static_cast<int>(nodes.size()); }
  constexpr const Node& operator[](int id) const { return nodes[static_cast<std::size_t>(id)]; }
  constexpr Node& operator[](int id) { return nodes[static_cast<std::size_t>(id)]; }
  constexpr const Shape& shape(int id) const {
    return shapes[static_cast<std::size_t>(nodes[static_cast<std::size_t>(id)].shape)];
  }
  constexpr const AttributeList& list(int id) const {
    return attributes[static_cast<std::size_t>(nodes[static_cast<std::size_t>(id)].attribute)];
  }

  constexpr std::int32_t intern(const Shape& s) {
    for (std::size_t i = shapes.size(); i-- > 0;)
      if (shapes[i] == s) return static_cast<std::int32_t>(i);
    shapes.push_back(s);
    return static_cast<std::int32_t>(shapes.size() - 1);
  }
  constexpr std::int64_t intern(const AttributeList& a) {
    for (std::size_t i = attributes.size(); i-- > 0;)
      if (attributes[i] == a) return static_cast<std::int64_t>(i);
    attributes.push_back(a);
    return static_cast<std::int64_t>(attributes.size() - 1);
  }
  constexpr Dim intern(const Name& n) {
    std::size_t i = 0;
    while (i < symbols.size() && !(symbols[i] == n)) ++i;
    if (i == 255) throw "a graph has at most 255 named extents";
    if (i == symbols.size()) symbols.push_back(n);
    return {1, static_cast<std::uint32_t>(i + 1)};
  }

  constexpr int push(const Node& n) {
    nodes.push_back(n);
    return size() - 1;
  }
  constexpr int add(Op op, DType dtype, const Shape& s, int a = -1, int b = -1, int c = -1, std::int64_t attribute = 0) {
    return push({op, dtype, intern(s), {a, b, c}, attribute});
  }
};

constexpr std::int64_t constant_bits(DType t, double value) {
  const double limit = t == DType::i8 ? 128 : t == DType::i32 ? 2147483648.0 : 9223372036854775808.0;
  if (is_integer(t) && !(value >= -limit && value < limit)) throw "a number is out of the range of the integers it meets";
  return is_floating(t) ? std::bit_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}
constexpr double constant_value(const Node& n) {
  return is_floating(n.dtype) ? std::bit_cast<double>(n.attribute) : static_cast<double>(n.attribute);
}

// The axes of a contraction: which axes of each operand are batched and which are summed over. The result's axes
// are the batched ones, then the free ones of the left operand, then those of the right (as HLO's dot_general).
struct DotAxes {
  std::array<int, max_rank> lhs_batch{}, rhs_batch{}, lhs_contract{}, rhs_contract{};
  int batch = 0, contract = 0;

  constexpr AttributeList encode() const {
    AttributeList a;
    a.push(batch);
    for (int i = 0; i < batch; ++i) a.push(lhs_batch[static_cast<std::size_t>(i)] * 16 + rhs_batch[static_cast<std::size_t>(i)]);
    for (int i = 0; i < contract; ++i)
      a.push(lhs_contract[static_cast<std::size_t>(i)] * 16 + rhs_contract[static_cast<std::size_t>(i)]);
    return a;
  }
  static constexpr DotAxes decode(const AttributeList& a) {
    DotAxes d;
    d.batch = static_cast<int>(a[0]);
    d.contract = a.size - 1 - d.batch;
    for (int i = 0; i < a.size - 1; ++i) {
      const int lhs = static_cast<int>(a[i + 1] / 16), rhs = static_cast<int>(a[i + 1] % 16);
      if (i < d.batch) {
        d.lhs_batch[static_cast<std::size_t>(i)] = lhs;
        d.rhs_batch[static_cast<std::size_t>(i)] = rhs;
      } else {
        d.lhs_contract[static_cast<std::size_t>(i - d.batch)] = lhs;
        d.rhs_contract[static_cast<std::size_t>(i - d.batch)] = rhs;
      }
    }
    return d;
  }
  // 'b' batched, 'k' contracted, 'f' free.
  constexpr char role(bool lhs, int axis) const {
    for (int i = 0; i < batch; ++i)
      if ((lhs ? lhs_batch : rhs_batch)[static_cast<std::size_t>(i)] == axis) return 'b';
    for (int i = 0; i < contract; ++i)
      if ((lhs ? lhs_contract : rhs_contract)[static_cast<std::size_t>(i)] == axis) return 'k';
    return 'f';
  }
};

}  // namespace tg
