// The batch of a whole step, and how micro-batches share it.
//
// Forward and backward run once for each micro-batch, so nearly everything is sized by that: a
// batch that is a plain number is of one micro-batch on one GPU. What an update sees, all
// micro-batches of all GPUs together, is a WholeBatch. Neither converts to the other unseen.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace stowage {

/// More samples than any step has: a step's file or an option that says more is mistaken.
inline constexpr std::int64_t largest_batch = 1'000'000'000;

struct WholeBatch {
  constexpr WholeBatch() = default;
  constexpr explicit WholeBatch(std::int64_t of_samples) : samples(of_samples) {}
  auto operator<=>(const WholeBatch&) const = default;

  std::int64_t samples = 0;
};

/// What each of `parts` micro-batches (or GPUs) gets; nullopt: they cannot share it equally.
/// Precondition: parts > 0.
[[nodiscard]] std::optional<std::int64_t> micro_batch_of(WholeBatch whole, std::int64_t parts);

/// Throws ArithmeticOverflow.
[[nodiscard]] WholeBatch whole_batch_of(std::int64_t micro_batch, std::int64_t parts);

}  // namespace stowage
