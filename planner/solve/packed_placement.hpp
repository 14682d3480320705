// PackedPlacement: a placement in bits, for the hundreds of placements that a search keeps.
//
// A Placement of a network of 60,000 operations takes 10 MB in its many small vectors, a packed one
// 60 kB.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/solve/residency_cut.hpp"

namespace stowage {

class PackedPlacement {
 public:
  explicit PackedPlacement(const Placement& placement);

  [[nodiscard]] bool on_gpu(std::size_t operation) const { return bit(operation); }
  /// `place`: a number of a gap, counted item by item (PlacementIndex::gaps()).
  [[nodiscard]] bool resident(std::size_t place) const { return bit(operations_ + place); }
  /// Whether the item is on the GPU at the term's touch or through its gap.
  [[nodiscard]] bool holds(const MemoryTerm& term) const {
    return bit(operations_ + (term.gap ? 0 : gaps_) + static_cast<std::size_t>(term.place));
  }
  /// Precondition: the placement belongs to this problem.
  [[nodiscard]] Placement unpacked(const ResidencyProblem& problem) const;
  bool operator==(const PackedPlacement&) const = default;

 private:
  [[nodiscard]] bool bit(std::size_t i) const { return (bits_[i / 64] >> (i % 64)) & 1U; }
  void append(bool value);

  std::vector<std::uint64_t> bits_;  ///< devices, gaps, touches
  std::size_t size_ = 0;
  std::size_t operations_ = 0, gaps_ = 0;
  /// (operation, engine) where the engine is not 0.
  std::vector<std::pair<std::int32_t, std::int32_t>> engines_;
};

}  // namespace stowage
