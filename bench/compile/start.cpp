// How long a program of the model in gpt2.cpp takes to plan itself when it starts.
#include "gpt2.hpp"

#include <chrono>
#include <cstdio>

using Model = gpt2::Model<TYPEGRAD_BENCH_LAYERS, 768, 12, 50257, 1024>;
using Trainer = tg::Trainer<tg::Cpu, Model, gpt2::loss>;
using Flat = tg::Expr<float, tg::Parameters<tg::Cpu, Model>::count>;
using Ids = tg::Expr<std::int32_t, 4, 64>;
using Step = tg::Tracer<tg::detail::TrainStep<Model, gpt2::loss, tg::optim::AdamW>, Flat, Flat, Flat, tg::Expr<float, Trainer::hyper_count>, tg::Expr<std::int64_t>, Ids, Ids>;

int main() {
  const auto start = std::chrono::steady_clock::now();
  const tg::Compiled& c = tg::plan_of<Step>();
  tg::Binding binding(c);
  binding.bind({});
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  std::printf("%d layers: %zu nodes, %zu kernels of %zu regions planned in %.1f ms\n", TYPEGRAD_BENCH_LAYERS, c.graph.nodes.size(), c.plan.kernels.size(),
              tg::regions_of(c.plan).size(), time.count());
}
