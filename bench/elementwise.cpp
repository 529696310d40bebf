// Element-wise kernels against the triad: each operand is read once, each result written once.
#include "measure.hpp"
#include "reference_rates.hpp"

namespace {

using tg::Cpu;
constexpr int n = 1 << 24;
constexpr double gigabytes = 4e-9 * n;  // of one operand
using Vector = tg::Tensor<Cpu, float, n>;
using Scalar = tg::Tensor<Cpu, float>;

// The update that the Trainer runs, on its own: parameters and moments change in place.
struct AdamWStep {
  static constexpr std::array<int, 3> donors{0, 1, 2};
  template <class P, class... H>
  constexpr auto operator()(const P& p, const P& m, const P& v, const P& g, const H&... h) const {
    const std::array<tg::Expr<float>, sizeof...(H)> numbers{h...};
    const auto u = tg::optim::AdamW::update(p, g, {m, v}, [&](int i) { return numbers[static_cast<std::size_t>(i)]; });
    return std::tuple(u.parameters, u.state[0], u.state[1]);
  }
};

bench::Report report(const char* label, double target) {
  return {.label = label, .unit = "GB/s", .ratio = "ratio_of_triad", .target = target};
}

template <auto F>
void unary(const char* label, const bench::Run& triad, double low, double high) {
  const auto x = bench::filled<Vector>(low, high);
  bench::compare(report(label, 0.8), {[=] { tg::evaluate<F>(x); }, 2 * gigabytes}, triad);
}

void adamw(const bench::Run& triad) {
  using E = Vector::expr_type;
  const auto numbers = tg::optim::AdamW{}.hyperparameters(1);
  const auto p = bench::filled<Vector>(-1, 1), m = bench::filled<Vector>(-1, 1), v = bench::filled<Vector>(0, 1), g = bench::filled<Vector>(-1, 1);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const std::array<Scalar, sizeof...(I)> h{Scalar({numbers[I]})...};
    auto& program = tg::Program<Cpu, AdamWStep, E, E, E, E, decltype(I, tg::Expr<float>())...>::instance();
    bench::compare(report("AdamW step, 16 M parameters", 0.9), {[=, &program] { program(p, m, v, g, h[I]...); }, 7 * gigabytes}, triad);
  }(std::make_index_sequence<std::tuple_size_v<decltype(numbers)>>{});
}

}  // namespace

int main(int argc, char** argv) {
  bench::Triad memory;
  const bench::Run triad{[&] { memory(); }, bench::Triad::gigabytes};

  static constexpr auto gelu = [](auto x, auto w, auto b) { return tg::gelu(x * w + b); };
  static constexpr auto add = [](auto x, auto w) { return x + w; };
  const auto x = bench::filled<Vector>(-3, 3), w = bench::filled<Vector>(-1, 1), b = bench::filled<Vector>(-1, 1);
  bench::compare(report("gelu(x * w + b), 16 M floats", 0.9), {[=] { tg::evaluate<gelu>(x, w, b); }, 4 * gigabytes}, triad);
  adamw(triad);
  bench::compare(report("x + w, 16 M floats", 0.8), {[=] { tg::evaluate<add>(x, w); }, 3 * gigabytes}, triad);
  unary<[](auto v) { return tg::relu(v); }>("relu, 16 M floats", triad, -1, 1);
  unary<[](auto v) { return tg::exp(v); }>("exp, 16 M floats", triad, -10, 10);
  unary<[](auto v) { return tg::tanh(v); }>("tanh, 16 M floats", triad, -4, 4);
  unary<[](auto v) { return tg::sigmoid(v); }>("sigmoid, 16 M floats", triad, -8, 8);
  unary<[](auto v) { return tg::erf(v); }>("erf, 16 M floats", triad, -4, 4);
  unary<[](auto v) { return tg::log(v); }>("log, 16 M floats", triad, 0.001, 100);
  unary<[](auto v) { return tg::sqrt(v); }>("sqrt, 16 M floats", triad, 0, 100);
  return bench::main(argc, argv);
}
