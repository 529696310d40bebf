// Wrong: a matrix product with a vector.
// expect: matmul: \[2, 3\] x \[3\]: both operands need at least two axes
#include "typegrad/typegrad.hpp"

constexpr auto f = [](auto a, auto b) { return tg::matmul(a, b); };

int main() {
  tg::Tensor<tg::Cpu, float, 2, 3> a;
  tg::Tensor<tg::Cpu, float, 3> b;
  tg::evaluate<f>(a, b);
}
