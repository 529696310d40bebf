#!/bin/sh
# Measures what programs cost to compile, and how long they take to plan themselves when they start. Needs Eigen; nvcc is
# measured too where it is on the PATH and `cuda` is an argument.
set -eu
cd "$(dirname "$0")/.."
[ -e /usr/bin/time ] || cmake/install_packages.sh time
eigen=$(pkg-config --cflags-only-I eigen3 2> /dev/null | sed 's/^-I//')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=c++20 -O2 -I include -isystem ${eigen:-/usr/include/eigen3}"
host="$flags -march=native -fopenmp -fconstexpr-ops-limit=2000000000 -fconstexpr-loop-limit=100000000"

echo "$(g++ --version | head -1), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), -O2 -march=native, seconds of processor time"
measure() {  # title, command
  title=$1
  shift
  /usr/bin/time -o "$work/time" -f "%U %M" "$@" || exit 1
  awk -v title="$title" '{ printf "%-44s %7.1f s %6.2f GB\n", title, $1, $2 / 1048576 }' "$work/time"
}
# shellcheck disable=SC2086
{
  measure "the header alone" g++ $host bench/compile/header.cpp -o "$work/a" -lz
  measure "perceptron of three layers" g++ $host bench/compile/mlp.cpp -o "$work/a" -lz
  measure "Fashion-MNIST example" g++ $host examples/fashion_mnist/main.cpp -o "$work/a" -lz
  for n in 2 12 48; do measure "GPT-2, a stack of $n blocks" g++ $host -DTYPEGRAD_BENCH_STACK -DTYPEGRAD_BENCH_LAYERS=$n bench/compile/gpt2.cpp -o "$work/a" -lz; done
  for n in 2 12; do measure "GPT-2, a loop over $n blocks" g++ $host -DTYPEGRAD_BENCH_LAYERS=$n bench/compile/gpt2.cpp -o "$work/a" -lz; done
  for n in 12 48; do
    g++ $host -DTYPEGRAD_BENCH_STACK -DTYPEGRAD_BENCH_LAYERS=$n bench/compile/start.cpp -o "$work/start" -lz
    "$work/start"
  done
  if [ "${1:-}" = cuda ]; then
    nvcc --version | tail -1
    for n in 2 12; do
      sed 's/tg::Cpu/tg::Cuda/g; s|"gpt2.hpp"|"gpt2.hpp"\n#include "typegrad/cuda.hpp"|' bench/compile/gpt2.cpp > "$work/gpt2.cu"
      measure "GPT-2, a stack of $n blocks, nvcc sm_80" nvcc $flags -I bench/compile -arch=sm_80 -Xcudafe --max_cost_constexpr_call=2000000000 \
        -Xcompiler -fopenmp -Xcompiler -fconstexpr-ops-limit=2000000000 -Xcompiler -fconstexpr-loop-limit=100000000 -DTYPEGRAD_BENCH_STACK -DTYPEGRAD_BENCH_LAYERS=$n "$work/gpt2.cu" -o "$work/a" -lcublasLt -lz
    done
  fi
}
