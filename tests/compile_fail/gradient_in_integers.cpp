// Wrong: a gradient in an integer argument.
// expect: gradients are taken in floating-point expressions
#include "typegrad/typegrad.hpp"

constexpr auto f = [](auto x) { return tg::sum(tg::cast<float>(x)); };

int main() {
  tg::Tensor<tg::Cpu, std::int32_t, 3> a;
  tg::grad<f>(a);
}
