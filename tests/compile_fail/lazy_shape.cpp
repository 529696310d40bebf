// Wrong: an expression is stored in a tensor of another shape.
// expect: the expression has another dtype or shape than the tensor
#include "typegrad/typegrad.hpp"

int main() {
  tg::Tensor<tg::Cpu, float, 3> a;
  tg::Tensor<tg::Cpu, float, 4> b = a + a;
}
