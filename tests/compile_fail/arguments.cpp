// expect: call: the function does not take \(float \[8\]\)
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto a, auto b) { return a * b; };
auto r = evaluate<f>(Tensor<Cpu, float, 8>());
