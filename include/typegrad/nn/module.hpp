// Models: aggregates of parameters, buffers and sub-modules. Each has a path name and a place in one of two flat buffers.
#pragma once

#include <string>
#include <tuple>

#include "typegrad/expr/expr.hpp"
#include "typegrad/nn/init.hpp"
#include "typegrad/ops/shape.hpp"

namespace tg {

// A parameter of a model: an expression in the model's call operator. Its shape is static.
template <class T, auto... Ds>
struct Param : Expr<T, Ds...> {
  static_assert(Expr<T, Ds...>::extents.size().is_static(), "typegrad: a parameter has static extents");
  Init init{};
  constexpr Param() = default;
  constexpr explicit Param(Init i) : init(i) {}
};

// What a model keeps besides its parameters, as the running statistics of a batch norm: no optimizer changes it, a training
// step does (nn/training.hpp). Its shape is static.
template <class T, auto... Ds>
struct Buffer : Expr<T, Ds...> {
  static_assert(Expr<T, Ds...>::extents.size().is_static(), "typegrad: a buffer has static extents");
  Init init{};
  constexpr Buffer() = default;
  constexpr explicit Buffer(Init i) : init(i) {}
};

namespace detail {
template <class X>
struct is_param : std::false_type {};
template <class T, auto... Ds>
struct is_param<Param<T, Ds...>> : std::true_type {};
template <class X>
struct is_buffer : std::false_type {};
template <class T, auto... Ds>
struct is_buffer<Buffer<T, Ds...>> : std::true_type {};

// A parameter's name: members' names joined by dots.
struct Path {
  char text[120]{};
  int size = 0;
  constexpr void append(std::string_view s) {
    for (char c : s) {
      if (size == 119) throw "the path of a parameter has at most 119 characters";
      text[size++] = c;
    }
  }
  constexpr void append(std::size_t number) {
    char digits[20]{};
    int n = 0;
    do digits[n++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    while (n > 0) append(std::string_view(&digits[--n], 1));
  }
  constexpr std::string_view view() const { return {text, static_cast<std::size_t>(size)}; }
};

template <class Class, class Member>
struct NamedMember {
  const char* name;
  Member Class::*pointer;
};

template <class... Rest>
constexpr auto pair_members() { return std::tuple<>(); }
template <class Class, class Member, class... Rest>
constexpr auto pair_members(const char* name, Member Class::*pointer, Rest... rest) {
  return std::tuple_cat(std::tuple(NamedMember<Class, Member>{name, pointer}), pair_members(rest...));
}
}  // namespace detail

// The parts of a model by name: static constexpr auto members = tg::members("hidden", &Mlp::hidden, "head", &Mlp::head).
// A part is a Param, a Buffer, a model, or an array or tuple of parts, which are numbered. An empty name adds nothing to
// the paths of what the part holds.
template <class... X>
constexpr auto members(X... x) { return detail::pair_members(x...); }

// Calls f(path, x) for each part of the model that Is<its type> names, in the order of its members.
template <template <class> class Is, class M, class F>
constexpr void for_each_leaf(M& module, F&& f, const detail::Path& path = {}) {
  using Module = std::remove_const_t<M>;
  if constexpr (detail::is_param<Module>::value || detail::is_buffer<Module>::value) {
    if constexpr (Is<Module>::value) f(path, module);
  } else if constexpr (requires { Module::members; }) {
    std::apply(
        [&](const auto&... member) {
          (
              [&] {
                detail::Path p = path;
                if (p.size > 0 && member.name[0] != 0) p.append(".");
                p.append(std::string_view(member.name));
                for_each_leaf<Is>(module.*(member.pointer), f, p);
              }(),
              ...);
        },
        Module::members);
  } else if constexpr (requires { std::tuple_size<Module>::value; }) {
    std::apply(
        [&](auto&... part) {
          std::size_t i = 0;
          (
              [&] {
                detail::Path p = path;
                if (p.size > 0) p.append(".");
                p.append(i++);
                for_each_leaf<Is>(part, f, p);
              }(),
              ...);
        },
        module);
  }  // anything else holds no parameters
}
template <class M, class F>
constexpr void for_each_parameter(M& module, F&& f) { for_each_leaf<detail::is_param>(module, f); }
template <class M, class F>
constexpr void for_each_buffer(M& module, F&& f) { for_each_leaf<detail::is_buffer>(module, f); }

// One parameter or buffer in the flat buffer of all.
struct Slot {
  detail::Path path;
  Extents shape;
  Init init;
  std::int64_t offset = 0, size = 0;
};

// The flat buffer of those parts of model M that Is names: parts whose size is a multiple of 16 come first, so that they
// stay aligned.
template <class M, template <class> class Is>
struct FlatLayout {
  static constexpr std::size_t count = [] {
    M m{};
    std::size_t n = 0;
    for_each_leaf<Is>(m, [&](const auto&, const auto&) { ++n; });
    return n;
  }();
  static constexpr std::array<Slot, count> slots = [] {
    std::array<Slot, count> r{};
    M m{};
    std::size_t n = 0;
    for_each_leaf<Is>(m, [&](const detail::Path& path, const auto& p) {
      using P = std::remove_cvref_t<decltype(p)>;
      r[n++] = {path, P::extents, p.init, 0, P::extents.size().coefficient};
    });
    std::int64_t offset = 0;
    for (const bool aligned : {true, false})
      for (Slot& s : r)
        if ((s.size % 16 == 0) == aligned) {
          s.offset = offset;
          offset += s.size;
        }
    return r;
  }();
  static constexpr std::int64_t size = [] {
    std::int64_t n = 0;
    for (const Slot& s : slots) n += s.size;
    return n;
  }();
  // Slots in the order of the buffer.
  static constexpr std::array<std::size_t, count> order = [] {
    std::array<std::size_t, count> r{};
    std::size_t n = 0;
    for (const bool aligned : {true, false})
      for (std::size_t i = 0; i < count; ++i)
        if ((slots[i].size % 16 == 0) == aligned) r[n++] = i;
    return r;
  }();
  // The dtype of all of them; float where there are none.
  static constexpr DType dtype = [] {
    M m{};
    DType t = DType::f32;
    bool first = true;
    for_each_leaf<Is>(m, [&](const auto&, const auto& p) {
      const DType own = std::remove_cvref_t<decltype(p)>::element;
      if (!first && own != t) throw "typegrad: the parameters of a model have one dtype, and so have its buffers";
      t = own;
      first = false;
    });
    return t;
  }();
  using value_type = element_t<dtype>;
};

template <class M>
using ParameterLayout = FlatLayout<M, detail::is_param>;
template <class M>
using BufferLayout = FlatLayout<M, detail::is_buffer>;

namespace detail {
// Makes the parts of the model that Is names parts of the flat expression.
template <template <class> class Is, class M>
constexpr void bind_leaves(M& m, Value flat) {
  std::size_t n = 0;
  for_each_leaf<Is>(m, [&](const Path&, auto& x) {
    const Slot& s = FlatLayout<M, Is>::slots[n++];
    AttributeList start, step;
    start.push(s.offset);
    step.push(1);
    const Value part = build::slice(flat, Shape{Dim(s.size)}, start, step);
    static_cast<Value&>(x) = build::reshape(part, to_shape(*flat.graph, s.shape));
  });
}
}  // namespace detail

// The model whose parameters and buffers are parts of the flat expressions; one without buffers needs none.
template <class M>
constexpr M bind_model(Value parameters, Value buffers) {
  M m{};
  detail::bind_leaves<detail::is_param>(m, parameters);
  if constexpr (BufferLayout<M>::count > 0) detail::bind_leaves<detail::is_buffer>(m, buffers);
  return m;
}

}  // namespace tg
