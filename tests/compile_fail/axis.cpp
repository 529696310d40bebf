// expect: axis 2 is out of range for a tensor of rank 2
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto a) { return sum<2>(a); };
auto r = evaluate<f>(Tensor<Cpu, float, 8, 10>());
