// Wrong: a traced function uses a tensor that it did not get as an argument.
// expect: a traced function cannot use a tensor; pass it as an argument
#include "typegrad/typegrad.hpp"

const tg::Tensor<tg::Cpu, float, 3> global;
constexpr auto f = [](auto x) { return x + global; };

int main() {
  tg::Tensor<tg::Cpu, float, 3> a;
  tg::evaluate<f>(a);
}
