// All of typegrad but the CUDA back end (typegrad/cuda.hpp).
#pragma once

#include "typegrad/runtime/evaluate.hpp"
#include "typegrad/runtime/random.hpp"
