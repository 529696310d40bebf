// Ops that rearrange elements against JAX's values and gradients.
#include "golden.hpp"

namespace {

using golden::In;

constexpr auto views = [](auto x) {
  return std::tuple(tg::transpose(x), tg::permute<2, 0, 1>(x), tg::reshape<6, 10>(x), tg::slice<1, 1, 4, 2>(x), tg::slice<2, 4, -6, -2>(x), tg::flip<1>(x), tg::roll<-1, 2>(x),
                    tg::tile<1, 2>(x), tg::repeat<-1, 2>(x), tg::pad<-1, 1, 2>(x, 1.5), tg::pad<1, 2, 1, tg::PadMode::reflect>(x), tg::pad<1, 2, 1, tg::PadMode::replicate>(x),
                    tg::tril(x), tg::triu<1>(x), tg::stack<1>(x, x * x), tg::concat<-1>(x, x * x), tg::split<1, 2>(x)[1], tg::broadcast_to<2, 3, 4, 5>(x),
                    tg::masked_fill(x, x > 0.5, -1.0));
};
const std::vector<std::string> names{"transpose", "permute", "reshape", "slice", "slice_back", "flip", "roll", "tile", "repeat", "pad", "pad_reflect", "pad_replicate",
                                     "tril", "triu", "stack", "concat", "split", "broadcast_to", "masked_fill"};

template <class Device, class T>
void check(golden::Tolerance value, golden::Tolerance gradient) {
  golden::check<Device, views, In<T, 3, 4, 5>>(golden::open("shapes"), std::same_as<T, float> ? "views/f32" : "views/f64", names, value, gradient);
}

}  // namespace

TEST_CASE("float") { check<tg::Cpu, float>({1e-7}, {1e-6, true}); }
TEST_CASE("float, reference") { check<tg::Reference, float>({1e-7}, {1e-6, true}); }
TEST_CASE("double, reference") { check<tg::Reference, double>({1e-15}, {1e-14, true}); }
