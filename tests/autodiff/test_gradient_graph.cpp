// The gradient of a traced graph has the shapes of what it is taken in, and simplify leaves the graph equivalent.
#include <doctest/doctest.h>

#include "typegrad/autodiff/gradient.hpp"
#include "typegrad/passes/simplify.hpp"

namespace {

consteval bool gradient_shapes_agree() {
  using namespace tg;
  Graph g;
  using X = Expr<float, dyn<"batch">, 784>;
  using W = Expr<float, 10, 784>;
  using L = Expr<std::int32_t, dyn<"batch">>;
  const X x(build::input(g, DType::f32, to_shape(g, X::extents), 0));
  const W w(build::input(g, DType::f32, to_shape(g, W::extents), 1));
  const L labels(build::input(g, DType::i32, to_shape(g, L::extents), 2));
  const auto loss = cross_entropy(relu(matmul(x, transpose(w))), labels);
  const auto d = gradient(loss, {x.id, w.id});
  return d[0].shape() == x.shape() && d[1].shape() == w.shape();
}
static_assert(gradient_shapes_agree());

}  // namespace

TEST_CASE("simplify removes what no output needs and enters equal nodes once") {
  using namespace tg;
  Graph g;
  const Value x = build::input(g, DType::f32, Shape{3}, 0);
  const Value a = x * 2.0, b = x * 2.0;
  const Value unused = exp(x);
  CHECK(unused.id > b.id);
  g.outputs = {static_cast<std::int32_t>((a + b).id)};
  const Graph s = simplify(g);
  int products = 0, exponentials = 0;
  for (const Node& n : s.nodes) {
    products += n.op == Op::Mul;
    exponentials += n.op == Op::Exp;
  }
  CHECK(products == 1);
  CHECK(exponentials == 0);
}

TEST_CASE("x * 0 is not folded, for x may be infinite") {
  using namespace tg;
  Graph g;
  const Value x = build::input(g, DType::f32, Shape{3}, 0);
  g.outputs = {static_cast<std::int32_t>((x * 0.0).id)};
  CHECK(simplify(g)[simplify(g).outputs[0]].op == Op::Mul);
}
