// Wrong: a model's layer gets as many features as the layer before it does not give.
// expect: matmul: \[batch, 16\] x \[8, 3\]: inner extents 16 and 8 differ
#include "typegrad/typegrad.hpp"

struct Mlp {
  tg::nn::Linear<6, 16> hidden;
  tg::nn::Linear<8, 3> head;
  constexpr auto operator()(auto x) const { return head(tg::relu(hidden(x))); }
  static constexpr auto members = tg::members("hidden", &Mlp::hidden, "head", &Mlp::head);
};
constexpr auto loss = [](const Mlp& model, auto x, auto y) { return tg::cross_entropy(model(x), y); };

int main() {
  tg::Trainer<tg::Cpu, Mlp, loss> trainer;
  trainer.step(tg::Tensor<tg::Cpu, float, tg::dyn<"batch">, 6>::zeros({2, 6}), tg::Tensor<tg::Cpu, std::int32_t, tg::dyn<"batch">>::zeros({2}));
}
