// Kernels along rows, written from primitives, against the triad: the input is read once, the result written once.
#include "measure.hpp"
#include "reference_rates.hpp"

namespace {

using tg::Cpu;
constexpr int rows = 4096, columns = 1024;
constexpr double gigabytes = 4e-9 * rows * columns;  // of one operand
using Matrix = tg::Tensor<Cpu, float, rows, columns>;
using Vector = tg::Tensor<Cpu, float, columns>;

constexpr auto softmax = [](auto x) {
  const auto e = tg::exp(x - (tg::max<-1>)(x, tg::keepdims));
  return e / tg::sum<-1>(e, tg::keepdims);
};
constexpr auto log_softmax = [](auto x) {
  const auto shifted = x - (tg::max<-1>)(x, tg::keepdims);
  return shifted - tg::log(tg::sum<-1>(tg::exp(shifted), tg::keepdims));
};
constexpr auto layer_norm = [](auto x, auto scale, auto shift) {
  const auto centered = x - tg::mean<-1>(x, tg::keepdims);
  const auto variance = tg::mean<-1>(centered * centered, tg::keepdims);
  return centered * tg::rsqrt(variance + 1e-5) * scale + shift;
};

template <auto F, class... X>
void measure(const char* label, const bench::Run& triad, const X&... x) {
  bench::compare({.label = label, .unit = "GB/s", .ratio = "ratio_of_triad", .target = 0.7, .kernels = bench::kernels_of<F>(x...)},
                 {[=] { tg::evaluate<F>(x...); }, 2 * gigabytes}, triad);
}

}  // namespace

int main(int argc, char** argv) {
  bench::Triad memory;
  const bench::Run triad{[&] { memory(); }, bench::Triad::gigabytes};
  const auto x = bench::filled<Matrix>(-5, 5);
  const auto scale = bench::filled<Vector>(0.5, 1.5), shift = bench::filled<Vector>(-1, 1);
  measure<softmax>("softmax, 4096 x 1024", triad, x);
  measure<log_softmax>("log_softmax, 4096 x 1024", triad, x);
  measure<layer_norm>("layer norm, 4096 x 1024", triad, x, scale, shift);
  return bench::main(argc, argv);
}
