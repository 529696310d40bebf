// The plan: kernels in the order they run, their programs and operands, and the buffers they use. Plain data.
#pragma once

#include <vector>

#include "typegrad/passes/layout.hpp"

namespace tg {

enum class KernelKind : std::uint8_t { Map, Row, Column, Contract, Routine };

// One step of a kernel's program. Its value is named by its position; a, b and c name earlier steps.
enum class Code : std::uint8_t {
  Load,     // the element of operand `slot`
  Literal,  // a constant: the bits of a double or an integer
  Index,    // the position along axes: sum of index × stride of operand `slot`
  Compute,  // an element-wise op
  Fold,     // a reduction along the reduced axes
  Product,  // the result of the contraction
  Gather,   // the element of operand `slot` at the position that is the value of a
  Routine,  // the result of a routine on the operands that are loaded, as a whole
  Store     // writes a to operand `slot`; not a value
};

struct Instruction {
  Code code = Code::Load;
  Op op = Op::Input;
  DType dtype = DType::f32;
  bool row = false;  // the value is the same for all elements along the reduced axes
  std::int16_t a = -1, b = -1, c = -1;
  std::int16_t slot = -1;
  std::int64_t bits = 0;  // Literal: the value; CheckIndex: the number of classes; Routine: the op's attribute
  constexpr bool operator==(const Instruction&) const = default;
};

// A buffer as a kernel sees it: where it begins and how far apart the elements along each axis lie.
struct KernelOperand {
  std::int32_t buffer = -1;  // -1: an Index
  DType dtype = DType::f32;
  Offset offset;
  std::array<Dim, max_rank> strides{};
};

// Axes: the kept ones, then the reduced ones. Contract: batched axes, rows, columns, then the contracted axes; its
// operands 0 and 1 are the factors. Routine: two axes, the rows and their elements (ScatterAdd, ScatterMax: updates and
// elements of the result); its operands lie row-major, the result's is the last.
struct Kernel {
  KernelKind kind = KernelKind::Map;
  std::int8_t kept = 0, reduced = 0;
  std::array<Dim, max_rank> extents{};
  std::int32_t first_instruction = 0, instructions = 0;
  std::int32_t first_operand = 0, operands = 0;
  std::int32_t node = -1;  // the last node it computes
};

// How an operand moves along the kernel's innermost axis: the last kept one, for rows the last reduced one.
enum class Access : std::uint8_t { uniform, contiguous, strided };
constexpr Access access_of(const Kernel& k, const KernelOperand& o) {
  const int inner = k.kind == KernelKind::Row ? k.kept + k.reduced - 1 : k.kept - 1;
  const Dim& stride = o.strides[static_cast<std::size_t>(inner)];
  return stride.is(0) ? Access::uniform : stride.is(1) ? Access::contiguous : Access::strided;
}

struct PlanBuffer {
  enum class Kind : std::uint8_t { Input, Output, Arena, Size };
  Kind kind = Kind::Arena;
  DType dtype = DType::f32;
  std::int32_t position = 0;  // Input, Output: which; Size: index into Graph::shapes
  Dim elements;
  std::int32_t first = -1, last = -1;  // Arena: the kernels between which it is alive
};

// Buffers in the arena start at multiples of this; a Size takes scalar_bytes behind them.
inline constexpr std::int64_t arena_alignment = 256, scalar_bytes = 64;

// The bytes that a buffer takes in the arena.
constexpr std::int64_t arena_size(const PlanBuffer& b, const std::int64_t* extents) {
  if (b.kind != PlanBuffer::Kind::Arena || b.first < 0) return 0;
  return (b.elements.evaluate(extents) * size_of(b.dtype) + arena_alignment - 1) / arena_alignment * arena_alignment;
}
constexpr bool alive_together(const PlanBuffer& a, const PlanBuffer& b) { return a.first <= b.last && b.first <= a.last; }

struct Plan {
  std::vector<Kernel> kernels;
  std::vector<Instruction> instructions;
  std::vector<KernelOperand> operands;
  std::vector<PlanBuffer> buffers;
};

// Offsets into one arena for buffers of given sizes that are alive between given kernels: each is placed in the
// lowest gap that no living buffer uses, the largest first (Pisarchyk and Lee 2020, greedy by size). Returns the peak.
// Sizes are multiples of the alignment. Quadratic in the number of buffers.
template <class Live, class Sizes, class Offsets>
constexpr std::int64_t place_buffers(int count, const Live& live, const Sizes& size, Offsets& offset, std::vector<int>& order) {
  order.clear();
  for (int i = 0; i < count; ++i)
    if (size(i) > 0) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return size(a) != size(b) ? size(a) > size(b) : a < b; });
  std::int64_t peak = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const int i = order[k];
    std::int64_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t j = 0; j < k; ++j) {
        const int o = order[j];
        if (!live(i, o) || at >= offset[static_cast<std::size_t>(o)] + size(o) || at + size(i) <= offset[static_cast<std::size_t>(o)]) continue;
        at = offset[static_cast<std::size_t>(o)] + size(o);
        moved = true;
      }
    }
    offset[static_cast<std::size_t>(i)] = at;
    if (at + size(i) > peak) peak = at + size(i);
  }
  return peak;
}

}  // namespace tg
