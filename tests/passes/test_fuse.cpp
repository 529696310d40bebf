// What fuse puts into one kernel.
#include <doctest/doctest.h>

#include "typegrad/autodiff/gradient.hpp"
#include "typegrad/ops/normalization.hpp"
#include "typegrad/passes/fuse.hpp"
#include "typegrad/passes/simplify.hpp"

namespace {

template <class E>
E input(tg::Graph& g, int position) {
  return E(tg::build::input(g, E::element, tg::to_shape(g, E::extents), position));
}

tg::Clusters fused(const tg::Graph& g) { return tg::fuse(tg::duplicate_cheap(tg::simplify(g))); }

}  // namespace

TEST_CASE("softmax and layer norm, written from primitives, are one kernel each") {
  using namespace tg;
  Graph g;
  g.outputs = {softmax(input<Expr<float, 4096, 1024>>(g, 0)).id};
  CHECK(fused(g).clusters.size() == 1);
  Graph h;
  const auto x = input<Expr<float, 4096, 1024>>(h, 0);
  h.outputs = {(layer_norm(x) * input<Expr<float, 1024>>(h, 1)).id};
  CHECK(fused(h).clusters.size() == 1);
}

TEST_CASE("a training step of a perceptron launches no kernel that fusion could have removed") {
  using namespace tg;
  Graph g;
  const auto x = input<Expr<float, dyn<"batch">, 784>>(g, 0);
  const auto w1 = input<Expr<float, 512, 784>>(g, 1);
  const auto b1 = input<Expr<float, 512>>(g, 2);
  const auto w2 = input<Expr<float, 10, 512>>(g, 3);
  const auto b2 = input<Expr<float, 10>>(g, 4);
  const auto labels = input<Expr<std::int32_t, dyn<"batch">>>(g, 5);
  const auto loss = cross_entropy(matmul(relu(matmul(x, transpose(w1)) + b1), transpose(w2)) + b2, labels);
  const auto d = gradient(loss, {w1.id, b1.id, w2.id, b2.id});
  g.outputs = {loss.id};
  for (const auto& v : d) g.outputs.push_back(v.id);
  const Clusters c = fused(g);
  int contractions = 0;
  for (const Cluster& k : c.clusters) contractions += k.kind == ClusterKind::Contract;
  CHECK(contractions == 5);        // two forward, three backward: the input needs no gradient
  CHECK(c.clusters.size() == 11);  // and three for the loss, one for the logits' gradient, two for the biases
}
