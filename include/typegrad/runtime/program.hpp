// Program: a traced function compiled for a device, run on tensors.
#pragma once

#include <utility>

#include "typegrad/backends/cpu/executor.hpp"
#include "typegrad/backends/reference/interpreter.hpp"
#include "typegrad/runtime/link.hpp"
#include "typegrad/runtime/regions.hpp"
#include "typegrad/runtime/tensor.hpp"

namespace tg {

// The entry table and the executor of a device; specialised per back end.
template <class Device, class T>
struct DeviceProgram;

// An argument as a program sees it.
struct Argument {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<std::int64_t, max_rank> shape{};
};

template <class T>
struct DeviceProgram<Cpu, T> {
  static constexpr auto compiled = []<std::size_t... R>(std::index_sequence<R...>) {
    return std::array<cpu::Entry, sizeof...(R)>{cpu::entry(kernel::region_at<Regions<T>, static_cast<int>(R)>::get())...};
  }(std::make_index_sequence<Regions<T>::size>{});
  static std::span<const cpu::Entry> entries() {
    static const auto linked = link<cpu::Entry>(program_plan<T>(), Regions<T>::words, Regions<T>::starts, compiled);
    return linked;
  }

  DeviceProgram() : executor(program_plan<T>(), entries()) {}
  cpu::Executor executor;
  void run(const std::vector<std::int64_t>& extents, const std::vector<Argument>&, const std::vector<Argument>&, void* const* inputs,
           void* const* outputs) {
    executor.run(extents, inputs, outputs);
  }
};

// The oracle runs the graph as it was traced, before any pass.
template <class T>
struct DeviceProgram<Reference, T> {
  void run(const std::vector<std::int64_t>&, const std::vector<Argument>& inputs, const std::vector<Argument>& outputs, void* const* in,
           void* const* out) {
    const Graph g = traced<T>();
    std::vector<reference::Array> arrays;
    for (std::size_t i = 0; i < inputs.size(); ++i) arrays.push_back(read(inputs[i], in[i]));
    const std::vector<reference::Array> results = reference::run(g, std::move(arrays));
    for (std::size_t k = 0; k < results.size(); ++k) {
      const bool donated = k < g.donors.size() && g.donors[k] >= 0;
      write(outputs[k].dtype, results[k], donated ? in[g.donors[k]] : out[k]);
    }
  }

 private:
  template <class F>
  static void with_type(DType t, F f) {
    switch (t) {
      case DType::f32: return f(float{});
      case DType::f64: return f(double{});
      case DType::bf16: return f(bf16{});
      case DType::f16: return f(f16{});
      case DType::i8: return f(std::int8_t{});
      case DType::i32: return f(std::int32_t{});
      case DType::i64: return f(std::int64_t{});
      case DType::boolean: return f(bool{});
    }
  }
  static reference::Array read(const Argument& a, const void* data) {
    reference::Array r;
    r.dtype = a.dtype;
    r.shape.assign(a.shape.begin(), a.shape.begin() + a.rank);
    with_type(a.dtype, [&]<class E>(E) {
      const E* p = static_cast<const E*>(data);
      for (std::int64_t i = 0; i < r.size(); ++i) {
        if constexpr (is_floating(dtype_of<E>)) r.real.push_back(static_cast<double>(static_cast<compute_t<E>>(p[i])));
        else r.integer.push_back(p[i]);
      }
    });
    return r;
  }
  static void write(DType t, const reference::Array& a, void* data) {
    with_type(t, [&]<class E>(E) {
      E* p = static_cast<E*>(data);
      for (std::int64_t i = 0; i < a.size(); ++i) {
        const auto k = static_cast<std::size_t>(i);
        if constexpr (is_floating(dtype_of<E>)) p[i] = static_cast<E>(static_cast<compute_t<E>>(a.real[k]));
        else p[i] = static_cast<E>(a.integer[k]);
      }
    });
  }
};

// The program of the function F (a stateless type) for tensors of the types E... on a device. It keeps its arena and
// what it computed from the extents; after the first run with given extents it allocates nothing but its results.
// One object serves one thread at a time.
template <class Device, class F, class... E>
class Program {
 public:
  using tracer = Tracer<F, E...>;
  using flat_result = typename tracer::flat_result;
  static constexpr std::size_t outputs = std::tuple_size_v<flat_result>;

  // This thread's instance.
  static Program& instance() {
    static thread_local Program program;
    return program;
  }

  // Results that take over an input's memory share that tensor's.
  auto operator()(const tensor_t<Device, E>&... tensors) {
    const std::array<Argument, sizeof...(E)> arguments{describe(tensors)...};
    inputs_.assign(arguments.begin(), arguments.end());
    find_extents();
    for (std::size_t i = 0; i < sizeof...(E); ++i) in_[i] = arguments[i].data;
    const std::tuple<const tensor_t<Device, E>&...> all(tensors...);
    auto results = [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::tuple<tensor_t<Device, std::tuple_element_t<K, flat_result>>...>(result<K>(all)...);
    }(std::make_index_sequence<outputs>{});
    outputs_.clear();
    std::apply([&](const auto&... r) { (outputs_.push_back(describe(r)), ...); }, results);
    for (std::size_t k = 0; k < outputs; ++k) out_[k] = outputs_[k].data;
    program_.run(extents_, inputs_, outputs_, in_.data(), out_.data());
    return results;
  }

  // The plan of what runs, for reports.
  static const Plan& plan() { return program_plan<tracer>().plan; }
  DeviceProgram<Device, tracer>& device_program() { return program_; }
  const std::vector<std::int64_t>& extents() const { return extents_; }

 private:
  static constexpr std::array<int, outputs> donors = [] {
    std::array<int, outputs> r{};
    for (int& d : r) d = -1;
    if constexpr (requires { F::donors; })
      for (std::size_t i = 0; i < std::size(F::donors); ++i) r[i] = F::donors[i];
    return r;
  }();
  struct Names {
    std::array<Name, 255> name{};
    std::size_t count = 0;
  };
  static constexpr Names names = [] {
    Names r;
    Graph g;
    (void(to_shape(g, E::extents)), ...);
    for (const Name& n : g.symbols) r.name[r.count++] = n;
    return r;
  }();

  template <class X>
  static Argument describe(const X& x) {
    Argument a;
    a.data = const_cast<void*>(static_cast<const void*>(x.data()));
    a.dtype = dtype_of<typename X::value_type>;
    a.rank = X::rank;
    for (int i = 0; i < X::rank; ++i) a.shape[static_cast<std::size_t>(i)] = x.extent(i);
    return a;
  }

  // The value of each named extent, from the arguments; they must agree.
  void find_extents() {
    extents_.assign(names.count, -1);
    static constexpr std::array<Extents, sizeof...(E)> declared{E::extents...};
    auto visit = [&](bool simple) {
      for (std::size_t i = 0; i < declared.size(); ++i)
        for (int axis = 0; axis < declared[i].rank; ++axis) {
          const Extent& e = declared[i][axis];
          if (e.is_static() || (e.names[1] == Name{}) != simple) continue;
          const std::int64_t found = inputs_[i].shape[static_cast<std::size_t>(axis)];
          std::int64_t expected = e.coefficient;
          std::int64_t* unknown = nullptr;
          for (const Name& n : e.names) {
            if (n == Name{}) continue;
            std::int64_t& value = extents_[index_of(n)];
            if (value < 0 && unknown == nullptr) unknown = &value;
            else expected *= value;
          }
          if (unknown != nullptr) {
            if (expected == 0 || found % expected != 0) fail(i, axis, e, expected, found);
            *unknown = found / expected;
            expected *= *unknown;
          }
          if (expected != found) fail(i, axis, e, expected, found);
        }
    };
    visit(true);
    visit(false);
  }
  static std::size_t index_of(const Name& n) {
    std::size_t i = 0;
    while (!(names.name[i] == n)) ++i;
    return i;
  }
  [[noreturn]] static void fail(std::size_t argument, int axis, const Extent& e, std::int64_t expected, std::int64_t found) {
    std::string text;
    for (const Name& n : e.names)
      if (!(n == Name{})) text.append(text.empty() ? "" : "*").append(n.view());
    throw Error(detail::concat_text("argument ", argument, ", axis ", axis, ": extent '", text, "' is ", found,
                                    " here, expected ", expected, " as in the arguments before it"));
  }

  template <std::size_t K, class All>
  auto result(const All& all) {
    using R = std::tuple_element_t<K, flat_result>;
    if constexpr (donors[K] >= 0) {
      static_assert(std::same_as<R, std::tuple_element_t<static_cast<std::size_t>(donors[K]), std::tuple<E...>>>,
                    "typegrad: an update in place has the type of what it updates");
      return tensor_t<Device, R>(std::get<static_cast<std::size_t>(donors[K])>(all));
    } else {
      std::array<std::int64_t, static_cast<std::size_t>(R::extents.rank)> shape{};
      for (int i = 0; i < R::extents.rank; ++i) {
        const Extent& e = R::extents[i];
        shape[static_cast<std::size_t>(i)] = e.coefficient;
        for (const Name& n : e.names)
          if (!(n == Name{})) shape[static_cast<std::size_t>(i)] *= extents_[index_of(n)];
      }
      return tensor_t<Device, R>::empty(shape);
    }
  }

  DeviceProgram<Device, tracer> program_;
  std::vector<Argument> inputs_, outputs_;
  std::vector<std::int64_t> extents_;
  std::array<void*, (sizeof...(E) > 0 ? sizeof...(E) : 1)> in_{};
  std::array<void*, (outputs > 0 ? outputs : 1)> out_{};
};

}  // namespace tg
