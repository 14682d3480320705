// What a question says of the step against what its step file was made for.
#pragma once

#include <cstdint>
#include <string_view>

#include "answers/question/step_question.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"
#include "estimator/document/step_document.hpp"

namespace stowage {

/// One mistake for each setting that asks for another step than the document's; each says what the
/// step was made for. What is said again is none.
[[nodiscard]] Diagnostics contradictions(const StepDocument& document,
                                         const StepQuestion& question);
/// The card's: PyTorch chooses its kernels by it.
[[nodiscard]] Diagnostics contradictions(const StepDocument& document, const Card& card);
/// Those of a model's options alone: its length, values and precision.
[[nodiscard]] Diagnostics contradictions(const StepDocument& document, const ModelOptions& options);

/// Errors: the step was recorded at another batch than `batch`, which the setting `field` asks for.
[[nodiscard]] Result<void> check_batch(const StepDocument& document, std::int64_t batch,
                                       std::string_view field);

}  // namespace stowage
