// A training step of the example's perceptron: images per second, and where the time goes.
#include "measure.hpp"

namespace {

using tg::Cpu;

struct Mlp {
  tg::nn::Linear<784, 512> hidden1;
  tg::nn::Linear<512, 256> hidden2;
  tg::nn::Linear<256, 10> head;
  constexpr auto operator()(auto images) const { return head(tg::relu(hidden2(tg::relu(hidden1(images))))); }
  static constexpr auto members = tg::members("hidden1", &Mlp::hidden1, "hidden2", &Mlp::hidden2, "head", &Mlp::head);
};
constexpr auto loss = [](const Mlp& model, auto images, auto labels) { return tg::cross_entropy(model(images), labels); };
using Trainer = tg::Trainer<Cpu, Mlp, loss, tg::optim::AdamW>;

constexpr int batch = 128;
using Images = tg::Tensor<Cpu, float, batch, 784>;
using Labels = tg::Tensor<Cpu, std::int32_t, batch>;

void step(benchmark::State& state) {
  Trainer trainer;
  const auto images = bench::filled<Images>(-1, 2);
  const auto labels = bench::filled<Labels>(0, 10);
  auto& program = Trainer::program(images, labels).device_program();
  const tg::Plan& plan = Trainer::program(images, labels).plan();
  trainer.step(images, labels);

  std::vector<double> times;
  for (auto _ : state) {
    times.push_back(bench::seconds([&] { trainer.step(images, labels); }));
    state.SetIterationTime(times.back());
  }

  // Apart from the measured steps, which no clock should slow down.
  std::vector<tg::KernelTime> kernels(plan.kernels.size());
  program.executor.profile(&kernels);
  for (int i = 0; i < 50; ++i) trainer.step(images, labels);
  program.executor.profile(nullptr);
  double all = 0, contractions = 0;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    all += kernels[k].seconds;
    if (plan.kernels[k].kind == tg::KernelKind::Contract) contractions += kernels[k].seconds;
  }
  state.counters["images/s"] = batch / bench::median(times);
  state.counters["GFLOP/s"] = tg::cost_of(plan, nullptr).flops * 1e-9 / bench::median(times);
  state.counters["kernels"] = static_cast<double>(plan.kernels.size());
  state.counters["contract_share"] = contractions / all;
  state.counters["arena_bytes"] = static_cast<double>(program.executor.arena_bytes());
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("training step, 784-512-256-10 perceptron, batch 128", step)->Iterations(300)->UseManualTime()->Unit(benchmark::kMillisecond);
  return bench::main(argc, argv);
}
