// The header alone.
#include "typegrad/typegrad.hpp"

int main() {}
