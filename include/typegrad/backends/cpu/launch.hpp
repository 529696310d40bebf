// The entry of each kernel into a program's launch table.
#pragma once

#include "typegrad/backends/cpu/column.hpp"
#include "typegrad/backends/cpu/contract.hpp"
#include "typegrad/backends/cpu/map.hpp"
#include "typegrad/backends/cpu/row.hpp"
#include "typegrad/backends/cpu/scan.hpp"
#include "typegrad/backends/cpu/scatter.hpp"
#include "typegrad/backends/cpu/sort.hpp"

namespace tg::cpu {

struct Entry {
  std::int64_t (*scratch)(const kernel::Launch&, int threads);  // bytes needed while the kernel runs
  void (*run)(const kernel::Launch&, const Context&);
};

template <class R>
consteval auto routine_kernel() {
  constexpr Op op = kernel::RoutineTraits<typename R::program>::op;
  if constexpr (op == Op::ScatterAdd || op == Op::ScatterMax) return std::type_identity<ScatterKernel<R>>{};
  else if constexpr (op == Op::ArgSort) return std::type_identity<SortKernel<R>>{};
  else return std::type_identity<ScanKernel<R>>{};
}

template <class R>
constexpr Entry entry(R) {
  if constexpr (R::kind == KernelKind::Map) return {MapKernel<R>::scratch, MapKernel<R>::run};
  else if constexpr (R::kind == KernelKind::Row) return {RowKernel<R>::scratch, RowKernel<R>::run};
  else if constexpr (R::kind == KernelKind::Column) return {ColumnKernel<R>::scratch, ColumnKernel<R>::run};
  else if constexpr (R::kind == KernelKind::Routine) return {decltype(routine_kernel<R>())::type::scratch, decltype(routine_kernel<R>())::type::run};
  else return {ContractKernel<R>::scratch, ContractKernel<R>::run};
}

}  // namespace tg::cpu
