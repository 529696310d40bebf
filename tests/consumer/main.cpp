// A user's program: lazy expressions, gradients, a training step and a checkpoint, without run-time type information.
#include <cstdio>
#include <filesystem>

#include "second.hpp"

namespace {

struct Model {
  tg::nn::Linear<2, 8> hidden;
  tg::nn::Linear<8, 1> head;
  constexpr auto operator()(auto x) const { return head(tg::gelu(hidden(x))); }
  static constexpr auto members = tg::members("hidden", &Model::hidden, "head", &Model::head);
};
constexpr auto loss = [](const Model& model, auto x, auto y) { return tg::mse_loss(model(x), y); };
constexpr auto product = [](auto a, auto b) { return tg::sum(tg::softmax(tg::matmul(a, b)) * 2.0f); };

bool check(bool holds, const char* what) {
  if (!holds) std::fprintf(stderr, "wrong: %s\n", what);
  return holds;
}

}  // namespace

int main(int, char** argv) {
  const tg::Tensor<tg::Cpu, float, 2, 2> a({1, 2, 3, 4});
  const tg::Tensor<tg::Cpu, float, 2, 2> twice = a + a * 1.0f;
  bool good = check(twice.at(1, 1) == 8.0f, "a lazy expression");

  const auto [value, gradient] = tg::value_and_grad<product>(a, twice);
  good &= check(value.item() > 3.99f && value.item() < 4.01f && gradient.at(0, 0) < 1e-3f, "value_and_grad");

  const std::vector<float> three{1, 2, 3};
  good &= check(sum_of_squares(tg::Tensor<tg::Cpu, float, tg::dyn<"n">>::from(three, {3})) == 14.0f, "the second file");
  good &= check(tg::explain<product>(a, twice).find("kernel 0") != std::string::npos, "explain");

  tg::Trainer<tg::Cpu, Model, loss> trainer({.learning_rate = 0.05f}, 1);
  const tg::Tensor<tg::Cpu, float, 4, 2> x({0, 0, 0, 1, 1, 0, 1, 1});
  const tg::Tensor<tg::Cpu, float, 4, 1> y({0, 1, 1, 0});
  const float before = trainer.step(x, y).item();
  for (int i = 0; i < 200; ++i) trainer.step(x, y);
  good &= check(trainer.evaluate(x, y).item() < 0.1f * before, "training");

  const std::filesystem::path file = std::string(argv[0]) + ".safetensors";
  trainer.save(file);
  tg::Trainer<tg::Cpu, Model, loss> restored;
  restored.load(file);
  good &= check(restored.evaluate(x, y).item() == trainer.evaluate(x, y).item(), "a checkpoint");
  std::filesystem::remove(file);
  return good ? 0 : 1;
}
