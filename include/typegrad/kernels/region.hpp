// Fused regions as types: the program of a kernel spelled as a type, so that the compiler inlines and vectorises it and
// equal regions share one instantiation. Extents, strides and addresses are run-time arguments.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "typegrad/kernels/region_key.hpp"

namespace tg::kernel {

using tg::Access;

// The steps of a program, by the meaning of tg::Code. T is the element type; Row: constant along the reduced axes.
template <class T, int Slot, bool Row> struct Load {};
template <class T, std::int64_t Bits> struct Literal {};
template <class T, int Slot, bool Row> struct Index {};
template <Op O, class T, bool Row, int... Args> struct Compute {};
template <class T, bool Row, std::int64_t Classes, int Arg> struct Check {};
template <Op O, class T, int Arg> struct Fold {};
template <class T> struct Product {};
template <class T, int Slot, bool Row, int Arg> struct Gather {};
template <Op O, class T, std::int64_t Bits, int... Args> struct Routine {};
template <class T, int Slot, bool Row, int Arg> struct Store {};

template <class... Steps> struct Program {
  static constexpr int size = static_cast<int>(sizeof...(Steps));
};
template <Access... A> struct Accesses {
  static constexpr std::array<Access, sizeof...(A)> value{A...};
};

// What the passes of a kernel over its elements need to know of each step.
struct StepInfo {
  Code code = Code::Load;
  Op op = Op::Input;
  DType dtype = DType::f32;
  bool row = false;
  std::array<int, 3> args{-1, -1, -1};
  int slot = -1;
};

template <class S> struct step_traits;
template <class T, int Slot, bool Row> struct step_traits<Load<T, Slot, Row>> {
  using type = T;
  static constexpr StepInfo info{Code::Load, Op::Input, dtype_of<T>, Row, {-1, -1, -1}, Slot};
};
template <class T, std::int64_t Bits> struct step_traits<Literal<T, Bits>> {
  using type = T;
  static constexpr StepInfo info{Code::Literal, Op::Constant, dtype_of<T>, true, {-1, -1, -1}, -1};
};
template <class T, int Slot, bool Row> struct step_traits<Index<T, Slot, Row>> {
  using type = T;
  static constexpr StepInfo info{Code::Index, Op::Iota, dtype_of<T>, Row, {-1, -1, -1}, Slot};
};
template <Op O, class T, bool Row, int... Args> struct step_traits<Compute<O, T, Row, Args...>> {
  using type = T;
  static constexpr StepInfo info{Code::Compute, O, dtype_of<T>, Row, {Args...}, -1};
};
template <class T, bool Row, std::int64_t Classes, int Arg> struct step_traits<Check<T, Row, Classes, Arg>> {
  using type = T;
  static constexpr StepInfo info{Code::Compute, Op::CheckIndex, dtype_of<T>, Row, {Arg, -1, -1}, -1};
};
template <Op O, class T, int Arg> struct step_traits<Fold<O, T, Arg>> {
  using type = T;
  static constexpr StepInfo info{Code::Fold, O, dtype_of<T>, true, {Arg, -1, -1}, -1};
};
template <class T> struct step_traits<Product<T>> {
  using type = T;
  static constexpr StepInfo info{Code::Product, Op::Dot, dtype_of<T>, false, {-1, -1, -1}, -1};
};
template <class T, int Slot, bool Row, int Arg> struct step_traits<Gather<T, Slot, Row, Arg>> {
  using type = T;
  static constexpr StepInfo info{Code::Gather, Op::Gather, dtype_of<T>, Row, {Arg, -1, -1}, Slot};
};
template <Op O, class T, std::int64_t Bits, int... Args> struct step_traits<Routine<O, T, Bits, Args...>> {
  using type = T;
  static constexpr StepInfo info{Code::Routine, O, dtype_of<T>, false, {Args...}, -1};
};
template <class T, int Slot, bool Row, int Arg> struct step_traits<Store<T, Slot, Row, Arg>> {
  using type = T;
  static constexpr StepInfo info{Code::Store, Op::Input, dtype_of<T>, Row, {Arg, -1, -1}, Slot};
};

template <KernelKind K, int Kept, int Reduced, class AccessList, class P> struct Region;

template <KernelKind K, int Kept, int Reduced, Access... A, class... Steps>
struct Region<K, Kept, Reduced, Accesses<A...>, Program<Steps...>> {
  static constexpr KernelKind kind = K;
  static constexpr int kept = Kept, reduced = Reduced, axes = Kept + Reduced;
  static constexpr int steps = static_cast<int>(sizeof...(Steps)), operands = static_cast<int>(sizeof...(A));
  using program = Program<Steps...>;
  static constexpr std::array<Access, sizeof...(A)> access{A...};
  static constexpr std::array<StepInfo, sizeof...(Steps)> info{step_traits<Steps>::info...};
  static constexpr std::array<std::int64_t, sizeof...(A)> element_size = [] {
    std::array<std::int64_t, sizeof...(A)> r{};
    for (const StepInfo& s : info)
      if (s.slot >= 0 && s.code != Code::Index) r[static_cast<std::size_t>(s.slot)] = size_of(s.dtype);
    if (K == KernelKind::Contract)
      for (const StepInfo& s : info)
        if (s.code == Code::Product) r[0] = r[1] = size_of(s.dtype);
    return r;
  }();

  // The pass over the elements after which a step's value exists: a Fold of pass p is there when p has run.
  static constexpr std::array<int, sizeof...(Steps)> phase = [] {
    std::array<int, sizeof...(Steps)> r{};
    for (std::size_t i = 0; i < sizeof...(Steps); ++i) {
      for (int a : info[i].args)
        if (a >= 0 && r[static_cast<std::size_t>(a)] > r[i]) r[i] = r[static_cast<std::size_t>(a)];
      if (info[i].code == Code::Fold) ++r[i];
    }
    return r;
  }();
  static constexpr int phases = [] {
    int r = 0;
    for (std::size_t i = 0; i < sizeof...(Steps); ++i)
      if (info[i].code == Code::Fold && phase[i] > r) r = phase[i];
    return r;
  }();
  // What a pass over the elements does with a step.
  enum class Mode : std::uint8_t { skip, compute, keep, reload };
  using Modes = std::array<Mode, sizeof...(Steps)>;

  // Passes over the elements: one per phase of folds, and a last one if elements are stored that depend on all of them.
  static constexpr int passes = [] {
    int r = phases;
    for (std::size_t i = 0; i < sizeof...(Steps); ++i)
      if (info[i].code == Code::Store && !info[i].row && phase[i] == phases) r = phases + 1;
    return r;
  }();

  // Pass p computes what its folds and its stores of elements need. A value that is dear to compute is kept where a
  // later pass needs it again (kind Row only).
  using PassModes = std::array<Modes, static_cast<std::size_t>(passes > 0 ? passes : 1)>;
  static constexpr auto modes_with = [](bool keeps) {
    PassModes r{};
    std::array<int, sizeof...(Steps)> kept_by{};
    for (int& k : kept_by) k = -1;
    auto need = [&](Modes& m, int step) {
      const auto i = static_cast<std::size_t>(step);
      m[i] = kept_by[i] >= 0 ? Mode::reload : Mode::compute;
    };
    for (int p = 0; p < passes; ++p) {
      Modes& m = r[static_cast<std::size_t>(p)];
      for (std::size_t i = sizeof...(Steps); i-- > 0;) {
        const StepInfo& s = info[i];
        if (s.code == Code::Fold && phase[i] == p + 1) {
          if (!info[static_cast<std::size_t>(s.args[0])].row) need(m, s.args[0]);
          continue;
        }
        if (s.code == Code::Store && !s.row && phase[i] == p) m[i] = Mode::compute;
        if (m[i] != Mode::compute) continue;
        for (int a : s.args)
          if (a >= 0 && !info[static_cast<std::size_t>(a)].row) need(m, a);
      }
      for (std::size_t i = 0; keeps && i < sizeof...(Steps); ++i)
        if (m[i] == Mode::compute && info[i].code == Code::Compute && is_transcendental(info[i].op) && is_floating(info[i].dtype))
          kept_by[i] = p;
    }
    // Only what is reloaded needs to be kept.
    for (std::size_t i = 0; i < sizeof...(Steps); ++i) {
      bool again = false;
      for (const Modes& m : r) again = again || m[i] == Mode::reload;
      if (again) r[static_cast<std::size_t>(kept_by[i])][i] = Mode::keep;
    }
    return r;
  };
  static constexpr PassModes modes = modes_with(K == KernelKind::Row);
  // For back ends that compute again what another pass has computed.
  static constexpr PassModes recomputing_modes = modes_with(false);
  // The number of a kept value among them, or -1.
  static constexpr std::array<int, sizeof...(Steps)> kept_index = [] {
    std::array<int, sizeof...(Steps)> r{};
    int n = 0;
    for (std::size_t i = 0; i < sizeof...(Steps); ++i) {
      r[i] = -1;
      for (const Modes& m : modes)
        if (m[i] == Mode::keep) r[i] = n++;
    }
    return r;
  }();
  static constexpr int kept_values = [] {
    int n = 0;
    for (int k : kept_index) n += k >= 0;
    return n;
  }();
};

// Region R of a set S, which holds its keys as static constexpr arrays words and starts.
template <class S, int R>
struct region_at {
  static constexpr std::size_t first = S::starts[static_cast<std::size_t>(R)];
  static constexpr RegionHead head = RegionHead::decode(S::words[first]);

  template <int I>
  static consteval auto step() {
    constexpr std::size_t at = first + 1 + static_cast<std::size_t>(head.access_words() + 2 * I);
    constexpr Instruction i = tg::detail::decode_step({S::words[at], S::words[at + 1]});
    using T = element_t<i.dtype>;
    if constexpr (i.code == Code::Load) return Load<T, i.slot, i.row>{};
    else if constexpr (i.code == Code::Literal) return Literal<T, i.bits>{};
    else if constexpr (i.code == Code::Index) return Index<T, i.slot, i.row>{};
    else if constexpr (i.code == Code::Fold) return Fold<i.op, T, i.a>{};
    else if constexpr (i.code == Code::Product) return Product<T>{};
    else if constexpr (i.code == Code::Gather) return Gather<T, i.slot, i.row, i.a>{};
    else if constexpr (i.code == Code::Routine && i.b >= 0) return Routine<i.op, T, i.bits, i.a, i.b>{};
    else if constexpr (i.code == Code::Routine) return Routine<i.op, T, i.bits, i.a>{};
    else if constexpr (i.code == Code::Store) return Store<T, i.slot, i.row, i.a>{};
    else if constexpr (i.op == Op::CheckIndex) return Check<T, i.row, i.bits, i.a>{};
    else if constexpr (i.c >= 0) return Compute<i.op, T, i.row, i.a, i.b, i.c>{};
    else if constexpr (i.b >= 0) return Compute<i.op, T, i.row, i.a, i.b>{};
    else return Compute<i.op, T, i.row, i.a>{};
  }
  static consteval Access access(int slot) { return access_in(S::words.data() + first, slot); }
  template <int... I, int... O>
  static consteval auto make(std::integer_sequence<int, I...>, std::integer_sequence<int, O...>) {
    return Region<head.kind, head.kept, head.reduced, Accesses<access(O)...>, Program<decltype(step<I>())...>>{};
  }
  // The region as a value of its type. Kernel templates deduce their argument from it: a name that leads through this
  // template would put the user's lambda into nvcc's host stubs, which cannot spell it.
  static consteval auto get() {
    return make(std::make_integer_sequence<int, head.instructions>{}, std::make_integer_sequence<int, head.operands>{});
  }
};

// A kernel bound to extents, strides and addresses. strides[slot * axes + axis], in elements.
struct Launch {
  const std::int64_t* extents;
  const std::int64_t* strides;
  std::byte* const* pointers;  // by slot, the offset included
};

// What a check_index found: the first offending element of a run.
struct IndexFault {
  std::int64_t position = -1;
  std::int64_t value = 0;
  std::int64_t classes = 0;
};

}  // namespace tg::kernel
