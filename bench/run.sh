#!/bin/sh
# Builds the benchmarks, runs them and writes docs/performance.md. Needs libbenchmark-dev.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
[ -e /usr/include/benchmark/benchmark.h ] || cmake/install_packages.sh libbenchmark-dev
cmake --preset cpu > /dev/null
cmake --build --preset cpu --target bench
report=$(mktemp)
trap 'rm -f "$report"' EXIT
{
  echo "# Performance"
  echo
  echo "Written by \`bench/run.sh\` on $(date -u +%Y-%m-%d): $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) processors,"
  echo "$(c++ --version | head -1). Every figure is a median; the thing measured and its reference alternate in one run, so that ratios"
  echo "hold on a machine whose speed changes. \`target\` is the ratio we want; where the ratio is below it, there is work to do."
  echo "GPU speed has not been measured."
  for program in elementwise rows matmul training; do
    echo
    echo "## $program"
    echo
    echo '```'
    "build/cpu/bench/bench_$program" 2> /dev/null | sed -n '/^Benchmark/,$p' | sed 's|/iterations:[0-9]*/manual_time||'
    echo '```'
  done
  echo
  echo "## compile"
  echo
  echo '```'
  bench/compile.sh
  echo '```'
} > "$report"
grep -q "contract_share" "$report" || { echo "bench/run.sh: a benchmark printed no result" >&2; exit 1; }
cp "$report" docs/performance.md
echo "docs/performance.md written"
