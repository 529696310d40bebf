// What the second file of the program offers to the first.
#pragma once

#include <typegrad/typegrad.hpp>

float sum_of_squares(const tg::Tensor<tg::Cpu, float, tg::dyn<"n">>& x);
