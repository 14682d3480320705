// What was said on the command line against what a step file was made for.
#pragma once

#include <cstdint>
#include <string_view>

#include "cli/options/request.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"
#include "estimator/document/step_document.hpp"

namespace stowage {

/// One mistake for each option that asks for another step than the document's; each says what the
/// step was made for. What is said again is none.
[[nodiscard]] Diagnostics contradictions(const StepDocument& document, const StepRequest& request);
/// The card's: PyTorch chooses its kernels by it.
[[nodiscard]] Diagnostics contradictions(const StepDocument& document, const Card& card);
/// Those of a model's options alone: --seq, --set, --precision.
[[nodiscard]] Diagnostics contradictions(const StepDocument& document, const ModelOptions& options);

/// Errors: the step was recorded at another batch than `batch`, which `option` asks for.
[[nodiscard]] Result<void> check_batch(const StepDocument& document, std::int64_t batch,
                                       std::string_view option);

}  // namespace stowage
