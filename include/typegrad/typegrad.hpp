// All of typegrad but the CUDA back end (typegrad/cuda.hpp).
#pragma once

#include "typegrad/data/loader.hpp"
#include "typegrad/nn/convolution.hpp"
#include "typegrad/nn/dropout.hpp"
#include "typegrad/nn/linear.hpp"
#include "typegrad/nn/normalization.hpp"
#include "typegrad/nn/parameters.hpp"
#include "typegrad/nn/recurrent.hpp"
#include "typegrad/nn/sequential.hpp"
#include "typegrad/ops/einsum.hpp"
#include "typegrad/ops/random.hpp"
#include "typegrad/ops/scan.hpp"
#include "typegrad/ops/sort.hpp"
#include "typegrad/optim/trainer.hpp"
#include "typegrad/report/explain.hpp"
#include "typegrad/runtime/evaluate.hpp"
#include "typegrad/runtime/random.hpp"
