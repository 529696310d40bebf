// Wrong: the inner extents of a matrix product in an expression over tensors differ.
// expect: matmul: \[2, 3\] x \[4, 5\]: inner extents 3 and 4 differ
#include "typegrad/typegrad.hpp"

int main() {
  tg::Tensor<tg::Cpu, float, 2, 3> a;
  tg::Tensor<tg::Cpu, float, 4, 5> b;
  auto c = tg::matmul(a, b);
}
