// GPT-2 (Radford et al. 2019) as a model whose compile time is measured: layers either in a plain loop or in a stack.
#pragma once

#include "typegrad/typegrad.hpp"

namespace gpt2 {

template <int Width, int Heads>
struct Block {
  static constexpr int head = Width / Heads;
  tg::nn::LayerNorm<Width> ln_1;
  tg::nn::Linear<Width, 3 * Width> c_attn;
  tg::nn::Linear<Width, Width> c_proj;
  tg::nn::LayerNorm<Width> ln_2;
  tg::nn::Linear<Width, 4 * Width> c_fc;
  tg::nn::Linear<4 * Width, Width> c_proj_mlp;

  template <class X>
  constexpr auto attention(const X& x) const {
    constexpr auto batch = X::extents[0].coefficient, time = X::extents[1].coefficient;
    constexpr int b = static_cast<int>(batch), t = static_cast<int>(time);
    const auto qkv = tg::permute<2, 0, 3, 1, 4>(tg::reshape<b, t, 3, Heads, head>(c_attn(x)));
    const auto q = tg::squeeze<0>(tg::slice<0, 0, 1>(qkv));
    const auto k = tg::squeeze<0>(tg::slice<0, 1, 2>(qkv));
    const auto v = tg::squeeze<0>(tg::slice<0, 2, 3>(qkv));
    const auto scores = tg::matmul(q, tg::transpose(k)) * (1.0f / 8.0f);
    const auto causal = tg::iota_like<std::int32_t, 2>(scores) >= tg::iota_like<std::int32_t, 3>(scores);
    const auto weights = tg::softmax<-1>(tg::where(causal, scores, -1e9f));
    return c_proj(tg::reshape<b, t, Width>(tg::permute<0, 2, 1, 3>(tg::matmul(weights, v))));
  }
  constexpr auto operator()(auto x) const {
    const auto y = x + attention(ln_1(x));
    return y + c_proj_mlp(tg::gelu(c_fc(ln_2(y))));
  }
  static constexpr auto members = tg::members("ln_1", &Block::ln_1, "attn.c_attn", &Block::c_attn, "attn.c_proj", &Block::c_proj, "ln_2", &Block::ln_2,
                                              "mlp.c_fc", &Block::c_fc, "mlp.c_proj", &Block::c_proj_mlp);
};

template <int Layers, int Width, int Heads, int Vocabulary, int Context>
struct Model {
  tg::nn::Embedding<Vocabulary, Width> wte;
  tg::nn::Embedding<Context, Width> wpe;
#if defined(TYPEGRAD_BENCH_STACK)
  tg::nn::Stack<Block<Width, Heads>, Layers> h;
#else
  std::array<Block<Width, Heads>, Layers> h;
#endif
  tg::nn::LayerNorm<Width> ln_f;

  template <class X>
  constexpr auto operator()(X ids) const {
    constexpr auto time = X::extents[1].coefficient;
    auto x = wte(ids) + tg::slice<0, 0, time>(wpe.weight);
#if defined(TYPEGRAD_BENCH_STACK)
    x = h(x);
#else
    for (const auto& block : h) x = block(x);
#endif
    return tg::matmul(ln_f(x), tg::transpose(wte.weight));
  }
  static constexpr auto members = tg::members("wte", &Model::wte, "wpe", &Model::wpe, "h", &Model::h, "ln_f", &Model::ln_f);
};

constexpr auto loss = [](const auto& model, auto ids, auto targets) { return tg::cross_entropy(model(ids), targets); };

}  // namespace gpt2
