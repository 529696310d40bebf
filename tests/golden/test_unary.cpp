// Element-wise ops of one operand, in float, against JAX's values and gradients.
#include "element_wise.hpp"

TEST_CASE("float") {
  golden::check_unary<tg::Cpu, float>({1e-6});
  golden::check_unary_gradients<tg::Cpu, float>({1e-6}, {2e-6, true});
}
TEST_CASE("float, reference") {
  golden::check_unary<tg::Reference, float>({1e-6});
  golden::check_unary_gradients<tg::Reference, float>({1e-6}, {2e-6, true});
}
