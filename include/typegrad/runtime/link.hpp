// link: each kernel of a plan finds its compiled code by the key of its region.
#pragma once

#include <algorithm>
#include <span>
#include <unordered_map>

#include "typegrad/kernels/region_key.hpp"
#include "typegrad/passes/print.hpp"
#include "typegrad/runtime/error.hpp"

namespace tg {
namespace detail {

// For example: map 2 + 0 axes, operands contiguous uniform: load.0 load.1 mul store.2
inline std::string describe_region(std::span<const std::uint64_t> key) {
  constexpr std::string_view accesses[] = {"uniform", "contiguous", "strided"};
  constexpr std::string_view codes[] = {"load", "literal", "index", "compute", "fold", "product", "gather", "routine", "store"};
  const RegionHead head = RegionHead::decode(key[0]);
  std::string out = concat_text(name(head.kind), " ", head.kept, " + ", head.reduced, " axes, operands");
  for (int o = 0; o < head.operands; ++o) append_text(out, concat_text(" ", accesses[static_cast<int>(access_in(key.data(), o))]));
  out += ':';
  for (int s = 0; s < head.instructions; ++s) {
    const auto at = static_cast<std::size_t>(1 + head.access_words() + 2 * s);
    const Instruction i = decode_step({key[at], key[at + 1]});
    const bool by_op = i.code == Code::Compute || i.code == Code::Fold || i.code == Code::Routine;
    append_text(out, concat_text(" ", name(i.dtype), ".", by_op ? name(i.op) : codes[static_cast<int>(i.code)]));
    if (i.slot >= 0) append_text(out, concat_text(".", i.slot));
  }
  return out;
}

// The known key that agrees with this one in the most words.
inline std::size_t nearest_region(std::span<const std::uint64_t> key, std::span<const std::uint64_t> words, std::span<const std::uint32_t> starts) {
  std::size_t best = 0, most = 0;
  for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
    std::size_t equal = 0;
    for (std::size_t i = 0; i < key.size() && starts[r] + i < starts[r + 1]; ++i) equal += key[i] == words[starts[r] + i];
    if (equal > most) {
      most = equal;
      best = r;
    }
  }
  return best;
}

}  // namespace detail

// Entries are the code of the regions whose keys are words[starts[r]] to words[starts[r + 1]]; the result has one for each
// kernel of the plan. A region that was not compiled is an Error: the keys then come from another function than the plan.
template <class Entry>
std::vector<Entry> link(const Compiled& c, std::span<const std::uint64_t> words, std::span<const std::uint32_t> starts, std::span<const Entry> entries) {
  const auto view = [](std::span<const std::uint64_t> key) { return std::string_view(reinterpret_cast<const char*>(key.data()), key.size_bytes()); };
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t r = 0; r < entries.size(); ++r) known.emplace(view(words.subspan(starts[r], starts[r + 1] - starts[r])), r);
  std::vector<Entry> linked;
  linked.reserve(c.plan.kernels.size());
  std::vector<std::uint64_t> key;
  for (std::size_t k = 0; k < c.plan.kernels.size(); ++k) {
    key.clear();
    append_region_key(c.plan, c.plan.kernels[k], key);
    const auto found = known.find(view(key));
    if (found == known.end()) {
      std::string text = detail::concat_text("no code was compiled for ", to_string(c, k), "\n  it needs ", detail::describe_region(key));
      if (!entries.empty()) {
        const std::size_t r = detail::nearest_region(key, words, starts);
        text += "\n  nearest: " + detail::describe_region(words.subspan(starts[r], starts[r + 1] - starts[r]));
      }
      throw Error(text + "\nThis is a fault of typegrad: please report it.");
    }
    linked.push_back(entries[found->second]);
  }
  return linked;
}

}  // namespace tg
