// The one exception type of typegrad, and the small text builder for its messages.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "typegrad/config.hpp"

namespace tg {

// Every run-time failure of typegrad. The message says what was asked, what was expected, what was found
// and where (file and offset, parameter path, op).
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

namespace detail {

inline void append_text(std::string& out, std::string_view part) { out += part; }

template <class T>
  requires std::is_arithmetic_v<T>
void append_text(std::string& out, T part) {
  if constexpr (std::same_as<T, char>) {
    out += part;
  } else if constexpr (std::same_as<T, bool>) {
    out += part ? "true" : "false";
  } else {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof(digits), part);
    out.append(digits, end.ptr);
  }
}

// A shape as messages print it: [60000, 28, 28].
inline void append_text(std::string& out, std::span<const std::int64_t> shape) {
  out += '[';
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) out += ", ";
    append_text(out, shape[i]);
  }
  out += ']';
}

// The parts (text, numbers, shapes) one after the other.
template <class... Parts>
std::string concat_text(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

}  // namespace detail
}  // namespace tg
