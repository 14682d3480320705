// MemoryColumns: a step's memory in as many columns as a picture has room for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "answers/report/step_memory.hpp"

namespace stowage {

/// Nodes in a row, shown by the one of them at which the most is live: MemoryOverStep::by_class at
/// `at` adds up to `live`.
struct MemoryColumn {
  StepRange nodes;
  std::int32_t at = 0;  ///< the first of the nodes at which `live` is largest
  Bytes live;
  Bytes reserved;  ///< the most at any of the nodes
};

/// `most` columns of nearly as many nodes each, or one a node where there are fewer nodes. The
/// step's peak is the largest column's. Precondition: most > 0.
[[nodiscard]] std::vector<MemoryColumn> memory_columns(const MemoryOverStep& memory,
                                                       std::size_t most);

/// The classes that are there at any node, in the order in which they are stacked: first what stays
/// for the whole step.
[[nodiscard]] std::vector<StorageClass> stacked_classes(const MemoryOverStep& memory);

}  // namespace stowage
