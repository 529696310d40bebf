// A program with macros min and max, as <windows.h> defines them, when it includes typegrad.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <Eigen/Core>

// The standard headers and Eigen are above: they drop or trip over the macros themselves.
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

#include <typegrad/typegrad.hpp>

constexpr auto f = [](auto x) { return tg::logsumexp<-1>(tg::relu(x)); };

int main() {
  const tg::Tensor<tg::Cpu, float, 2, 3> x({1, 2, 3, 4, 5, 6});
  const auto y = tg::evaluate<f>(x);
  return max(y.at(0), y.at(1)) == y.at(1) ? 0 : 1;
}
