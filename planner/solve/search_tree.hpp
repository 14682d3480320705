// SearchTree: the branches of a search, recorded for the certificate.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "planner/certificate/certificate.hpp"
#include "planner/solve/lagrangian.hpp"

namespace stowage {

/// One decision: a gap is kept or dropped, or (gap < 0) an operation takes a device.
struct Decision {
  std::int32_t index = 0;  ///< of the item, or of the operation
  std::int32_t gap = -1;
  bool on_gpu = false;
};

/// The prices of the best bound known in a branch, and the rows that they are of.
struct PricedRows {
  Multipliers prices;
  std::vector<const LimitRow*> rows;
};

class SearchTree {
 public:
  /// Holds the root, as place 0, without prices.
  explicit SearchTree(const CutModel& model) : model_(model), nodes_(1) {}

  /// Adds the branch of `parent` that has the decision on the GPU, or not; gives its place.
  std::size_t add_child(std::size_t parent, const Decision& decision, bool on_gpu);
  void set_prices(std::size_t place, PricedRows priced);
  /// Records the rows of `rows` that are not in `inherited` as made at this place.
  void add_rows(std::size_t place, const std::vector<const LimitRow*>& rows,
                const std::vector<const LimitRow*>& inherited);
  /// The tree. A branch that was never divided and never got prices is a leaf without prices.
  [[nodiscard]] BranchTree exported() const;

 private:
  struct Node {
    std::optional<Fixing> fixing;
    std::array<std::size_t, 2> child{};  // on the GPU, not
    PricedRows leaf;
    std::vector<const LimitRow*> added;
  };
  [[nodiscard]] Fixing fixing_of(const Decision& decision) const;

  const CutModel& model_;
  std::vector<Node> nodes_;
};

/// Prices in seconds a byte, as a certificate has them.
[[nodiscard]] std::vector<MemoryPrice> in_seconds(const CutModel& model, const Prices& prices);
/// The tree of a bound without branches.
[[nodiscard]] BranchTree single_leaf(std::vector<MemoryPrice> prices);
/// The number of the item's storage; in problems without storages the item's own.
[[nodiscard]] std::int32_t storage_number(const ResidencyProblem& problem, std::int32_t item);

}  // namespace stowage
