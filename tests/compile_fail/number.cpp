// expect: a floating-point number meets a tensor of dtype int32
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto a) { return a + 0.5; };
auto r = evaluate<f>(Tensor<Cpu, std::int32_t, 8>());
