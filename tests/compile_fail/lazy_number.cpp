// expect: a floating-point number meets a tensor of an integer dtype
#include "typegrad/typegrad.hpp"
using namespace tg;
auto r = Tensor<Cpu, std::int32_t, 3>() * 0.5;
