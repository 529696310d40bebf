// Losses and metrics against JAX's values and gradients.
#include "golden.hpp"

namespace {

using golden::In;

constexpr auto labelled = [](auto x, auto y) {
  return std::tuple(tg::cross_entropy(x, y), tg::cross_entropy(x, y, 0.1), tg::cross_entropy<1>(x, y), tg::cross_entropy<3>(x, y, 0.2), tg::nll_loss(x, y), tg::accuracy(x, y),
                    tg::one_hot<4, typename decltype(x)::value_type>(y) * x);
};
const std::vector<std::string> labelled_names{"cross_entropy", "smoothed", "ignoring", "ignoring_smoothed", "nll", "accuracy", "one_hot"};
constexpr auto weighted = [](auto x, auto y, auto w) { return std::tuple(tg::weighted_cross_entropy(x, y, w)); };
constexpr auto pairs = [](auto a, auto b) {
  return std::tuple(tg::mse_loss(a, b), tg::l1_loss(a, b), tg::huber_loss(a, b, 0.8), tg::smooth_l1_loss(a, b, 0.5), tg::bce_with_logits(a, tg::sigmoid(b)),
                    tg::cross_entropy(a, tg::softmax(b)), tg::kl_div(a, tg::softmax(b)), tg::cosine_similarity(a, b), tg::info_nce(a, b));
};
const std::vector<std::string> pairs_names{"mse", "l1", "huber", "smooth_l1", "bce", "soft", "kl", "cosine", "info_nce"};
constexpr auto triplet = [](auto a, auto p, auto n) { return std::tuple(tg::triplet_margin_loss(a, p, n)); };

template <class Device, class T>
void check(golden::Tolerance value, golden::Tolerance gradient) {
  const auto file = golden::open("losses");
  const std::string t = std::same_as<T, float> ? "f32" : "f64";
  golden::check<Device, labelled, In<T, 6, 4>, In<std::int32_t, 6>>(file, "labels/" + t, labelled_names, value, gradient);
  golden::check<Device, weighted, In<T, 6, 4>, In<std::int32_t, 6>, In<T, 4>>(file, "weighted/" + t, {"cross_entropy"}, value, gradient);
  golden::check<Device, pairs, In<T, 6, 4>, In<T, 6, 4>>(file, "pairs/" + t, pairs_names, value, gradient);
  golden::check<Device, triplet, In<T, 6, 4>, In<T, 6, 4>, In<T, 6, 4>>(file, "triplet/" + t, {"triplet"}, value, gradient);
}

}  // namespace

TEST_CASE("float") { check<tg::Cpu, float>({1e-6, true}, {3e-6, true}); }
TEST_CASE("float, reference") { check<tg::Reference, float>({1e-6, true}, {3e-6, true}); }
TEST_CASE("double, reference") { check<tg::Reference, double>({1e-14, true}, {1e-14, true}); }
