// Region keys: the canonical form of what a region's type holds, the same while a program compiles and while it runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "typegrad/passes/compile.hpp"

namespace tg {

// A key is a sequence of words: a head, the operands' accesses, then two words for each instruction. Nothing that is a
// number of one kernel (extent, stride, offset, buffer) is in it.
struct RegionHead {
  KernelKind kind = KernelKind::Map;
  int kept = 0, reduced = 0, operands = 0, instructions = 0;

  static constexpr int accesses_per_word = 32;
  constexpr int access_words() const { return (operands + accesses_per_word - 1) / accesses_per_word; }
  constexpr int words() const { return 1 + access_words() + 2 * instructions; }

  constexpr std::uint64_t encode() const {
    return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(kept) << 8 | static_cast<std::uint64_t>(reduced) << 16 |
           static_cast<std::uint64_t>(operands) << 24 | static_cast<std::uint64_t>(instructions) << 40;
  }
  static constexpr RegionHead decode(std::uint64_t w) {
    return {static_cast<KernelKind>(w & 255), static_cast<int>(w >> 8 & 255), static_cast<int>(w >> 16 & 255), static_cast<int>(w >> 24 & 0xffff),
            static_cast<int>(w >> 40 & 0xffff)};
  }
};

// How the key that begins at that word accesses an operand.
constexpr Access access_in(const std::uint64_t* key, int slot) {
  return static_cast<Access>(key[1 + slot / RegionHead::accesses_per_word] >> (2 * (slot % RegionHead::accesses_per_word)) & 3);
}

namespace detail {

inline constexpr int most_steps = 32766;  // positions and slots are 16 bits

// An instruction as two words: the second holds the third operand where there is one, else the bits.
struct StepWords {
  std::uint64_t first = 0, second = 0;
};
constexpr StepWords encode_step(const Instruction& i) {
  const auto part = [](int position, int shift) { return static_cast<std::uint64_t>(static_cast<std::uint16_t>(position)) << shift; };
  return {static_cast<std::uint64_t>(i.code) | static_cast<std::uint64_t>(i.row) << 4 | static_cast<std::uint64_t>(i.dtype) << 5 |
              static_cast<std::uint64_t>(i.op) << 9 | static_cast<std::uint64_t>(i.slot + 1) << 17 | part(i.a, 32) | part(i.b, 48),
          static_cast<std::uint64_t>(i.c >= 0 ? i.c : i.bits)};
}
constexpr Instruction decode_step(const StepWords& w) {
  Instruction i;
  i.code = static_cast<Code>(w.first & 15);
  i.row = (w.first >> 4 & 1) != 0;
  i.dtype = static_cast<DType>(w.first >> 5 & 15);
  i.op = static_cast<Op>(w.first >> 9 & 255);
  i.slot = static_cast<std::int16_t>(static_cast<int>(w.first >> 17 & 0x7fff) - 1);
  i.a = static_cast<std::int16_t>(static_cast<std::uint16_t>(w.first >> 32));
  i.b = static_cast<std::int16_t>(static_cast<std::uint16_t>(w.first >> 48));
  if (i.code == Code::Compute && arity(i.op) == 3) i.c = static_cast<std::int16_t>(w.second);
  else i.bits = static_cast<std::int64_t>(w.second);
  return i;
}

}  // namespace detail

// Appends the key of a kernel's region.
constexpr void append_region_key(const Plan& p, const Kernel& k, std::vector<std::uint64_t>& words) {
  if (k.instructions > detail::most_steps || k.operands > detail::most_steps) throw "typegrad: a kernel of more than 32766 steps or operands";
  words.push_back(RegionHead{k.kind, k.kept, k.reduced, k.operands, k.instructions}.encode());
  std::uint64_t accesses = 0;
  for (int o = 0; o < k.operands; ++o) {
    const auto a = static_cast<std::uint64_t>(access_of(k, p.operands[static_cast<std::size_t>(k.first_operand + o)]));
    accesses |= a << (2 * (o % RegionHead::accesses_per_word));
    if (o % RegionHead::accesses_per_word == RegionHead::accesses_per_word - 1 || o + 1 == k.operands) {
      words.push_back(accesses);
      accesses = 0;
    }
  }
  for (int s = 0; s < k.instructions; ++s) {
    const detail::StepWords w = detail::encode_step(p.instructions[static_cast<std::size_t>(k.first_instruction + s)]);
    words.push_back(w.first);
    words.push_back(w.second);
  }
}

// A set of keys: key r is words[starts[r]] to words[starts[r + 1]].
struct RegionSet {
  std::vector<std::uint64_t> words;
  std::vector<std::uint32_t> starts{0};
  constexpr std::size_t size() const { return starts.size() - 1; }
};

// The distinct regions of a plan, in the order in which its kernels need them.
constexpr RegionSet regions_of(const Plan& p) {
  RegionSet r;
  std::vector<std::uint64_t> hashes;
  for (const Kernel& k : p.kernels) {
    const std::size_t start = r.words.size();
    append_region_key(p, k, r.words);
    std::uint64_t h = 1469598103934665603u;
    for (std::size_t i = start; i < r.words.size(); ++i) h = (h ^ r.words[i] ^ (r.words[i] >> 31)) * 1099511628211u;
    bool known = false;
    for (std::size_t j = 0; j < hashes.size() && !known; ++j)
      known = hashes[j] == h && r.starts[j + 1] - r.starts[j] == r.words.size() - start &&
              std::equal(r.words.begin() + static_cast<std::ptrdiff_t>(start), r.words.end(), r.words.begin() + static_cast<std::ptrdiff_t>(r.starts[j]));
    if (known) {
      r.words.resize(start);
    } else {
      hashes.push_back(h);
      r.starts.push_back(static_cast<std::uint32_t>(r.words.size()));
    }
  }
  return r;
}

}  // namespace tg
