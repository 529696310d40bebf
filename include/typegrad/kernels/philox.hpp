// The random number generator Philox4x32-10, on the host and on the device.
#pragma once

#include <cstdint>

#include "typegrad/config.hpp"

namespace tg::rng {

// Four words of counter or of output. Plain arrays, because std::array's operator[] is not a device function.
struct PhiloxBlock {
  std::uint32_t word[4];
  constexpr bool operator==(const PhiloxBlock&) const = default;
};

struct PhiloxKey {
  std::uint32_t word[2];
  constexpr bool operator==(const PhiloxKey&) const = default;
};

// Philox4x32 with ten rounds, as in Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
TYPEGRAD_HOST_DEVICE constexpr PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter.word[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = PhiloxBlock{{static_cast<std::uint32_t>(p1 >> 32) ^ counter.word[1] ^ key.word[0],
                           static_cast<std::uint32_t>(p1),
                           static_cast<std::uint32_t>(p0 >> 32) ^ counter.word[3] ^ key.word[1],
                           static_cast<std::uint32_t>(p0)}};
    key.word[0] += 0x9E3779B9u;
    key.word[1] += 0xBB67AE85u;
  }
  return counter;
}

// 53 uniform random bits, a function of key and counter.
TYPEGRAD_HOST_DEVICE constexpr std::int64_t bits53(std::int64_t key, std::int64_t counter) {
  const auto k = static_cast<std::uint64_t>(key), c = static_cast<std::uint64_t>(counter);
  const PhiloxBlock b = philox(PhiloxBlock{{static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(c >> 32), 0, 0}},
                               PhiloxKey{{static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32)}});
  return static_cast<std::int64_t>(((std::uint64_t{b.word[1]} << 32) | b.word[0]) >> 11);
}

}  // namespace tg::rng
