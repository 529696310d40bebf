// expect: matmul: \[2, 3\] x \[4, 5\]: inner extents 3 and 4 differ
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto a, auto b) { return matmul(a, b); };
auto r = evaluate<f>(Tensor<Cpu, float, 2, 3>(), Tensor<Cpu, float, 4, 5>());
