// Thousands of random graphs: differentiate, simplify, fuse, lower and place them, and demand the interpreter's result.
#include <doctest/doctest.h>

#include "typegrad/backends/reference/plan_executor.hpp"
#include "typegrad/ops/sort.hpp"
#include "typegrad/runtime/link.hpp"
#include "typegrad/runtime/random.hpp"

namespace {

using namespace tg;
using reference::Array;

struct Generator {
  std::uint64_t seed = 0;
  std::uint64_t draws = 0;
  Graph g;
  std::vector<Value> values;
  std::vector<Array> inputs;
  Dim symbol;
  std::int64_t symbol_value = 0;

  std::uint32_t below(std::uint32_t n) { return rng::bits(seed, 0, 0, draws++) % n; }
  double real() { return 2.0 * rng::uniform01<double>(seed, 1, 0, draws++) - 1.0; }

  Dim extent() {
    static constexpr std::int64_t sizes[] = {1, 2, 3, 4};
    if (seed % 3 == 0) return 2;  // all alike: an axis must not be taken for another of its extent
    return below(5) == 0 ? symbol : Dim(sizes[below(4)]);
  }
  Value input(const Shape& s) {
    const auto position = static_cast<std::int64_t>(inputs.size());
    Array a{DType::f64, {}, {}, {}};
    for (int i = 0; i < s.rank; ++i) a.shape.push_back(s[i].evaluate(&symbol_value));
    for (std::int64_t i = 0; i < a.size(); ++i) a.real.push_back(real());
    inputs.push_back(a);
    return build::input(g, DType::f64, s, position);
  }
  Value pick() { return values[values.size() - 1 - below(static_cast<std::uint32_t>((std::min)(values.size(), std::size_t{6})))]; }

  // A partner that broadcasts with v, made from v's shape with some axes of extent 1 or dropped.
  Value partner(Value v) {
    for (int tries = 0; tries < 4; ++tries) {
      const Value w = pick();
      if (w.shape() == v.shape()) return w;
    }
    Shape s;
    const int skip = static_cast<int>(below(static_cast<std::uint32_t>(v.rank()) + 1));
    for (int i = skip; i < v.rank(); ++i) s.push(below(3) == 0 ? Dim(1) : v.shape()[i]);
    return input(s);
  }

  Value step() {
    const Value v = pick();
    switch (below(19)) {
      case 0: return build::unary(Op::Tanh, v);
      case 1: return build::unary(Op::Sin, v);
      case 2: return build::binary(Op::Add, v, partner(v));
      case 3: return build::binary(Op::Mul, v, partner(v));
      case 4: return build::binary(Op::Sub, partner(v), v);
      case 5: {
        if (v.rank() == 0) return v;
        const std::int64_t axes = 1 + below((1u << v.rank()) - 1);
        const Value r = build::reduce(below(3) == 0 ? Op::ReduceMax : Op::ReduceSum, v, axes);
        return below(2) == 0 ? r : build::reshape(r, build::without_axes(r.shape(), axes));
      }
      case 6: {  // normalise: subtract the mean of some axes
        if (v.rank() == 0) return v;
        const Value r = build::reduce(Op::ReduceSum, v, 1 + below((1u << v.rank()) - 1));
        return build::binary(Op::Sub, v, r);
      }
      case 7: {
        if (v.rank() < 2) return v;
        return build::swap_axes(v, static_cast<int>(below(static_cast<std::uint32_t>(v.rank()))), static_cast<int>(below(static_cast<std::uint32_t>(v.rank()))));
      }
      case 8: {
        Shape flat;
        flat.push(v.shape().size());
        if (below(2) == 0) return build::reshape(v, flat);
        Shape s;
        for (int i = 0; i < v.rank(); ++i)
          if (!v.shape()[i].is(1)) s.push(v.shape()[i]);
        return build::reshape(v, s);
      }
      case 9: {
        if (v.rank() < 1) return v;
        const Value a = v.rank() == 1 ? build::reshape(v, Shape{1, v.shape()[0]}) : v;
        return build::matmul(a, input(Shape{a.shape()[a.rank() - 1], extent()}));
      }
      case 10: {
        Shape s = v.shape();
        AttributeList starts, steps;
        for (int i = 0; i < s.rank; ++i) {
          const bool cut = s[i].is_static() && s[i].coefficient > 1;
          const bool flip = s[i].is_static() && !cut ? false : s[i].is_static() && below(3) == 0;
          if (cut) s[i] = Dim(s[i].coefficient - 1);
          starts.push(flip ? s[i].coefficient - 1 : cut);
          steps.push(flip ? -1 : 1);
        }
        return build::slice(v, s, starts, steps);
      }
      case 11: {
        if (v.rank() == 0) return v;
        const int axis = static_cast<int>(below(static_cast<std::uint32_t>(v.rank())));
        return build::concat(v, build::unary(Op::Cos, v), axis);
      }
      case 13: {  // elements of v at positions that depend on another value, or the sums of what goes to them
        const Value w = pick();
        const auto size = v.shape().size();
        if (!size.is_static()) return v;
        const Value scaled = build::binary(Op::Mul, build::unary(Op::Abs, build::unary(Op::Sin, w)), build::constant_like(w, 0.999 * static_cast<double>(size.coefficient)));
        const Value at = build::unary(Op::CheckIndex, build::cast(scaled, DType::i64), size.coefficient);
        if (below(2) == 0) return build::gather(v, at);
        return build::reshape(build::scatter(Op::ScatterAdd, w, at, size), v.shape());
      }
      case 14: {
        if (v.rank() == 0) return v;
        const Value sums = build::cumsum(v, below(2) == 0);
        return build::binary(Op::Div, sums, build::constant_like(v, 4));
      }
      case 15: {
        if (v.rank() == 0 || !v.shape()[v.rank() - 1].is_static()) return v;
        return build::linear_scan(build::unary(Op::Sin, v), v, below(2) == 0);
      }
      case 16: {
        if (v.rank() == 0 || !v.shape()[v.rank() - 1].is_static() || !v.shape().size().is_static()) return v;
        const auto n = v.shape()[v.rank() - 1].coefficient;
        const Value order = build::argsort(v, 1 + below(static_cast<std::uint32_t>(n)), below(2) == 0);
        return build::gather(v, tg::detail::positions_of(order, v.shape(), v.rank() - 1, order.shape(), 1));
      }
      case 17: {
        const Value key = build::constant(g, DType::i64, Shape{}, static_cast<double>(below(3)));
        const Value bits = build::binary(Op::RandomBits, key, build::broadcast_to(tg::detail::row_major_position(g, v.shape(), 0, v.rank()), v.shape()));
        const Value keep = build::binary(Op::Less, build::cast(bits, DType::f64), build::constant(g, DType::f64, v.shape(), 0x1p52));
        return build::select(keep, v, build::constant_like(v, 0.0));
      }
      case 12: return build::select(build::binary(Op::Less, v, partner(v)), v, build::unary(Op::Neg, v));
      default: {
        if (v.rank() == 0) return v;
        const int axis = static_cast<int>(below(static_cast<std::uint32_t>(v.rank())));
        const Value ramp = build::iota(g, DType::i64, v.shape(), axis);
        return build::select(build::binary(Op::Less, ramp, build::constant_like(ramp, 2)), v, build::constant_like(v, 0.5));
      }
    }
  }
};

bool close(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-9 * (1 + std::fabs(a));
}

// The same graph with its nodes appended in another order, as another compiler might evaluate the arguments of calls.
Graph in_another_order(const Graph& g, std::uint64_t seed, std::vector<int>& to) {
  Graph r;
  r.shapes = g.shapes;
  r.attributes = g.attributes;
  r.symbols = g.symbols;
  to.assign(g.nodes.size(), -1);
  std::uint64_t draw = 0;
  for (int left = g.size(); left > 0;) {
    std::vector<int> ready;
    for (int id = 0; id < g.size(); ++id) {
      bool now = to[static_cast<std::size_t>(id)] < 0;
      for (int a = 0; a < arity(g[id].op); ++a) now = now && to[static_cast<std::size_t>(g[id].in[static_cast<std::size_t>(a)])] >= 0;
      // Inputs keep their order, as those of a traced function do.
      if (now && g[id].op == Op::Input)
        for (int i = 0; i < id; ++i) now = now && !(g[i].op == Op::Input && to[static_cast<std::size_t>(i)] < 0);
      if (now) ready.push_back(id);
    }
    const int id = ready[rng::bits(seed, 7, 0, draw++) % ready.size()];
    Node n = g[id];
    for (int a = 0; a < arity(n.op); ++a) n.in[static_cast<std::size_t>(a)] = to[static_cast<std::size_t>(n.in[static_cast<std::size_t>(a)])];
    to[static_cast<std::size_t>(id)] = r.push(n);
    --left;
  }
  for (int o : g.outputs) r.outputs.push_back(to[static_cast<std::size_t>(o)]);
  return r;
}

// The plan must not depend on the order in which nodes were appended.
void check_same_plan(const Compiled& a, const Compiled& b) {
  REQUIRE(a.plan.kernels.size() == b.plan.kernels.size());
  std::vector<std::uint64_t> x, y;
  for (std::size_t k = 0; k < a.plan.kernels.size(); ++k) {
    append_region_key(a.plan, a.plan.kernels[k], x);
    append_region_key(b.plan, b.plan.kernels[k], y);
  }
  CHECK(x == y);
}

// Every kernel finds the code of its own region, and a region that is not there is named.
void check_link(const Compiled& c) {
  const RegionSet set = regions_of(c.plan);
  std::vector<int> entries;
  for (std::size_t r = 0; r < set.size(); ++r) entries.push_back(static_cast<int>(r));
  const std::vector<int> linked = link<int>(c, set.words, set.starts, entries);
  for (std::size_t k = 0; k < linked.size(); ++k) {
    const Kernel& kernel = c.plan.kernels[k];
    const auto start = set.starts[static_cast<std::size_t>(linked[k])];
    const RegionHead head = RegionHead::decode(set.words[start]);
    REQUIRE(head.kind == kernel.kind);
    REQUIRE(head.kept == kernel.kept);
    REQUIRE(head.reduced == kernel.reduced);
    REQUIRE(head.operands == kernel.operands);
    REQUIRE(head.instructions == kernel.instructions);
    for (int o = 0; o < head.operands; ++o) {
      REQUIRE(access_in(set.words.data() + start, o) == access_of(kernel, c.plan.operands[static_cast<std::size_t>(kernel.first_operand + o)]));
    }
    for (int i = 0; i < head.instructions; ++i) {
      const std::size_t at = start + static_cast<std::size_t>(1 + head.access_words() + 2 * i);
      REQUIRE(tg::detail::decode_step({set.words[at], set.words[at + 1]}) == c.plan.instructions[static_cast<std::size_t>(kernel.first_instruction + i)]);
    }
  }
  if (set.size() < 2) return;
  entries.pop_back();
  CHECK_THROWS_WITH_AS(link<int>(c, set.words, std::span(set.starts).first(set.size()), entries), doctest::Contains("no code was compiled for kernel"), Error);
}

void check(std::uint64_t seed) {
  CAPTURE(seed);
  Generator r;
  r.seed = seed;
  r.symbol = r.g.intern(Name("n"));
  r.symbol_value = 1 + r.below(4);
  Shape first;
  const int rank = static_cast<int>(r.below(seed % 3 == 0 ? 5 : 4));
  for (int i = 0; i < rank; ++i) first.push(r.extent());
  r.values.push_back(r.input(first));
  const int steps = 3 + static_cast<int>(r.below(14));
  for (int i = 0; i < steps; ++i) {
    const Value v = r.step();
    if (v.rank() > 4 || v.shape().size().evaluate(&r.symbol_value) > 600) continue;
    if ((v.shape().size().symbols >> 16) != 0) continue;
    r.values.push_back(v);
  }
  const Value last = r.values.back();
  r.g.outputs.push_back(last.id);
  if (r.below(3) == 0) r.g.outputs.push_back(r.pick().id);
  const bool differentiate = r.below(2) == 0, update = differentiate && r.below(2) == 0;
  // Adds what is derived from the graph, in which the last value and the first input have these numbers.
  const auto derive = [&](Graph& g, int last_id, int input_id) {
    if (!differentiate) return;
    const Value end{&g, last_id};
    const Value total = build::reshape(build::reduce(Op::ReduceSum, end, (std::int64_t{1} << end.rank()) - 1), Shape{});
    g.outputs.push_back(gradient(total, {input_id})[0].id);
    if (!update) return;
    // An update in place of the first input.
    g.outputs.push_back(build::binary(Op::Sub, {&g, input_id}, {&g, g.outputs.back()}).id);
    g.donors.assign(g.outputs.size(), -1);
    g.donors.back() = 0;
  };
  std::vector<int> to;
  Graph other = in_another_order(r.g, seed, to);
  derive(r.g, last.id, r.values[0].id);
  derive(other, to[static_cast<std::size_t>(last.id)], to[static_cast<std::size_t>(r.values[0].id)]);
  const auto expected = reference::run(r.g, r.inputs);
  const auto simple = reference::run(simplify(r.g), r.inputs);
  const Compiled c = compile(r.g);
  check_same_plan(c, compile(other));
  check_link(c);
  const reference::PlanExecutor executor(c, r.inputs);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const Array found = executor.output(k);
    REQUIRE(found.size() == expected[k].size());
    int wrong = 0, wrong_simple = 0;
    for (std::int64_t i = 0; i < found.size(); ++i) {
      wrong += !close(found.at(i), expected[k].at(i));
      wrong_simple += !close(simple[k].at(i), expected[k].at(i));
    }
    CAPTURE(k);
    CHECK(wrong_simple == 0);
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("passes keep the meaning of random graphs") {
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    try {
      check(seed);
    } catch (const char* message) {
      CAPTURE(seed);
      { std::string m = message; FAIL_CHECK(m); }
    }
  }
}
