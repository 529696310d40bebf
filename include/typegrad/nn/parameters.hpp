// Parameters<Device, Model>: the values of a model's parameters and buffers, with initialisation and checkpoints.
#pragma once

#include "typegrad/io/safetensors.hpp"
#include "typegrad/nn/module.hpp"
#include "typegrad/runtime/evaluate.hpp"

namespace tg {
namespace detail {

// A function of (model, inputs...) as a function of (flat parameters, [flat buffers,] inputs...).
template <class M, auto F>
struct ModelFunction {
  template <class P, class... X>
  constexpr auto operator()(const P& flat, const X&... x) const {
    if constexpr (BufferLayout<M>::count == 0) return call(F, bind_model<M>(flat, {}), x...);
    else return with_buffers(flat, x...);
  }

 private:
  template <class P, class B, class... X>
  static constexpr auto with_buffers(const P& flat, const B& buffers, const X&... x) {
    return call(F, bind_model<M>(flat, buffers), x...);
  }
};

inline io::TensorView view_of(std::string name, DType t, std::vector<std::int64_t> shape, const std::byte* data) {
  std::int64_t n = size_of(t);
  for (std::int64_t e : shape) n *= e;
  return {std::move(name), t, std::move(shape), data, static_cast<std::size_t>(n)};
}
inline std::vector<std::int64_t> static_shape(const Extents& e) {
  std::vector<std::int64_t> r;
  for (int i = 0; i < e.rank; ++i) r.push_back(e[i].coefficient);
  return r;
}
// The tensor of that name, dtype and shape in a file; anything else is an Error naming both.
inline const io::TensorEntry& find_tensor(const io::SafetensorsFile& file, std::string_view name, DType t, const std::vector<std::int64_t>& shape) {
  const io::TensorEntry* e = file.find(name);
  if (e == nullptr) throw Error(concat_text("'", file.path().string(), "': parameter '", name, "' is missing"));
  if (e->dtype != t || e->shape != shape)
    throw Error(concat_text("'", file.path().string(), "': parameter '", name, "': expected ", tg::name(t), " ",
                            std::span<const std::int64_t>(shape), ", found ", tg::name(e->dtype), " ", std::span<const std::int64_t>(e->shape)));
  return *e;
}

// The values of a flat buffer on the host.
template <class Layout>
struct FlatValues {
  using T = typename Layout::value_type;
  std::vector<T> values = std::vector<T>(static_cast<std::size_t>(Layout::size));

  // Initial values; the first part has the given number in the stream of random numbers.
  void initialise(std::uint64_t seed, std::size_t first) {
    for (std::size_t i = 0; i < Layout::count; ++i) tg::initialise(Layout::slots()[i].init, part(Layout::slots()[i]), seed, static_cast<std::uint32_t>(first + i));
  }
  void read(const io::SafetensorsFile& file) {
    for (const Slot& s : Layout::slots())
      file.read(find_tensor(file, s.path, Layout::dtype, static_shape(s.shape)), std::as_writable_bytes(part(s)));
  }
  // Each part under its path. The views refer to the values.
  void append_views(std::vector<io::TensorView>& r) const {
    for (const Slot& s : Layout::slots())
      r.push_back(view_of(s.path, Layout::dtype, static_shape(s.shape), reinterpret_cast<const std::byte*>(values.data() + s.offset)));
  }

 private:
  std::span<T> part(const Slot& s) { return std::span(values).subspan(static_cast<std::size_t>(s.offset), static_cast<std::size_t>(s.size)); }
};

}  // namespace detail

template <class Device, class M>
class Parameters {
 public:
  using layout = ParameterLayout<M>;
  using buffer_layout = BufferLayout<M>;
  using T = typename layout::value_type;
  static constexpr auto count = detail::spelling<Extent(layout::size)>();
  using flat_tensor = Tensor<Device, T, count>;
  // No tensor, or one.
  using buffer_tensors = std::conditional_t<buffer_layout::count == 0, std::tuple<>,
                                            std::tuple<Tensor<Device, typename buffer_layout::value_type, detail::spelling<Extent(buffer_layout::size)>()>>>;

  // What a checkpoint holds of a model, on the host.
  struct Values {
    detail::FlatValues<layout> parameters;
    detail::FlatValues<buffer_layout> buffers;

    std::vector<io::TensorView> views() const {
      std::vector<io::TensorView> r;
      parameters.append_views(r);
      buffers.append_views(r);
      return r;
    }
    void read(const io::SafetensorsFile& file) {
      parameters.read(file);
      buffers.read(file);
    }
  };

  // Initial values as the model declares them: a function of the seed alone, the same on every device.
  explicit Parameters(std::uint64_t seed = 0) : flat_(flat_tensor::empty({count})) {
    Values v;
    v.parameters.initialise(seed, 0);
    v.buffers.initialise(seed, layout::count);
    if constexpr (buffer_layout::count > 0) std::get<0>(buffers_) = std::tuple_element_t<0, buffer_tensors>::empty({buffer_layout::size});
    assign(v);
  }

  // All parameters, in the order of the layout.
  const flat_tensor& flat() const { return flat_; }
  // All buffers, in the order of their layout: a tuple of one tensor, or of none if the model has no buffers.
  const buffer_tensors& buffers() const { return buffers_; }

  // f(model, inputs...) with these parameters: params.apply<[](auto model, auto x) { return model(x); }>(x).
  template <auto F, class... X>
  auto apply(const X&... x) const {
    return std::apply([&](const auto&... b) { return evaluate<detail::ModelFunction<M, F>{}>(flat_, b..., x...); }, buffers_);
  }

  // Writes every parameter and buffer under its path; the file appears whole or not at all.
  void save(const std::filesystem::path& path) const {
    const Values v = values();
    io::write_safetensors(path, v.views(), {{"format", "pt"}});
  }
  // Reads every parameter and buffer; a missing or misshapen one is an Error, and then nothing is changed.
  void load(const std::filesystem::path& path) {
    const io::SafetensorsFile file(path);
    Values v;
    v.read(file);
    assign(v);
  }

  Values values() const {
    Values v;
    v.parameters.values = flat_.to_vector();
    std::apply([&](const auto&... b) { ((v.buffers.values = b.to_vector()), ...); }, buffers_);
    return v;
  }
  void assign(const Values& v) {
    flat_.assign(v.parameters.values);
    std::apply([&](auto&... b) { (b.assign(v.buffers.values), ...); }, buffers_);
  }

 private:
  flat_tensor flat_;
  buffer_tensors buffers_;
};

}  // namespace tg
