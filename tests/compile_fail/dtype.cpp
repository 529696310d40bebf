// expect: add: dtypes float and double differ
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto a, auto b) { return a + b; };
auto r = evaluate<f>(Tensor<Cpu, float, 2>(), Tensor<Cpu, double, 2>());
