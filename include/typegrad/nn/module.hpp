// Models: aggregates of parameters, buffers and sub-modules. Each has a path name and a place in one of two flat buffers.
#pragma once

#include <array>
#include <string>
#include <tuple>
#include <vector>

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

// The path of a part where nobody asks for it: while tracing.
struct NoPath {
  constexpr NoPath operator/(const char*) const { return {}; }
  constexpr NoPath operator/(std::size_t) const { return {}; }
};
// Members' names joined by dots.
struct Path {
  std::string text;
  Path operator/(const char* name) const { return {text.empty() || *name == 0 ? text + name : text + "." + name}; }
  Path operator/(std::size_t number) const { return *this / std::to_string(number).c_str(); }
};

// Equal parts that are numbered: std::array, nn::Stack.
template <class X>
struct repeated : std::false_type {};
template <class Part, std::size_t N>
struct repeated<std::array<Part, N>> : std::true_type {
  using part = Part;
  static constexpr std::int64_t count = static_cast<std::int64_t>(N);
};

template <class Class, class Member>
struct NamedMember {
  using type = Member;
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

// Calls f(path, x) for each part of the model that Is<its type> names, in the order of its members. A stack shows at most
// `depth` of its blocks; stacks that are not const remember that, and tell it through *shortened.
template <template <class> class Is, class M, class F, class P>
constexpr void for_each_leaf(M& module, F&& f, const P& path, int depth = Graph::all_blocks, bool* shortened = nullptr) {
  using Module = std::remove_const_t<M>;
  if constexpr (detail::is_param<Module>::value || detail::is_buffer<Module>::value) {
    if constexpr (Is<Module>::value) f(path, module);
  } else if constexpr (requires { Module::members; }) {
    std::apply([&](const auto&... member) { (for_each_leaf<Is>(module.*(member.pointer), f, path / member.name, depth, shortened), ...); }, Module::members);
  } else if constexpr (detail::repeated<Module>::value) {
    if constexpr (requires { module.shorten(depth); })
      if (module.shorten(depth) && shortened != nullptr) *shortened = true;
    for (std::size_t i = 0; i < module.size(); ++i) for_each_leaf<Is>(module[i], f, path / i, depth, shortened);
  } else if constexpr (requires { std::tuple_size<Module>::value; }) {
    std::apply(
        [&](auto&... part) {
          std::size_t i = 0;
          (for_each_leaf<Is>(part, f, path / i++, depth, shortened), ...);
        },
        module);
  }  // anything else holds no parameters
}

namespace detail {

// What can be known of a model's parts from its type.
struct LeafSums {
  std::int64_t count = 0, size = 0;
  DType dtype = DType::f32;
  bool mixed = false;
  constexpr void add(const LeafSums& o, std::int64_t times = 1) {
    if (o.count == 0 || times == 0) return;
    mixed = mixed || o.mixed || (count > 0 && dtype != o.dtype);
    dtype = o.dtype;
    count += times * o.count;
    size += times * o.size;
  }
};
template <template <class> class Is, class M>
consteval LeafSums leaf_sums() {
  LeafSums r;
  if constexpr (is_param<M>::value || is_buffer<M>::value) {
    if constexpr (Is<M>::value) {
      r.count = 1;
      r.size = M::extents.size().coefficient;
      r.dtype = M::element;
    }
  } else if constexpr (requires { M::members; }) {
    std::apply([&]<class... Member>(const Member&...) { (r.add(leaf_sums<Is, typename Member::type>()), ...); }, M::members);
  } else if constexpr (repeated<M>::value) {
    r.add(leaf_sums<Is, typename repeated<M>::part>(), repeated<M>::count);
  } else if constexpr (requires { std::tuple_size<M>::value; }) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (r.add(leaf_sums<Is, std::tuple_element_t<I, M>>()), ...); }(std::make_index_sequence<std::tuple_size_v<M>>{});
  }
  return r;
}

// Parts whose size is a multiple of 16 come first in a flat buffer, so that they stay aligned.
constexpr bool stays_aligned(std::int64_t size) { return size % 16 == 0; }

}  // namespace detail

// One parameter or buffer in the flat buffer of all.
struct Slot {
  std::string path;
  Extents shape;
  Init init;
  std::int64_t offset = 0, size = 0;
};

// The flat buffer of those parts of model M that Is names.
template <class M, template <class> class Is>
struct FlatLayout {
 private:
  static constexpr detail::LeafSums sums = detail::leaf_sums<Is, M>();
  static_assert(!sums.mixed, "typegrad: the parameters of a model have one dtype, and so have its buffers");

 public:
  static constexpr auto count = static_cast<std::size_t>(sums.count);
  static constexpr std::int64_t size = sums.size;
  // The dtype of all of them; float where there are none.
  static constexpr DType dtype = sums.dtype;
  using value_type = element_t<dtype>;

  // In the order of the model's members.
  static const std::vector<Slot>& slots() {
    static const std::vector<Slot> all = [] {
      std::vector<Slot> r;
      M m{};
      for_each_leaf<Is>(m, [&](const detail::Path& path, const auto& p) {
        using P = std::remove_cvref_t<decltype(p)>;
        r.push_back({path.text, P::extents, p.init, 0, P::extents.size().coefficient});
      }, detail::Path{});
      std::int64_t offset = 0;
      for (const bool aligned : {true, false})
        for (Slot& s : r)
          if (detail::stays_aligned(s.size) == aligned) {
            s.offset = offset;
            offset += s.size;
          }
      return r;
    }();
    return all;
  }
};

template <class M>
using ParameterLayout = FlatLayout<M, detail::is_param>;
template <class M>
using BufferLayout = FlatLayout<M, detail::is_buffer>;

namespace detail {

// Makes the parts of the model that Is names parts of the flat expression. Where a trace is shortened, the blocks that it
// leaves out are missing, and the others lie closer together than they will when the program runs.
template <template <class> class Is, class M>
constexpr void bind_leaves(M& m, Value flat) {
  Graph& g = *flat.graph;
  std::int64_t aligned = 0;
  for_each_leaf<Is>(m, [&](NoPath, const auto& x) {
    constexpr std::int64_t size = std::remove_cvref_t<decltype(x)>::extents.size().coefficient;
    if (stays_aligned(size)) aligned += size;
  }, NoPath{}, g.depth, &g.shortened);
  std::int64_t next[] = {aligned, 0};
  for_each_leaf<Is>(m, [&](NoPath, auto& x) {
    constexpr Extents shape = std::remove_cvref_t<decltype(x)>::extents;
    constexpr std::int64_t size = shape.size().coefficient;
    std::int64_t& offset = next[stays_aligned(size)];
    AttributeList start, step;
    start.push(offset);
    step.push(1);
    static_cast<Value&>(x) = build::reshape(build::slice(flat, Shape{Dim(size)}, start, step), to_shape(g, shape));
    offset += size;
  }, NoPath{}, g.depth);
}

// Values of the model's parts, in the order of its members, one after the other as in their flat buffer; zeros at the end
// for the blocks that a shortened trace leaves out.
template <class Layout>
constexpr Value concatenate(const std::vector<Value>& parts) {
  Value flat;
  const auto append = [&](Value part) { flat = flat.graph == nullptr ? part : build::concat(flat, part, 0); };
  std::int64_t size = 0;
  for (const bool aligned : {true, false})
    for (const Value part : parts) {
      const std::int64_t n = part.shape().size().coefficient;
      if (stays_aligned(n) != aligned) continue;
      append(build::reshape(part, Shape{Dim(n)}));
      size += n;
    }
  if (size < Layout::size) append(build::constant(*flat.graph, Layout::dtype, Shape{Dim(Layout::size - size)}, 0));
  return flat;
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
