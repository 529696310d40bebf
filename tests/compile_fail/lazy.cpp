// expect: mul: shapes \[2, 3\] and \[4\] do not broadcast
#include "typegrad/typegrad.hpp"
using namespace tg;
auto r = Tensor<Cpu, float, 2, 3>() * Tensor<Cpu, float, 4>();
