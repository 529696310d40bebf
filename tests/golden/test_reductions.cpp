// Reductions, softmax and normalisations against JAX's values and gradients.
#include "golden.hpp"

namespace {

using golden::In;

constexpr auto along = []<int... A>(auto x, std::integer_sequence<int, A...>) {
  return std::tuple(tg::sum<A...>(x), tg::prod<A...>(x), tg::mean<A...>(x), (tg::max<A...>)(x), (tg::min<A...>)(x), tg::var<0, A...>(x), tg::var<1, A...>(x),
                    tg::stddev<0, A...>(x), tg::norm2<A...>(x), tg::norm1<A...>(x), tg::norm_inf<A...>(x), tg::logsumexp<A...>(x), tg::any<A...>(x > 1.5), tg::all<A...>(x < 1.5));
};
const std::vector<std::string> along_names{"sum", "prod", "mean", "max", "min", "var", "var1", "stddev", "norm2", "norm1", "norm_inf", "logsumexp", "any", "all"};
constexpr auto last = [](auto x) { return along(x, std::integer_sequence<int, -1>{}); };
constexpr auto first = [](auto x) { return along(x, std::integer_sequence<int, 0>{}); };
constexpr auto outer = [](auto x) { return along(x, std::integer_sequence<int, 0, 2>{}); };
constexpr auto all = [](auto x) { return along(x, std::integer_sequence<int>{}); };
constexpr auto rows = [](auto x) {
  return std::tuple(tg::softmax(x), tg::log_softmax(x), tg::softmax<0>(x), tg::argmax(x), tg::argmin(x), tg::argmax<0>(x), tg::layer_norm(x), tg::rms_norm(x),
                    tg::group_norm<2>(x), tg::instance_norm(x));
};
const std::vector<std::string> rows_names{"softmax", "log_softmax", "softmax0", "argmax", "argmin", "argmax0", "layer_norm", "rms_norm", "group_norm", "instance_norm"};

template <class Device, class T>
void check(golden::Tolerance value, golden::Tolerance gradient) {
  const auto file = golden::open("reductions");
  const std::string t = std::same_as<T, float> ? "f32" : "f64";
  golden::check<Device, last, In<T, 3, 4, 5>>(file, "last/" + t, along_names, value, gradient);
  golden::check<Device, first, In<T, 3, 4, 5>>(file, "first/" + t, along_names, value, gradient);
  golden::check<Device, outer, In<T, 3, 4, 5>>(file, "outer/" + t, along_names, value, gradient);
  golden::check<Device, all, In<T, 3, 4, 5>>(file, "all/" + t, along_names, value, gradient);
  golden::check<Device, rows, In<T, 3, 4, 5>>(file, "rows/" + t, rows_names, value, gradient);
}

}  // namespace

TEST_CASE("float") { check<tg::Cpu, float>({2e-6, true}, {5e-6, true}); }
TEST_CASE("float, reference") { check<tg::Reference, float>({2e-6, true}, {5e-6, true}); }
TEST_CASE("double, reference") { check<tg::Reference, double>({1e-14, true}, {2e-14, true}); }
