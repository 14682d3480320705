// The update that a recorded step lacks: parameters that got a gradient and that no optimizer
// updated (StepDocument::not_updated), and the step with an update of them appended.
//
// A function that runs forward and backward alone is recorded without the optimizer's state. What
// the optimizer would keep and allocate follows from its row (optimizer/optimizer_row.hpp), as in
// the lowering of descriptions.
#pragma once

#include <cstdint>
#include <optional>

#include "estimator/base/bytes.hpp"
#include "estimator/document/step_document.hpp"

namespace stowage {

struct MissingUpdate {
  std::int64_t parameters = 0;  ///< tensors
  Bytes bytes;                  ///< of these parameters themselves
  bool is_whole = false;        ///< the step updates no parameter at all
  bool operator==(const MissingUpdate&) const = default;
};

/// None: every parameter that got a gradient is updated, or the step is an inference.
[[nodiscard]] std::optional<MissingUpdate> missing_update(const StepDocument& document);

/// The document with the state of `optimizer` for the parameters that are not updated, and with its
/// update of them after the step's last node. Where the step updates no parameter, `optimizer`
/// becomes its optimizer. Precondition: missing_update, and problem_of(optimizer) is none.
/// Errors: a parameter whose gradient is not in the file, or whose state is there already.
[[nodiscard]] Result<StepDocument> with_update(StepDocument document,
                                               const OptimizerSettings& optimizer);

}  // namespace stowage
