// Measures one thing against another on a machine whose speed changes from second to second.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "typegrad/typegrad.hpp"

namespace bench {

inline double median(std::vector<double> v) {
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

template <class F>
double seconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  benchmark::ClobberMemory();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One run does `work`, in billions of the unit that the rate is given in. `prepare` is not timed.
struct Run {
  std::function<void()> run;
  double work;
  std::function<void()> prepare = [] {};
};

// What a comparison is called and what it should show; without a target (0) it only informs.
struct Report {
  std::string label;
  std::string unit;   // of the rate: "GB/s", "GFLOP/s"
  std::string ratio;  // the counter that holds the ratio to the reference: "ratio_of_triad"
  double target = 0;
  int pairs = 31;
  std::size_t kernels = 0;  // of the candidate's program where it should be one
};

// The two take turns, so that a pair sees the machine in one state; the median pair is what is reported.
inline void compare(const Report& report, Run candidate, Run reference) {
  benchmark::RegisterBenchmark(report.label.c_str(), [=](benchmark::State& state) {
    std::vector<double> ratios, rates, reference_rates;
    auto rate_of = [](const Run& r) {
      r.prepare();
      return r.work / seconds(r.run);
    };
    rate_of(candidate);
    rate_of(reference);
    for (auto _ : state) {
      rates.push_back(rate_of(candidate));
      reference_rates.push_back(rate_of(reference));
      ratios.push_back(rates.back() / reference_rates.back());
      state.SetIterationTime(candidate.work / rates.back());
    }
    state.counters[report.unit] = median(rates);
    state.counters["reference_" + report.unit] = median(reference_rates);
    state.counters[report.ratio] = median(ratios);
    if (report.target > 0) state.counters["target"] = report.target;
    if (report.kernels > 0) state.counters["kernels"] = static_cast<double>(report.kernels);
  })->Iterations(report.pairs)->UseManualTime()->Unit(benchmark::kMillisecond);
}

// Into how many kernels the function F is compiled for arguments of these types.
template <auto F, class... X>
std::size_t kernels_of(const X&...) {
  return tg::plan_of<tg::Tracer<tg::Function<F>, typename X::expr_type...>>().plan.kernels.size();
}

// Numbers spread evenly over [low, high), in no order that a branch or a cache could learn.
template <class Tensor>
Tensor filled(double low, double high) {
  std::vector<typename Tensor::value_type> values(static_cast<std::size_t>(Tensor::extents.size().coefficient));
  double x = 0;
  for (auto& v : values) {
    x += 0.6180339887498949;
    x -= static_cast<double>(x >= 1);
    v = static_cast<typename Tensor::value_type>(low + (high - low) * x);
  }
  return Tensor::from(values);
}

inline int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace bench
