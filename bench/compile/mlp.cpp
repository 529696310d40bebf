// A training step of a perceptron of three layers.
#include "typegrad/typegrad.hpp"

#include <cstdio>

struct Mlp {
  tg::nn::Linear<784, 512> hidden1;
  tg::nn::Linear<512, 256> hidden2;
  tg::nn::Linear<256, 10> head;
  constexpr auto operator()(auto x) const { return head(tg::relu(hidden2(tg::relu(hidden1(x))))); }
  static constexpr auto members = tg::members("hidden1", &Mlp::hidden1, "hidden2", &Mlp::hidden2, "head", &Mlp::head);
};
constexpr auto loss = [](const Mlp& model, auto x, auto y) { return tg::cross_entropy(model(x), y); };

int main() {
  tg::Tensor<tg::Cpu, float, 128, 784> x;
  tg::Tensor<tg::Cpu, std::int32_t, 128> y;
  tg::Trainer<tg::Cpu, Mlp, loss> trainer;
  std::printf("%g\n", static_cast<double>(trainer.step(x, y).item()));
}
