#!/usr/bin/env bash
# Builds and runs the tests, installing what they need: cmake/run_tests.sh [preset] [arguments of ctest]
set -euo pipefail
cd "$(dirname "$0")/.."
cmake/install_packages.sh g++ cmake ninja-build doctest-dev zlib1g-dev libeigen3-dev dataset-fashion-mnist libbenchmark-dev

preset=cpu
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  preset=$1
  shift
fi
cmake --preset "$preset"
cmake --build --preset "$preset"
ctest --preset "$preset" "$@"
