// expect: gradients are taken of a floating-point scalar
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto a) { return a * a; };
auto r = grad<f>(Tensor<Cpu, float, 8>());
