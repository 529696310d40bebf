// A training step of GPT-2 with TYPEGRAD_BENCH_LAYERS layers, batch 4 x 64.
#include "gpt2.hpp"

#include <cstdio>

using Model = gpt2::Model<TYPEGRAD_BENCH_LAYERS, 768, 12, 50257, 1024>;

int main() {
  tg::Tensor<tg::Cpu, std::int32_t, 4, 64> ids, targets;
  tg::Trainer<tg::Cpu, Model, gpt2::loss> trainer;
  const auto [l] = std::tuple(trainer.step(ids, targets));
  std::printf("%g\n", static_cast<double>(l.item()));
}
