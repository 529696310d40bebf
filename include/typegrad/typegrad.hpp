// All of typegrad but the CUDA back end (typegrad/cuda.hpp).
#pragma once

#include "typegrad/data/loader.hpp"
#include "typegrad/nn/linear.hpp"
#include "typegrad/nn/parameters.hpp"
#include "typegrad/ops/einsum.hpp"
#include "typegrad/ops/pooling.hpp"
#include "typegrad/ops/random.hpp"
#include "typegrad/ops/rearrange.hpp"
#include "typegrad/ops/scan.hpp"
#include "typegrad/ops/sort.hpp"
#include "typegrad/optim/trainer.hpp"
#include "typegrad/report/explain.hpp"
#include "typegrad/runtime/evaluate.hpp"
#include "typegrad/runtime/random.hpp"
