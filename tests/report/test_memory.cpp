// What is known of a program before it runs: memory and cost as constants, and the plan of a model that no machine here holds.
#include <doctest/doctest.h>

#include "typegrad/typegrad.hpp"

namespace {

using tg::Cpu;

constexpr auto mlp = [](auto x, auto w1, auto w2) { return tg::sum(tg::softmax(tg::matmul(tg::tanh(tg::matmul(x, w1)), w2))); };
using X = tg::Expr<float, 32, 64>;
using W1 = tg::Expr<float, 64, 128>;
using W2 = tg::Expr<float, 128, 16>;

// Llama 2 7B (Touvron et al. 2023), without its rotations, which have no parameters.
constexpr int width = 4096, inner = 11008, vocabulary = 32000, layers = 32;
struct LlamaBlock {
  tg::nn::RmsNorm<width> input_layernorm;
  tg::nn::Linear<width, width, float, false> q_proj, k_proj, v_proj, o_proj;
  tg::nn::RmsNorm<width> post_attention_layernorm;
  tg::nn::Linear<width, inner, float, false> gate_proj, up_proj;
  tg::nn::Linear<inner, width, float, false> down_proj;
  constexpr auto operator()(auto x) const {
    const auto n = input_layernorm(x);
    const auto weights = tg::softmax(tg::matmul(q_proj(n), tg::transpose(k_proj(n))) * (1.0 / 64));
    const auto y = x + o_proj(tg::matmul(weights, v_proj(n)));
    const auto m = post_attention_layernorm(y);
    return y + down_proj(tg::silu(gate_proj(m)) * up_proj(m));
  }
  static constexpr auto members =
      tg::members("input_layernorm", &LlamaBlock::input_layernorm, "self_attn.q_proj", &LlamaBlock::q_proj, "self_attn.k_proj", &LlamaBlock::k_proj,
                  "self_attn.v_proj", &LlamaBlock::v_proj, "self_attn.o_proj", &LlamaBlock::o_proj, "post_attention_layernorm",
                  &LlamaBlock::post_attention_layernorm, "mlp.gate_proj", &LlamaBlock::gate_proj, "mlp.up_proj", &LlamaBlock::up_proj, "mlp.down_proj",
                  &LlamaBlock::down_proj);
};
struct Llama {
  tg::nn::Embedding<vocabulary, width> embed_tokens;
  tg::nn::Stack<LlamaBlock, layers> layer;
  tg::nn::RmsNorm<width> norm;
  tg::nn::Linear<width, vocabulary, float, false> lm_head;
  constexpr auto operator()(auto ids) const { return lm_head(norm(layer(embed_tokens(ids)))); }
  static constexpr auto members = tg::members("model.embed_tokens", &Llama::embed_tokens, "model.layers", &Llama::layer, "model.norm", &Llama::norm, "lm_head", &Llama::lm_head);
};
constexpr auto loss = [](const auto& model, auto ids, auto targets) { return tg::cross_entropy(model(ids), targets); };

}  // namespace

TEST_CASE("memory and cost are constants on request, and those of the program that runs") {
  static constexpr std::int64_t bytes = tg::memory_of<mlp, X, W1, W2>();
  static constexpr tg::Cost cost = tg::cost_of<mlp, X, W1, W2>();
  static_assert(bytes >= 32 * 128 * 4 && bytes < 1 << 20);
  static_assert(cost.flops > 2.0 * 32 * 64 * 128);
  const tg::Compiled& c = tg::plan_of<tg::Tracer<tg::Function<mlp>, X, W1, W2>>();
  CHECK(tg::arena_bytes(c) == bytes);
  CHECK(tg::cost_of(c.plan, nullptr).flops == cost.flops);
  CHECK(tg::cost_of(c.plan, nullptr).bytes == cost.bytes);
  tg::Binding binding(c);
  binding.bind({});
  CHECK(binding.arena_bytes() == bytes);
}

TEST_CASE("a model of seven billion parameters is planned") {
  using Layout = tg::ParameterLayout<Llama>;
  static_assert(Layout::size == 6738415616);
  static_assert(tg::Parameters<Cpu, Llama>::count == Layout::size);
  std::int64_t end = 0;
  for (const tg::Slot& s : Layout::slots()) end = std::max(end, s.offset + s.size);
  CHECK(end == Layout::size);

  using Flat = tg::Expr<float, tg::Parameters<Cpu, Llama>::count>;
  using Ids = tg::Expr<std::int32_t, 128>;
  using Step = tg::Tracer<tg::detail::TrainStep<Llama, loss, tg::optim::AdamW>, Flat, Flat, Flat, tg::Expr<float, tg::Trainer<Cpu, Llama, loss>::hyper_count>, tg::Expr<std::int64_t>, Ids, Ids>;
  const tg::Compiled& c = tg::plan_of<Step>();
  const double gigabyte = 1e9, flat = static_cast<double>(Layout::size) * 4;
  const auto arena = static_cast<double>(tg::arena_bytes(c));
  MESSAGE("parameters ", flat / gigabyte, " GB, AdamW ", 2 * flat / gigabyte, " GB, gradients and activations ", arena / gigabyte, " GB, ", c.plan.kernels.size(), " kernels");
  // The flat gradient is in the arena; what else is there must not be another copy of it.
  CHECK(arena > flat);
  CHECK(arena < 1.2 * flat);
  // Offsets beyond 2^31 elements.
  std::int64_t farthest = 0;
  for (const tg::KernelOperand& o : c.plan.operands) farthest = std::max(farthest, o.offset.evaluate(nullptr));
  CHECK(farthest > std::int64_t{1} << 32);
}
