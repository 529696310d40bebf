// The primitive operations: their codes, and the few facts passes need about them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tg {

// The order groups the codes by category; OpInfo below is indexed by it.
enum class Op : std::uint8_t {
  // Leaves
  Input, Constant, Iota, Size,
  // Element-wise, one operand
  Neg, Abs, Sign, Exp, Expm1, Log, Log1p, Sqrt, Rsqrt, Cbrt, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Erf,
  Erfc, Sigmoid, Relu, Floor, Ceil, Round, Trunc, Not, Cast, StopGradient, CheckIndex,
  // Element-wise, two operands
  Add, Sub, Mul, Div, Pow, Max, Min, Fmod, Atan2, Less, LessEqual, Equal, NotEqual, And, Or,
  RandomBits,
  // Element-wise, three operands
  Select,
  // Views: the same elements under another index map
  Broadcast, Reshape, Transpose, Slice, Window,
  // Views that need more than an affine index map
  Pad, Concat,
  // Reductions over the axes in the attribute, each kept as an extent of 1
  ReduceSum, ReduceProd, ReduceMax, ReduceMin,
  // Contractions
  Dot,
  // Element-wise in the second operand, whose values are positions in the first
  Gather,
  // Routines: a kernel of their own, from memory to memory
  ScatterAdd, ScatterMax, ArgSort, CumSum, LinearScan,
  // A hole that passes leave for a removed node
  count
};

enum class OpKind : std::uint8_t { leaf, elementwise, view, structural, reduction, contraction, indexed, routine };

struct OpInfo {
  std::string_view name;
  OpKind kind;
  int arity;
  int flops;  // per element of the result (reductions: per element of the operand); 0 for pure data movement
};

inline constexpr std::array<OpInfo, static_cast<std::size_t>(Op::count)> op_table{{
    {"input", OpKind::leaf, 0, 0}, {"constant", OpKind::leaf, 0, 0}, {"iota", OpKind::leaf, 0, 0},
    {"size", OpKind::leaf, 0, 0},
    {"neg", OpKind::elementwise, 1, 1}, {"abs", OpKind::elementwise, 1, 1}, {"sign", OpKind::elementwise, 1, 1},
    {"exp", OpKind::elementwise, 1, 15}, {"expm1", OpKind::elementwise, 1, 20}, {"log", OpKind::elementwise, 1, 15},
    {"log1p", OpKind::elementwise, 1, 20}, {"sqrt", OpKind::elementwise, 1, 5}, {"rsqrt", OpKind::elementwise, 1, 5},
    {"cbrt", OpKind::elementwise, 1, 15}, {"sin", OpKind::elementwise, 1, 15}, {"cos", OpKind::elementwise, 1, 15},
    {"tan", OpKind::elementwise, 1, 20}, {"asin", OpKind::elementwise, 1, 20}, {"acos", OpKind::elementwise, 1, 20},
    {"atan", OpKind::elementwise, 1, 20}, {"sinh", OpKind::elementwise, 1, 20}, {"cosh", OpKind::elementwise, 1, 20},
    {"tanh", OpKind::elementwise, 1, 20}, {"erf", OpKind::elementwise, 1, 20}, {"erfc", OpKind::elementwise, 1, 20},
    {"sigmoid", OpKind::elementwise, 1, 20}, {"relu", OpKind::elementwise, 1, 1}, {"floor", OpKind::elementwise, 1, 1},
    {"ceil", OpKind::elementwise, 1, 1}, {"round", OpKind::elementwise, 1, 1}, {"trunc", OpKind::elementwise, 1, 1},
    {"not", OpKind::elementwise, 1, 1}, {"cast", OpKind::elementwise, 1, 1},
    {"stop_gradient", OpKind::elementwise, 1, 0}, {"check_index", OpKind::elementwise, 1, 1},
    {"add", OpKind::elementwise, 2, 1}, {"sub", OpKind::elementwise, 2, 1}, {"mul", OpKind::elementwise, 2, 1},
    {"div", OpKind::elementwise, 2, 4}, {"pow", OpKind::elementwise, 2, 40}, {"maximum", OpKind::elementwise, 2, 1},
    {"minimum", OpKind::elementwise, 2, 1}, {"fmod", OpKind::elementwise, 2, 20}, {"atan2", OpKind::elementwise, 2, 30},
    {"less", OpKind::elementwise, 2, 1}, {"less_equal", OpKind::elementwise, 2, 1},
    {"equal", OpKind::elementwise, 2, 1}, {"not_equal", OpKind::elementwise, 2, 1},
    {"and", OpKind::elementwise, 2, 1}, {"or", OpKind::elementwise, 2, 1}, {"random_bits", OpKind::elementwise, 2, 40},
    {"select", OpKind::elementwise, 3, 1},
    {"broadcast", OpKind::view, 1, 0}, {"reshape", OpKind::view, 1, 0}, {"transpose", OpKind::view, 1, 0},
    {"slice", OpKind::view, 1, 0}, {"window", OpKind::view, 1, 0},
    {"pad", OpKind::structural, 1, 0}, {"concat", OpKind::structural, 2, 0},
    {"reduce_sum", OpKind::reduction, 1, 1}, {"reduce_prod", OpKind::reduction, 1, 1},
    {"reduce_max", OpKind::reduction, 1, 1}, {"reduce_min", OpKind::reduction, 1, 1},
    {"dot", OpKind::contraction, 2, 2},
    {"gather", OpKind::indexed, 2, 0},
    {"scatter_add", OpKind::routine, 2, 1}, {"scatter_max", OpKind::routine, 2, 1}, {"argsort", OpKind::routine, 1, 20},
    {"cumsum", OpKind::routine, 1, 1}, {"linear_scan", OpKind::routine, 2, 2},
}};

constexpr const OpInfo& info(Op op) { return op_table[static_cast<std::size_t>(op)]; }
constexpr std::string_view name(Op op) { return info(op).name; }
constexpr int arity(Op op) { return info(op).arity; }
constexpr bool is_elementwise(Op op) { return op >= Op::Neg && op <= Op::Select; }
constexpr bool is_view(Op op) { return op >= Op::Broadcast && op <= Op::Window; }
constexpr bool is_reduction(Op op) { return op >= Op::ReduceSum && op <= Op::ReduceMin; }
constexpr bool is_routine(Op op) { return info(op).kind == OpKind::routine; }
constexpr bool is_scatter(Op op) { return op == Op::ScatterAdd || op == Op::ScatterMax; }
// Too dear to compute again where the result could be kept.
constexpr bool is_transcendental(Op op) { return is_elementwise(op) && info(op).flops >= 15; }

}  // namespace tg
