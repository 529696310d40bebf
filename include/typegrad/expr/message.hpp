// Compile errors that say in their first line which op failed, on which shapes, and why.
#pragma once

#include <string_view>

#include "typegrad/expr/extent.hpp"

namespace tg {

// Text that can be a template argument, so that compilers print it.
struct Message {
  char text[160]{};

  constexpr Message() = default;
  consteval Message(std::string_view s) { *this << s; }
  constexpr Message& operator<<(std::string_view s) {
    std::size_t end = 0;
    while (text[end] != 0) ++end;
    for (std::size_t i = 0; i < s.size() && end + 1 < sizeof(text); ++i) text[end++] = s[i];
    return *this;
  }
  constexpr Message& operator<<(std::int64_t n) {
    char digits[24]{};
    std::size_t at = sizeof(digits);
    const bool negative = n < 0;
    std::uint64_t m = negative ? std::uint64_t{0} - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
    do digits[--at] = static_cast<char>('0' + m % 10);
    while ((m /= 10) != 0);
    if (negative) digits[--at] = '-';
    return *this << std::string_view(digits + at, sizeof(digits) - at);
  }
  constexpr Message& operator<<(const Extent& e) {
    if (e.is_static()) return *this << e.coefficient;
    if (e.coefficient != 1) *this << e.coefficient << "*";
    for (int i = 0; i < 4 && !(e.names[i] == Name{}); ++i) *this << (i == 0 ? "" : "*") << e.names[i].view();
    return *this;
  }
  constexpr Message& operator<<(const Extents& e) {
    *this << "[";
    for (int i = 0; i < e.rank; ++i) *this << (i == 0 ? "" : ", ") << e[i];
    return *this << "]";
  }
};

// Deliberately without a definition: naming its size stops the compilation with M and the operands' types.
template <Message M, class... Operands>
struct compile_error;

namespace detail {
template <Message M, class... Operands>
consteval void fail() {
  static_assert(sizeof(compile_error<M, Operands...>) != 0);
}
}  // namespace detail
}  // namespace tg
