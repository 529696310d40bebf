// expect: add: shapes \[a\] and \[b\] do not broadcast
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto a, auto b) { return a + b; };
auto r = evaluate<f>(Tensor<Cpu, float, dyn<"a">>::zeros({2}), Tensor<Cpu, float, dyn<"b">>::zeros({2}));
