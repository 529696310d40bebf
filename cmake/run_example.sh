#!/usr/bin/env bash
# Builds the Fashion-MNIST example, installing what it needs, and runs it with the arguments given here.
set -euo pipefail
project="$(cd "$(dirname "$0")/.." && pwd)"
"$project/cmake/install_packages.sh" g++ cmake ninja-build libeigen3-dev zlib1g-dev dataset-fashion-mnist

# Only the example: a newcomer does not wait for the tests to compile.
build="$project/build/example"
mkdir -p "$project/build"
cmake -S "$project" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTYPEGRAD_BUILD_TESTS=OFF -DTYPEGRAD_BUILD_BENCH=OFF >"$build.log" 2>&1 || {
  cat "$build.log" >&2
  exit 1
}
cmake --build "$build" --target fashion_mnist
# The checkpoint goes to the build folder unless a --save among the arguments says otherwise.
exec "$build/examples/fashion_mnist" --save "$build/fashion_mnist.safetensors" "$@"
