// Wrong: an extent that is neither an int nor a name.
// expect: an extent is an int
#include "typegrad/typegrad.hpp"

int main() { tg::Tensor<tg::Cpu, float, 3u> a; }
