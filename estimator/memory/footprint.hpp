// Footprint: who is live at one step, by class and by tensor.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/memory/step_memory.hpp"

namespace stowage {

struct FootprintRow {
  MemoryEntry entry;
  Bytes bytes;  ///< as the runtime rounds it
};

struct Footprint {
  Bytes total;            ///< the sum of the rows, and of by_class
  std::int32_t step = 0;  ///< the node that runs
  std::array<Bytes, storage_class_count> by_class{};
  std::vector<FootprintRow> rows;  ///< largest first, ties in the order of the storages
  std::shared_ptr<const StepGraph> graph;
  std::vector<RuntimeBuffer> buffers;
};

/// The footprint at the step's peak. `touches`: the graph's storage_touches.
/// O(entries log of how many sizes there are).
[[nodiscard]] Footprint peak_footprint(const SizedStep& step, const MemoryRules& rules,
                                       const std::vector<Touches>& touches);

/// "conv1.weight", "conv1.forward workspace", "cuBLAS workspace". A large network has half a
/// million rows, of which few are ever named.
[[nodiscard]] std::string name_of(const Footprint& footprint, const FootprintRow& row);

}  // namespace stowage
