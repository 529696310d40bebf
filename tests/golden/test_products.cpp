// matmul and einsum against JAX's values and gradients.
#include "golden.hpp"

namespace {

using golden::In;

constexpr auto product = [](auto a, auto b) { return std::tuple(tg::matmul(a, b)); };
constexpr auto four = [](auto q, auto k) {
  return std::tuple(tg::einsum<"bhqd,bhkd->bhqk">(q, k), tg::einsum<"bhqd,bhkd->kqhb">(q, k), tg::einsum<"bhqd,bhkd->qk">(q, k), tg::einsum<"bhqd,bhkd->b">(q, k));
};
constexpr auto two = [](auto a, auto b) {
  return std::tuple(tg::einsum<"ij,kj->ik">(a, b), tg::einsum<"ij,kj->jki">(a, b), tg::einsum<"ij,kl->j">(a, b), tg::einsum<"ij,kj->">(a, b));
};
constexpr auto one = [](auto a) { return std::tuple(tg::einsum<"ij->ji">(a), tg::einsum<"ij->j">(a), tg::einsum<"ij->">(a)); };
constexpr auto vectors = [](auto a, auto b) { return std::tuple(tg::vdot(a, b), tg::outer(a, b)); };

template <class Device, class T>
void check(golden::Tolerance value, golden::Tolerance gradient) {
  const auto file = golden::open("products");
  const std::string t = std::same_as<T, float> ? "f32" : "f64";
  golden::check<Device, product, In<T, 4, 6>, In<T, 6, 5>>(file, "matmul/" + t, {"matmul"}, value, gradient);
  golden::check<Device, product, In<T, 2, 1, 4, 6>, In<T, 3, 6, 5>>(file, "batched/" + t, {"matmul"}, value, gradient);
  golden::check<Device, four, In<T, 2, 3, 4, 6>, In<T, 2, 3, 5, 6>>(file, "einsum4/" + t, {"bhqd,bhkd->bhqk", "bhqd,bhkd->kqhb", "bhqd,bhkd->qk", "bhqd,bhkd->b"}, value, gradient);
  golden::check<Device, two, In<T, 4, 6>, In<T, 5, 6>>(file, "einsum2/" + t, {"ij,kj->ik", "ij,kj->jki", "ij,kl->j", "ij,kj->"}, value, gradient);
  golden::check<Device, one, In<T, 4, 6>>(file, "einsum1/" + t, {"ij->ji", "ij->j", "ij->"}, value, gradient);
  golden::check<Device, vectors, In<T, 7>, In<T, 7>>(file, "vectors/" + t, {"vdot", "outer"}, value, gradient);
}

}  // namespace

TEST_CASE("float") { check<tg::Cpu, float>({1e-6, true}, {3e-6, true}); }
TEST_CASE("float, reference") { check<tg::Reference, float>({1e-6, true}, {3e-6, true}); }
TEST_CASE("double, reference") { check<tg::Reference, double>({1e-14, true}, {1e-14, true}); }
