// Parameters<Device, Model>: the values of a model's parameters, with initialisation and checkpoints.
#pragma once

#include "typegrad/io/safetensors.hpp"
#include "typegrad/nn/module.hpp"
#include "typegrad/runtime/evaluate.hpp"

namespace tg {
namespace detail {

// A function of (model, inputs...) as a function of (flat parameters, inputs...).
template <class M, auto F>
struct ModelFunction {
  template <class P, class... X>
  constexpr auto operator()(const P& flat, const X&... x) const {
    return call(F, bind_parameters<M>(flat), x...);
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

}  // namespace detail

template <class Device, class M>
class Parameters {
 public:
  using layout = ParameterLayout<M>;
  using T = typename layout::value_type;
  static constexpr auto count = static_cast<int>(layout::size);
  using flat_tensor = Tensor<Device, T, count>;

  // Initial values as the model declares them: a function of the seed alone, the same on every device.
  explicit Parameters(std::uint64_t seed = 0) : flat_(flat_tensor::empty({count})) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < layout::count; ++i) {
      const ParameterSlot& s = layout::slots[i];
      initialise(s.init, std::span(values).subspan(static_cast<std::size_t>(s.offset), static_cast<std::size_t>(s.size)), seed, static_cast<std::uint32_t>(i));
    }
    flat_.assign(values);
  }

  // All values, in the order of the layout.
  const flat_tensor& flat() const { return flat_; }

  // f(model, inputs...) with these parameters: params.apply<[](auto model, auto x) { return model(x); }>(x).
  template <auto F, class... X>
  auto apply(const X&... x) const {
    return evaluate<detail::ModelFunction<M, F>{}>(flat_, x...);
  }

  // Writes every parameter under its path; the file appears whole or not at all.
  void save(const std::filesystem::path& path) const {
    const std::vector<T> values = flat_.to_vector();
    io::write_safetensors(path, views(values), {{"format", "pt"}});
  }
  // Reads every parameter; a missing or misshapen one is an Error, and then nothing is changed.
  void load(const std::filesystem::path& path) {
    const io::SafetensorsFile file(path);
    flat_.assign(read(file));
  }

  std::vector<io::TensorView> views(const std::vector<T>& values) const {
    std::vector<io::TensorView> r;
    for (const ParameterSlot& s : layout::slots)
      r.push_back(detail::view_of(std::string(s.path.view()), layout::dtype, detail::static_shape(s.shape),
                                  reinterpret_cast<const std::byte*>(values.data() + s.offset)));
    return r;
  }
  std::vector<T> read(const io::SafetensorsFile& file) const {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (const ParameterSlot& s : layout::slots) {
      const io::TensorEntry& e = detail::find_tensor(file, s.path.view(), layout::dtype, detail::static_shape(s.shape));
      file.read(e, std::as_writable_bytes(std::span(values).subspan(static_cast<std::size_t>(s.offset), static_cast<std::size_t>(s.size))));
    }
    return values;
  }

 private:
  flat_tensor flat_;
};

}  // namespace tg
