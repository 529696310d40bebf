// expect: call: the function does not take \(a model, float \[2, 6\]\)
#include "typegrad/typegrad.hpp"

struct Model {
  tg::nn::Linear<6, 3> head;
  constexpr auto operator()(auto x) const { return head(x); }
  static constexpr auto members = tg::members("head", &Model::head);
};
constexpr auto loss = [](const Model& model, auto x, auto y) { return tg::cross_entropy(model(x), y); };

int main() {
  tg::Trainer<tg::Cpu, Model, loss> trainer;
  trainer.step(tg::Tensor<tg::Cpu, float, 2, 6>());
}
