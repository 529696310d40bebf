// Runs a bound plan on the GPU: kernel by kernel the first time, as one captured graph after that.
#pragma once

#include "typegrad/backends/cuda/column.hpp"
#include "typegrad/backends/cuda/contract.hpp"
#include "typegrad/backends/cuda/map.hpp"
#include "typegrad/backends/cuda/row.hpp"
#include "typegrad/backends/cuda/scan.hpp"
#include "typegrad/backends/cuda/scatter.hpp"
#include "typegrad/backends/cuda/sort.hpp"
#include "typegrad/runtime/binding.hpp"
#include "typegrad/runtime/profile.hpp"

namespace tg::cuda {

struct Entry {
  std::int64_t (*scratch)(const kernel::Launch&);
  void (*run)(const kernel::Launch&, const Context&);
};

template <class R>
using RoutineKernel = typename kernel::choose_routine<R, ScatterKernel, SortKernel, ScanKernel>::type;

template <class R>
constexpr Entry entry(R) {
  if constexpr (R::kind == KernelKind::Map) return {MapKernel<R>::scratch, [](const kernel::Launch& l, const Context& c) { MapKernel<R>::run(l, c); }};
  else if constexpr (R::kind == KernelKind::Row) return {RowKernel<R>::scratch, RowKernel<R>::run};
  else if constexpr (R::kind == KernelKind::Column) return {ColumnKernel<R>::scratch, ColumnKernel<R>::run};
  else if constexpr (R::kind == KernelKind::Routine) return {RoutineKernel<R>::scratch, RoutineKernel<R>::run};
  else return {ContractKernel<R>::scratch, ContractKernel<R>::run};
}

class Executor {
 public:
  Executor(const Compiled& c, std::span<const Entry> entries) : entries_(entries), binding_(c) {
    for (const Instruction& i : c.plan.instructions) {
      contracts_ = contracts_ || i.code == Code::Product;
      checks_ = checks_ || i.op == Op::CheckIndex;
    }
  }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor() { forget(); }

  void run(const std::vector<std::int64_t>& extents, void* const* inputs, std::size_t input_count, void* const* outputs, std::size_t output_count) {
    if (!bound_ || extents != binding_.values()) bind(extents);
    if (profile_ != nullptr) return run_profiled(inputs, outputs);
    key_.assign(inputs, inputs + input_count);
    key_.insert(key_.end(), outputs, outputs + output_count);
    for (const Captured& g : graphs_)
      if (g.addresses == key_) return check(cudaGraphLaunch(g.graph, stream()), "cannot launch a captured graph");
    binding_.point(inputs, outputs, static_cast<std::byte*>(memory_.data()));
    const Context c = context();
    if (!warm_) {
      launch_all(c);
      warm_ = true;
      return;
    }
    capture(c);
    check(cudaGraphLaunch(graphs_.back().graph, stream()), "cannot launch a captured graph");
  }

  std::int64_t arena_bytes() const { return bytes_; }
  const Binding& binding() const { return binding_; }
  // Seconds spent in each kernel are added up there from now on, kernel by kernel and without a graph; nullptr stops it.
  void profile(std::vector<KernelTime>* times) { profile_ = times; }
  // Graphs that are captured at present.
  std::size_t captured() const { return graphs_.size(); }

 private:
  struct Captured {
    std::vector<void*> addresses;
    cudaGraphExec_t graph = nullptr;
  };
  static constexpr std::size_t most_graphs = 8;  // programs run on few sets of addresses, since memory is reused
  static constexpr std::int64_t blas_workspace = 32 << 20;

  void forget() {
    for (const Captured& g : graphs_) (void)cudaGraphExecDestroy(g.graph);
    graphs_.clear();
  }

  Context context() const {
    std::byte* const base = static_cast<std::byte*>(memory_.data());
    Context c;
    c.stream = stream();
    c.fault = reinterpret_cast<kernel::IndexFault*>(base + binding_.arena_bytes());
    c.scratch = base + binding_.arena_bytes() + 256;
    c.workspace = c.scratch + scratch_;
    c.workspace_bytes = contracts_ ? static_cast<std::size_t>(blas_workspace) : 0;
    return c;
  }

  void launch_all(const Context& c) {
    if (checks_) check(cudaMemsetAsync(c.fault, 0xff, sizeof(kernel::IndexFault), c.stream), "cudaMemsetAsync");
    for (std::size_t k = 0; k < entries_.size(); ++k) entries_[k].run(binding_.launch(k), c);
    if (checks_) check(cudaMemcpyAsync(pending_fault(), c.fault, sizeof(kernel::IndexFault), cudaMemcpyDeviceToHost, c.stream), "cudaMemcpyAsync");
  }

  void capture(const Context& c) {
    if (graphs_.size() == most_graphs) forget();
    check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "cannot begin a capture");
    cudaGraph_t graph = nullptr;
    try {
      launch_all(c);
    } catch (...) {
      (void)cudaStreamEndCapture(stream(), &graph);
      if (graph != nullptr) (void)cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream(), &graph), "cannot end a capture");
    Captured g;
    g.addresses = key_;
    const cudaError_t e = cudaGraphInstantiate(&g.graph, graph, 0);
    (void)cudaGraphDestroy(graph);
    check(e, "cannot instantiate a captured graph");
    graphs_.push_back(std::move(g));
  }

  void run_profiled(void* const* inputs, void* const* outputs) {
    binding_.point(inputs, outputs, static_cast<std::byte*>(memory_.data()));
    const Context c = context();
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      check(cudaStreamSynchronize(c.stream), "a kernel failed");
      const Stopwatch watch(&(*profile_)[k]);
      entries_[k].run(binding_.launch(k), c);
      check(cudaStreamSynchronize(c.stream), "a kernel failed");
    }
  }

  void bind(const std::vector<std::int64_t>& extents) {
    bound_ = false;
    warm_ = false;
    forget();
    binding_.bind(extents);
    scratch_ = 0;
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      const std::int64_t s = (entries_[k].scratch(binding_.launch(k)) + 255) / 256 * 256;
      scratch_ = s > scratch_ ? s : scratch_;
    }
    bytes_ = binding_.arena_bytes() + 256 + scratch_ + (contracts_ ? blas_workspace : 0);
    if (bytes_ > capacity_) {
      memory_ = {};
      memory_ = tg::detail::Storage<Cuda>(static_cast<std::size_t>(bytes_));
      capacity_ = bytes_;
    }
    auto* const base = static_cast<std::byte*>(memory_.data());
    binding_.write_sizes([&](std::int64_t offset, const std::byte* bytes, std::size_t size) { DeviceMemory<Cuda>::from_host(base + offset, bytes, size); });
    check(cudaMemsetAsync(context().fault, 0xff, sizeof(kernel::IndexFault), stream()), "cudaMemsetAsync");
    bound_ = true;
  }

  std::span<const Entry> entries_;
  Binding binding_;
  tg::detail::Storage<Cuda> memory_;
  std::vector<Captured> graphs_;
  std::vector<void*> key_;
  std::int64_t bytes_ = 0, capacity_ = 0, scratch_ = 0;
  bool bound_ = false, warm_ = false, contracts_ = false, checks_ = false;
  std::vector<KernelTime>* profile_ = nullptr;
};

}  // namespace tg::cuda
