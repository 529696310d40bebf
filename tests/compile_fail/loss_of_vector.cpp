// Wrong: a loss function that is not reduced to a scalar.
// expect: the first result of a loss function is a floating-point scalar; reduce it with tg::mean
#include "typegrad/typegrad.hpp"

constexpr auto loss = [](auto model, auto x) { return model(x); };

int main() {
  tg::Trainer<tg::Cpu, tg::nn::Linear<2, 3>, loss> trainer;
  trainer.step(tg::Tensor<tg::Cpu, float, 4, 2>());
}
