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
using RoutineKernel = typename kernel::choose_routine<R, ScatterKernel, SortKernel, ScanKernel>::type;

template <class R>
constexpr Entry entry(R) {
  if constexpr (R::kind == KernelKind::Map) return {MapKernel<R>::scratch, MapKernel<R>::run};
  else if constexpr (R::kind == KernelKind::Row) return {RowKernel<R>::scratch, RowKernel<R>::run};
  else if constexpr (R::kind == KernelKind::Column) return {ColumnKernel<R>::scratch, ColumnKernel<R>::run};
  else if constexpr (R::kind == KernelKind::Routine) return {RoutineKernel<R>::scratch, RoutineKernel<R>::run};
  else return {ContractKernel<R>::scratch, ContractKernel<R>::run};
}

}  // namespace tg::cpu
