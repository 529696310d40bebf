// expect: cross_entropy: logits \[8, 10\] need integer labels of their leading shape, got int32 \[7\]
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto a, auto b) { return cross_entropy(a, b); };
auto r = evaluate<f>(Tensor<Cpu, float, 8, 10>(), Tensor<Cpu, std::int32_t, 7>());
