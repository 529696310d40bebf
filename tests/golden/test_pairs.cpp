// Element-wise ops of two operands, in float, against JAX's values and gradients.
#include "element_wise.hpp"

TEST_CASE("float") {
  golden::check_pairs<tg::Cpu, float>({1e-6}, {2e-6, true}, {});
}
TEST_CASE("float, reference") {
  golden::check_pairs<tg::Reference, float>({1e-6}, {2e-6, true}, {2e-6, true});
}
