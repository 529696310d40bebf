// expect: scatter_add: float \[3, 5\] to float \[3, 4\] at \[3, 6\] along axis 1
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto x, auto index, auto updates) { return scatter_add<1>(x, index, updates); };
auto r = evaluate<f>(Tensor<Cpu, float, 3, 4>(), Tensor<Cpu, int, 3, 6>(), Tensor<Cpu, float, 3, 5>());
