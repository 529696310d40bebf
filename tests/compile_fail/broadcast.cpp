// expect: add: shapes \[2, 3\] and \[4\] do not broadcast
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto a, auto b) { return a + b; };
auto r = evaluate<f>(Tensor<Cpu, float, 2, 3>(), Tensor<Cpu, float, 4>());
