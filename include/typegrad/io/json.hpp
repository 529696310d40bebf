// A strict reader, and the string writer, for the JSON in file headers: objects, arrays, strings, integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "typegrad/runtime/error.hpp"

namespace tg::io {

// Length of the UTF-8 sequence that `text` begins with; 0 when it begins with none (RFC 3629: no overlong forms,
// no surrogates, nothing above U+10FFFF).
constexpr std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[i])) : 0u;
  };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  const unsigned lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (length == 0 || byte(1) < lowest || byte(1) > highest) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// Reads JSON front to back, one call for each value that the caller expects, and builds no tree: nesting is as
// deep as the caller's own calls, memory what the caller keeps. Numbers are integers of 64 bits; null, true, false
// and fractions have no reader and are errors wherever they stand. Repeated keys are the caller's to refuse.
// Every failure is an Error that gives the offset in the file, what was expected and what was found.
class JsonReader {
 public:
  // `source` begins every message; `origin` is the offset of `text` in the file. `text` must outlive the reader.
  JsonReader(std::string_view text, std::string source, std::uint64_t origin = 0)
      : text_(text), source_(std::move(source)), origin_(origin) {}

  // Reads an object. on_member(std::string key) must read the member's value.
  template <class OnMember>
  void object(OnMember&& on_member) {
    expect('{', "an object");
    if (take('}')) return;
    do {
      std::string key = string();
      expect(':', "':' after a key");
      on_member(std::move(key));
    } while (take(','));
    expect('}', "',' or '}' after a member");
  }

  // Reads an array. on_element() must read the element's value.
  template <class OnElement>
  void array(OnElement&& on_element) {
    expect('[', "an array");
    if (take(']')) return;
    do on_element();
    while (take(','));
    expect(']', "',' or ']' after an element");
  }

  std::string string() {
    expect('"', "a string");
    std::string out;
    for (;;) {
      if (at_ == text_.size()) fail("expected '\"' at the end of a string");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c == '\\') {
        ++at_;
        escape(out);
        continue;
      }
      const std::size_t length = static_cast<unsigned char>(c) < 0x20 ? 0 : utf8_sequence(text_.substr(at_));
      if (length == 0) fail("expected a string in UTF-8 without control characters");
      out += text_.substr(at_, length);
      at_ += length;
    }
  }

  std::int64_t integer() {
    skip_space();
    const std::size_t start = at_;
    const auto digit = [&] { return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; };
    const bool negative = at_ < text_.size() && text_[at_] == '-';
    if (negative) ++at_;
    if (!digit()) fail_at(start, "expected an integer");
    const bool leading_zero = text_[at_] == '0';
    const std::size_t first = at_;
    std::int64_t value = 0;
    for (; digit(); ++at_) {
      const int d = text_[at_] - '0';
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, negative ? -d : d, &value)) {
        fail_at(start, "expected an integer of 64 bits");
      }
    }
    if (leading_zero && at_ - first > 1) fail_at(start, "expected an integer without leading zeros");
    if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E')) {
      fail_at(start, "expected an integer without fraction or exponent");
    }
    return value;
  }

  // Checks that nothing but white space is left.
  void end() {
    skip_space();
    if (at_ != text_.size()) fail("expected the end of the header");
  }

  // Throws an Error about the place that the reader has reached.
  [[noreturn]] void fail(std::string_view message) const { fail_at(at_, message); }

 private:
  [[noreturn]] void fail_at(std::size_t at, std::string_view message) const {
    std::string found = "the end of the header";
    if (at < text_.size()) {
      const auto c = static_cast<unsigned char>(text_[at]);
      constexpr std::string_view digits = "0123456789abcdef";
      found = c > 0x20 && c < 0x7f ? std::string{'\'', text_[at], '\''}
                                   : std::string{"byte 0x"} + digits[c >> 4] + digits[c & 15];
    }
    throw Error(tg::detail::concat_text(source_, ": offset ", origin_ + at, ": ", message, ", found ", found));
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }

  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c, std::string_view what) {
    if (!take(c)) fail(tg::detail::concat_text("expected ", what));
  }

  // What follows a backslash.
  void escape(std::string& out) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    if (c == 'u') {
      ++at_;
      append_code_point(out);
    } else if (const std::size_t i = names.find(c); i != std::string_view::npos) {
      ++at_;
      out += meanings[i];
    } else {
      fail("expected one of \"\\/bfnrtu after a backslash");
    }
  }

  std::uint32_t four_hex_digits() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("expected four hexadecimal digits after \\u");
      value = value << 4 | static_cast<std::uint32_t>(digit);
    }
    return value;
  }

  void append_code_point(std::string& out) {
    const std::size_t start = at_;
    std::uint32_t code = four_hex_digits();
    if (code >= 0xd800 && code < 0xe000) {
      const bool paired = code < 0xdc00 && text_.substr(at_, 2) == "\\u";
      if (paired) at_ += 2;
      const std::uint32_t low = paired ? four_hex_digits() : 0;
      if (low < 0xdc00 || low >= 0xe000) fail_at(start, "expected a pair of surrogates after \\u");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    const auto put = [&](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xc0 | code >> 6);
      put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      put(0xe0 | code >> 12);
      put(0x80 | (code >> 6 & 0x3f));
      put(0x80 | (code & 0x3f));
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
      put(0x80 | (code >> 6 & 0x3f));
      put(0x80 | (code & 0x3f));
    }
  }

  std::string_view text_;
  std::string source_;
  std::uint64_t origin_;
  std::size_t at_ = 0;
};

// `text` as a JSON string with its quotes. Throws Error when it is not UTF-8.
inline std::string json_string(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::size_t length = utf8_sequence(text.substr(at));
    if (length == 0) {
      throw Error(tg::detail::concat_text("cannot write text as JSON: expected UTF-8, found the byte ",
                                          static_cast<unsigned>(static_cast<unsigned char>(c)), " at position ", at));
    }
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += {'\\', 'u', '0', '0', digits[static_cast<unsigned char>(c) >> 4], digits[c & 15]};
    } else {
      out += text.substr(at, length);
    }
    at += length;
  }
  return out += '"';
}

}  // namespace tg::io
