// Gradients against central differences in double, and the values the edge cases must give.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "typegrad/backends/reference/interpreter.hpp"
#include "typegrad/passes/simplify.hpp"

namespace {

using tg::DType;
using tg::Graph;
using tg::Op;
using tg::Shape;
using tg::Value;
using tg::reference::Array;
constexpr double inf = std::numeric_limits<double>::infinity();

Array array(std::vector<std::int64_t> shape, std::vector<double> v) { return {DType::f64, std::move(shape), std::move(v), {}}; }

struct Result {
  std::vector<double> value, gradient;
};

// f at x and the gradient of the sum of f(x), before and after simplify, which must agree.
Result differentiate(const std::function<Value(Value)>& f, const Array& x) {
  Graph g;
  Shape s;
  for (auto e : x.shape) s.push(e);
  const Value in = tg::build::input(g, DType::f64, s, 0);
  const Value out = f(in);
  const Value total = tg::build::reshape(
      tg::build::reduce(Op::ReduceSum, out, (std::int64_t{1} << out.rank()) - 1), Shape{});
  const Value d = tg::gradient(total, {in.id})[0];
  g.outputs = {static_cast<std::int32_t>(out.id), static_cast<std::int32_t>(d.id)};
  const auto r = tg::reference::run(g, {x});
  const auto again = tg::reference::run(tg::simplify(g), {x});
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t i = 0; i < r[k].real.size(); ++i) {
      const double a = r[k].real[i], b = again[k].real[i];
      CHECK((a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-12 * std::fabs(a)));
    }
  return {r[0].real, r[1].real};
}

void check_differences(const char* what, const std::function<Value(Value)>& f, const Array& x, double tolerance = 1e-6) {
  CAPTURE(what);
  const auto r = differentiate(f, x);
  for (std::size_t i = 0; i < x.real.size(); ++i) {
    const double h = 1e-5 * (std::fmax)(1.0, std::fabs(x.real[i]));
    double sum[2] = {0, 0};
    for (int side = 0; side < 2; ++side) {
      Array moved = x;
      moved.real[i] += side == 0 ? -h : h;
      Graph g;
      Shape s;
      for (auto e : x.shape) s.push(e);
      g.outputs = {static_cast<std::int32_t>(f(tg::build::input(g, DType::f64, s, 0)).id)};
      const auto outputs = tg::reference::run(g, {moved});
      for (double v : outputs[0].real) sum[side] += v;
    }
    CAPTURE(i);
    CHECK(r.gradient[i] == doctest::Approx((sum[1] - sum[0]) / (2 * h)).epsilon(tolerance));
  }
}

}  // namespace

TEST_CASE("element-wise gradients agree with central differences") {
  const Array any = array({6}, {-2.3, -0.7, -0.2, 0.3, 0.9, 1.7});
  const Array inside = array({4}, {-0.8, -0.3, 0.2, 0.7});
  const Array positive = array({4}, {0.2, 0.6, 1.3, 2.9});
#define TYPEGRAD_CHECK(f, x) check_differences(#f, [](Value v) { return tg::f(v); }, x)
  TYPEGRAD_CHECK(neg, any);
  TYPEGRAD_CHECK(abs, any);
  TYPEGRAD_CHECK(exp, any);
  TYPEGRAD_CHECK(expm1, any);
  TYPEGRAD_CHECK(sin, any);
  TYPEGRAD_CHECK(cos, any);
  TYPEGRAD_CHECK(tan, inside);
  TYPEGRAD_CHECK(asin, inside);
  TYPEGRAD_CHECK(acos, inside);
  TYPEGRAD_CHECK(atan, any);
  TYPEGRAD_CHECK(sinh, any);
  TYPEGRAD_CHECK(cosh, any);
  TYPEGRAD_CHECK(tanh, any);
  TYPEGRAD_CHECK(erf, any);
  TYPEGRAD_CHECK(erfc, any);
  TYPEGRAD_CHECK(sigmoid, any);
  TYPEGRAD_CHECK(relu, any);
  TYPEGRAD_CHECK(log, positive);
  TYPEGRAD_CHECK(log1p, positive);
  TYPEGRAD_CHECK(sqrt, positive);
  TYPEGRAD_CHECK(rsqrt, positive);
  TYPEGRAD_CHECK(cbrt, positive);
  TYPEGRAD_CHECK(square, any);
  TYPEGRAD_CHECK(leaky_relu, any);
  TYPEGRAD_CHECK(softplus, any);
  TYPEGRAD_CHECK(log_sigmoid, any);
  TYPEGRAD_CHECK(elu, any);
  TYPEGRAD_CHECK(selu, any);
  TYPEGRAD_CHECK(silu, any);
  TYPEGRAD_CHECK(mish, any);
  TYPEGRAD_CHECK(gelu, any);
  TYPEGRAD_CHECK(gelu_tanh, any);
  TYPEGRAD_CHECK(hard_sigmoid, any);
  TYPEGRAD_CHECK(hard_swish, any);
#undef TYPEGRAD_CHECK
  check_differences("pow", [](Value v) { return tg::pow(v, v + 0.5); }, positive);
  check_differences("div", [](Value v) { return (v + 2.0) / (v * v + 1.0); }, any);
  check_differences("maximum", [](Value v) { return tg::maximum(v, -v * 0.3) * v; }, any);
  check_differences("atan2", [](Value v) { return tg::atan2(v, v * v + 1.0); }, any);
}

TEST_CASE("gradients through reductions, views and contractions agree with central differences") {
  const Array x = array({2, 3}, {0.3, -1.2, 0.8, 1.9, -0.4, 0.6});
  using namespace tg::build;
  check_differences("softmax", [](Value v) {
    const Value e = tg::exp(v - reduce(Op::ReduceMax, v, 2));
    return e / reduce(Op::ReduceSum, e, 2) * v;
  }, x);
  check_differences("product", [](Value v) { return reduce(Op::ReduceProd, v, 2) * v; }, x);
  check_differences("transpose", [](Value v) { return swap_axes(v, 0, 1) * reshape(v, Shape{3, 2}); }, x);
  check_differences("matmul", [](Value v) { return matmul(v, matmul(swap_axes(v, 0, 1), v)); }, x);
  check_differences("slice", [](Value v) {
    tg::AttributeList starts, steps;
    starts.push(1); starts.push(2);
    steps.push(-1); steps.push(-2);
    return tg::square(slice(v, Shape{2, 2}, starts, steps));
  }, x);
  check_differences("concat", [](Value v) { return tg::square(concat(v, tg::sin(v), 1)); }, x);
  check_differences("second derivative", [](Value v) {
    const Value total = reshape(reduce(Op::ReduceSum, v * tg::tanh(v), 3), Shape{});
    return tg::gradient(total, {v.id})[0] * v;
  }, x);
}

TEST_CASE("a branch that where does not select contributes no gradient") {
  auto r = differentiate([](Value x) { return tg::where(x > 0.0, tg::sqrt(x), x); }, array({2}, {-1, -4}));
  CHECK(r.gradient == std::vector<double>{1, 1});
  r = differentiate([](Value a) { return tg::where(a <= 0.0, tg::exp(a), 1.0 + a); }, array({1}, {1000}));
  CHECK(r.value[0] == 1001);
  CHECK(r.gradient[0] == 1);
  r = differentiate([](Value x) { return tg::where(x > 0.0, tg::pow(x, 0.5), 0.0); }, array({3}, {-2, 0, 3}));
  CHECK(r.gradient[0] == 0);
  CHECK(r.gradient[1] == 0);
  CHECK(r.gradient[2] == doctest::Approx(0.28867513));
}

TEST_CASE("special points") {
  auto at = [](auto f, double x) { return differentiate([f](Value v) { return f(v); }, array({1}, {x})); };
  CHECK(at([](Value v) { return tg::abs(v); }, 0).gradient[0] == 0);
  CHECK(at([](Value v) { return tg::relu(v); }, 0).gradient[0] == 0);
  CHECK(at([](Value v) { return tg::sqrt(v); }, 0).gradient[0] == inf);
  CHECK(at([](Value v) { return tg::pow(v, 0.0); }, 0).value[0] == 1);
  CHECK(at([](Value v) { return tg::pow(v, 0.0); }, 0).gradient[0] == 0);
  CHECK(at([](Value v) { return tg::sigmoid(v); }, -1000).value[0] == 0);
  CHECK(at([](Value v) { return tg::sigmoid(v); }, -1000).gradient[0] == 0);
  CHECK(at([](Value v) { return tg::softplus(v); }, 1000).value[0] == 1000);
  CHECK(at([](Value v) { return tg::softplus(v); }, 1000).gradient[0] == 1);
  CHECK(at([](Value v) { return tg::log_sigmoid(v); }, -1000).value[0] == -1000);
  CHECK(at([](Value v) { return tg::log_sigmoid(v); }, -1000).gradient[0] == 1);
  for (double x : {100.0, 1e6, 1e13, 3e38, 1e300}) {
    CHECK(at([](Value v) { return tg::gelu(v); }, x).value[0] == x);
    CHECK(at([](Value v) { return tg::gelu(v); }, x).gradient[0] == 1);
    CHECK(at([](Value v) { return tg::gelu_tanh(v); }, x).value[0] == x);
    CHECK(at([](Value v) { return tg::gelu_tanh(v); }, x).gradient[0] == 1);
    CHECK(at([](Value v) { return tg::gelu_tanh(v); }, -x).gradient[0] == 0);
  }
  CHECK(at([](Value v) { return tg::silu(v); }, -1000).gradient[0] == 0);
  CHECK(at([](Value v) { return tg::mish(v); }, -1000).gradient[0] == 0);
  CHECK(at([](Value v) { return tg::round(v); }, 2.5).value[0] == 2);
  CHECK(at([](Value v) { return tg::maximum(v, v * 1.0 + 0.0); }, 2).gradient[0] == 1);
  CHECK(std::isnan(at([](Value v) { return tg::maximum(v, 1.0); }, NAN).value[0]));
  CHECK(at([](Value v) { return tg::clamp(v, 0.0, 1.0); }, 0).gradient[0] == 1);
  CHECK(at([](Value v) { return tg::clamp(v, 0.0, 1.0); }, 1).gradient[0] == 1);
  const auto ties = differentiate([](Value v) { return tg::build::reduce(Op::ReduceMax, v, 1); }, array({4}, {1, 2, 2, 2}));
  CHECK(ties.gradient == std::vector<double>{0, 1.0 / 3, 1.0 / 3, 1.0 / 3});
}
