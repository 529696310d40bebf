// Wrong: an expression whose tensors lie on two devices.
// expect: the tensors of a program lie on one device; move them with to<Device>\(\)
#include "typegrad/typegrad.hpp"

int main() {
  tg::Tensor<tg::Cpu, float, 3> a;
  tg::Tensor<tg::Reference, float, 3> b;
  tg::Tensor<tg::Cpu, float, 3> c = a + b;
}
