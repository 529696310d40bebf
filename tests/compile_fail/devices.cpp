// expect: the tensors of a program lie on one device
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto a, auto b) { return a * b; };
auto r = evaluate<f>(Tensor<Cpu, float, 8>(), Tensor<Reference, float, 8>());
