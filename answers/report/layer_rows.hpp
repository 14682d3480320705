// LayerRow: what a layer computes, keeps, and takes at the step's peak.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answers/report/step_memory.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/document/step_document.hpp"

namespace stowage {

struct LayerRow {
  std::string name;                  ///< its path; "" of the last row
  std::string op;                    ///< "conv2d"
  std::string place;                 ///< in the source; "": not known
  std::vector<std::int64_t> output;  ///< extents of its first result
  std::int64_t parameters = 0;       ///< elements
  double flops = 0;                  ///< of its forward pass
  Bytes saved;                       ///< for backward, that no earlier layer has saved
  Bytes at_peak;                     ///< of what is live at the step's peak
};

/// A row a layer of the document, at this batch of one micro-batch; and, where something at the
/// peak belongs to no layer (the runtime's buffers, the optimizer's temporaries), a last row of it,
/// so that the column `at_peak` adds up to the peak. `memory`: of the document's step at that
/// batch. Without StepDocument::has_costs `flops` and `saved` are 0.
[[nodiscard]] std::vector<LayerRow> layer_rows(const StepDocument& document, std::int64_t batch,
                                               const MemoryOverStep& memory);

}  // namespace stowage
