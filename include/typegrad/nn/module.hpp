// Models: aggregates of parameters and sub-modules. Each parameter has a path name and a place in one flat buffer.
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

namespace detail {
template <class X>
struct is_param : std::false_type {};
template <class T, auto... Ds>
struct is_param<Param<T, Ds...>> : std::true_type {};

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
template <class... X>
constexpr auto members(X... x) { return detail::pair_members(x...); }

// Calls f(path, parameter) for each parameter of the model, in the order of its members.
template <class M, class F>
constexpr void for_each_parameter(M& module, F&& f, const detail::Path& path = {}) {
  using Module = std::remove_const_t<M>;
  if constexpr (detail::is_param<Module>::value) {
    f(path, module);
  } else if constexpr (requires { Module::members; }) {
    std::apply(
        [&](const auto&... member) {
          (
              [&] {
                detail::Path p = path;
                if (p.size > 0) p.append(".");
                p.append(std::string_view(member.name));
                for_each_parameter(module.*(member.pointer), f, p);
              }(),
              ...);
        },
        Module::members);
  } else if constexpr (requires { module.size(); module[0]; }) {
    for (std::size_t i = 0; i < module.size(); ++i) {
      detail::Path p = path;
      if (p.size > 0) p.append(".");
      p.append(i);
      for_each_parameter(module[i], f, p);
    }
  }  // anything else holds no parameters
}

// One parameter in the flat buffer of all.
struct ParameterSlot {
  detail::Path path;
  Extents shape;
  Init init;
  std::int64_t offset = 0, size = 0;
};

// The flat buffer of model M: parameters whose size is a multiple of 16 come first, so that they stay aligned.
template <class M>
struct ParameterLayout {
  static constexpr std::size_t count = [] {
    M m{};
    std::size_t n = 0;
    for_each_parameter(m, [&](const auto&, const auto&) { ++n; });
    return n;
  }();
  static constexpr std::array<ParameterSlot, count> slots = [] {
    std::array<ParameterSlot, count> r{};
    M m{};
    std::size_t n = 0;
    for_each_parameter(m, [&](const detail::Path& path, const auto& p) {
      using P = std::remove_cvref_t<decltype(p)>;
      r[n++] = {path, P::extents, p.init, 0, P::extents.size().coefficient};
    });
    std::int64_t offset = 0;
    for (const bool aligned : {true, false})
      for (ParameterSlot& s : r)
        if ((s.size % 16 == 0) == aligned) {
          s.offset = offset;
          offset += s.size;
        }
    return r;
  }();
  static constexpr std::int64_t size = [] {
    std::int64_t n = 0;
    for (const ParameterSlot& s : slots) n += s.size;
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
  // The dtype of all parameters.
  static constexpr DType dtype = [] {
    M m{};
    DType t = DType::f32;
    bool first = true;
    for_each_parameter(m, [&](const auto&, const auto& p) {
      const DType own = std::remove_cvref_t<decltype(p)>::element;
      if (!first && own != t) throw "typegrad: the parameters of a model have one dtype";
      t = own;
      first = false;
    });
    return t;
  }();
  using value_type = element_t<dtype>;
};

// The model's parameters as parts of the flat expression.
template <class M>
constexpr M bind_parameters(Value flat) {
  M m{};
  std::size_t n = 0;
  for_each_parameter(m, [&](const detail::Path&, auto& p) {
    const ParameterSlot& s = ParameterLayout<M>::slots[n++];
    AttributeList start, step;
    start.push(s.offset);
    step.push(1);
    const Value part = build::slice(flat, Shape{Dim(s.size)}, start, step);
    static_cast<Value&>(p) = build::reshape(part, to_shape(*flat.graph, s.shape));
  });
  return m;
}

}  // namespace tg
