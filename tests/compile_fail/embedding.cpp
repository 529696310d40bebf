// expect: take: the index has dtype float, expected an integer
#include "typegrad/typegrad.hpp"
using namespace tg;
constexpr auto f = [](auto table, auto ids) { return embedding(table, ids); };
auto r = evaluate<f>(Tensor<Cpu, float, 8, 4>(), Tensor<Cpu, float, 3>());
