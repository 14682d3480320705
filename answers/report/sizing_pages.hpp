// CheckPage, BatchPage: an answer with all that a page about it shows beside: memory over the step,
// what layers take, and memory over batches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "answers/report/layer_rows.hpp"
#include "answers/report/step_memory.hpp"
#include "answers/sizing/batch.hpp"
#include "answers/sizing/check.hpp"
#include "estimator/check/batch_search.hpp"

namespace stowage {

/// A step at one batch.
struct StepPicture {
  std::int64_t batch = 1;  ///< of all replicas
  std::int64_t replicas = 1;
  MemoryOverStep memory;  ///< of one replica
  std::vector<LayerRow> layers;
  bool has_costs = false;  ///< the layers' operations and saved bytes are known
  /// The most that the allocator of one replica may hold: what the card leaves it beside context
  /// and libraries.
  Bytes room;
};

struct CheckPage {
  CheckAnswer answer;
  StepPicture step;  ///< of the step alone, without the evaluation
  /// Ascending, of all replicas, at a few batches around the asked one; empty: the step was
  /// recorded at one batch.
  std::vector<CurvePoint> curve;
};
/// Errors: as answer()'s.
[[nodiscard]] Result<CheckPage> check_page(const CheckQuestion& question);

struct BatchPage {
  BatchAnswer answer;
  StepPicture step;  ///< at the recommended batch, else at the largest, else at the smallest
  /// The report's, with the recommended batch; where nothing fits, the smallest batch alone.
  std::vector<CurvePoint> curve;
};
/// Errors: as answer()'s.
[[nodiscard]] Result<BatchPage> batch_page(const BatchQuestion& question);

}  // namespace stowage
