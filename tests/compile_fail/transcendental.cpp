// expect: exp: needs a floating-point tensor, got dtype int32
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto a) { return exp(a); };
auto r = evaluate<f>(Tensor<Cpu, std::int32_t, 8>());
