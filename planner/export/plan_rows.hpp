// PlanRows: a step's layers gathered into at most a dozen rows, so that a drawing of a plan stays
// on one page.
//
// A row begins as one block: "stage1.unit.0" of "stage1.unit.0.conv" (model/repeated_blocks.hpp),
// or as a layer whose path has no number. Then, in this order:
//   1. Blocks of a chain that follow each other and are alike become one row: the same kernels on
//      the same sides, storages of the same classes copied the same ways.
//   2. A layer without a number that has less than a hundredth of the parameters' bytes, and of
//      which nothing is copied, joins the row before it: activations, pooling, the loss.
//   3. While there are more than `most` rows, two neighbours become one: of one chain if there are
//      such, of those the two of which the fewest bytes are copied.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.hpp"

namespace stowage {

struct PlanRows {
  /// In the order of the layers: "stage1.unit x 2, pool", "features.0 to features.7".
  std::vector<std::string> names;
  std::vector<int> of_operator;  ///< by OperatorId

  /// Of a node: its layer's row; of one without a layer that of what it writes, if that is one row.
  /// -1: it belongs to no row, such as an update of all parameters at once.
  [[nodiscard]] int row_of(const Plan& plan, const KernelNode& node) const;
  /// Of the layer whose result, parameter or state it is; -1: an input, of no layer.
  [[nodiscard]] int row_of(const Plan& plan, StorageId storage) const;
};

/// Preconditions: two_sides_mismatch(plan.machine) == ""; most > 0.
[[nodiscard]] PlanRows plan_rows(const Plan& plan, std::size_t most);

}  // namespace stowage
