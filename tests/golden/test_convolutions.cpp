// Convolutions and pooling against JAX's values and gradients.
#include "golden.hpp"

namespace {

using golden::In;

constexpr auto plane = [](auto x, auto w) {
  return std::tuple(tg::conv2d(x, w), tg::conv2d<1, 1>(x, w), tg::conv2d<2, 1>(x, w), tg::conv2d<1, 2, 2>(x, w), tg::conv2d<2, tg::same_padding>(x, w));
};
constexpr auto grouped = [](auto x, auto w) { return std::tuple(tg::conv2d<1, 1, 1, 2>(x, w), tg::conv2d<2, 0, 1, 2>(x, w)); };
constexpr auto depthwise = [](auto x, auto w) { return std::tuple(tg::conv2d<1, 1, 1, 4>(x, w)); };
constexpr auto pointwise = [](auto x, auto w) { return std::tuple(tg::conv2d(x, w), tg::conv2d<2>(x, w)); };
constexpr auto line = [](auto x, auto w) { return std::tuple(tg::conv1d(x, w), tg::conv1d<3, 1>(x, w), tg::conv1d<1, 3>(x, w)); };
constexpr auto transposed = [](auto x, auto w) {
  return std::tuple(tg::conv_transpose2d(x, w), tg::conv_transpose2d<2, 1, 1>(x, w), tg::conv_transpose2d<2, 0, 0, 2>(x, w));
};
constexpr auto pool = [](auto x) {
  return std::tuple(tg::max_pool2d<2>(x), tg::max_pool2d<3, 2, 1>(x), tg::avg_pool2d<2>(x), tg::avg_pool2d<3, 2, 1>(x), tg::adaptive_avg_pool2d<2>(x), tg::global_avg_pool2d(x),
                    tg::upsample_nearest2d<2>(x));
};

template <class Device, class T>
void check(golden::Tolerance value, golden::Tolerance gradient) {
  const auto file = golden::open("convolutions");
  const std::string t = std::same_as<T, float> ? "f32" : "f64";
  golden::check<Device, plane, In<T, 2, 3, 7, 8>, In<T, 4, 3, 3, 3>>(file, "conv2d/" + t, {"plain", "padded", "strided", "dilated", "same"}, value, gradient);
  golden::check<Device, grouped, In<T, 2, 4, 6, 6>, In<T, 6, 2, 3, 3>>(file, "grouped/" + t, {"groups", "strided"}, value, gradient);
  golden::check<Device, depthwise, In<T, 2, 4, 6, 6>, In<T, 4, 1, 3, 3>>(file, "depthwise/" + t, {"depthwise"}, value, gradient);
  golden::check<Device, pointwise, In<T, 2, 4, 6, 6>, In<T, 5, 4, 1, 1>>(file, "pointwise/" + t, {"pointwise", "strided"}, value, gradient);
  golden::check<Device, line, In<T, 2, 3, 9>, In<T, 4, 3, 3>>(file, "conv1d/" + t, {"plain", "strided", "wide"}, value, gradient);
  golden::check<Device, transposed, In<T, 2, 3, 4, 5>, In<T, 3, 4, 3, 3>>(file, "transposed/" + t, {"plain", "strided", "dilated"}, value, gradient);
  golden::check<Device, pool, In<T, 2, 3, 6, 6>>(file, "pool/" + t, {"max", "max_overlap", "avg", "avg_overlap", "adaptive", "global", "upsample"}, value, gradient);
}

}  // namespace

TEST_CASE("float") { check<tg::Cpu, float>({2e-6, true}, {5e-6, true}); }
TEST_CASE("float, reference") { check<tg::Reference, float>({2e-6, true}, {5e-6, true}); }
TEST_CASE("double, reference") { check<tg::Reference, double>({1e-14, true}, {1e-14, true}); }
