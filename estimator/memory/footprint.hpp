// Footprint: who is live at one step, by class and by tensor.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/memory/step_memory.hpp"

namespace stowage {

struct FootprintRow {
  std::string name;
  StorageClass storage_class = StorageClass::activation;
  OperatorId op;
  Bytes bytes;  ///< as the runtime rounds it
};

struct Footprint {
  Bytes total;            ///< the sum of the rows, and of by_class
  std::int32_t step = 0;  ///< the node that runs
  std::array<Bytes, storage_class_count> by_class{};
  std::vector<FootprintRow> rows;  ///< largest first, ties in the order of the storages
};

/// The footprint at the step's peak. O(entries log entries).
[[nodiscard]] Footprint peak_footprint(const StepMemory& memory);

}  // namespace stowage
