// Element-wise ops in double against JAX's values and gradients.
#include "element_wise.hpp"

TEST_CASE("double") {
  golden::check_unary<tg::Cpu, double>({1e-14});
  golden::check_pairs<tg::Cpu, double>({1e-14}, {}, {});
}
TEST_CASE("double, reference") {
  golden::check_unary<tg::Reference, double>({1e-14});
  golden::check_unary_gradients<tg::Reference, double>({1e-14}, {1e-14, true});
  golden::check_pairs<tg::Reference, double>({1e-14}, {1e-14, true}, {1e-14, true});
}
