// Stack: equal blocks one after the other, whose number costs no compile time.
#pragma once

#include <array>

#include "typegrad/nn/module.hpp"

namespace tg::nn {

// N blocks, each with its own parameters ("0.weight", "1.weight", ...). h(x) applies them one after the other and passes
// further arguments to each; a block returns what it takes. Or loop over them: for (const auto& block : h) x = block(x, mask).
//
// While the program compiles, the stack shows only as many blocks as it takes to see every kernel that a deeper one needs
// (runtime/regions.hpp); the program that runs has all N. So a model must use its stack in one of these two ways, and not
// count the blocks.
template <class Block, int N>
struct Stack {
  static_assert(N >= 0, "typegrad: a stack of a negative number of blocks");
  constexpr Stack() = default;
  constexpr explicit Stack(const Block& block) { blocks_.fill(block); }

  template <class X, class... Rest>
  constexpr auto operator()(const X& x, const Rest&... rest) const {
    using E = expr_t<X>;
    E y = x;
    for (const Block& block : *this) {
      const auto next = block(y, rest...);
      static_assert(std::same_as<expr_t<std::remove_cvref_t<decltype(next)>>, E>, "typegrad: a block of a stack returns an expression of the dtype and shape that it takes");
      y = next;
    }
    return y;
  }

  constexpr const Block* begin() const { return blocks_.data(); }
  constexpr const Block* end() const { return blocks_.data() + shown_; }
  constexpr std::size_t size() const { return static_cast<std::size_t>(shown_); }
  constexpr Block& operator[](std::size_t i) { return blocks_[i]; }
  constexpr const Block& operator[](std::size_t i) const { return blocks_[i]; }

  // Shows at most that many blocks; returns whether there are more.
  constexpr bool shorten(int most) {
    shown_ = most < N ? most : N;
    return shown_ < N;
  }

 private:
  std::array<Block, N> blocks_{};
  int shown_ = N;
};

}  // namespace tg::nn

template <class Block, int N>
struct tg::detail::repeated<tg::nn::Stack<Block, N>> : std::true_type {
  using part = Block;
  static constexpr std::int64_t count = N;
};
