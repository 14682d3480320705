// From the library's specs to the questions that the rooms below answer.
#pragma once

#include <cstdint>
#include <optional>
#include <stowage/model.hpp>
#include <string_view>

#include "answers/question/card_question.hpp"
#include "answers/question/step_question.hpp"

namespace stowage {

/// Errors: the catalogues are not found, a precision or a fine-tuning that there is not.
[[nodiscard]] Result<ModelQuestion> model_question(const ModelSpec& model);
/// `usual`: the runtime where none is said. Errors also: a runtime or a version that there is not,
/// a number of GPUs or a stage out of its range.
[[nodiscard]] Result<StepQuestion> step_question(const StepSpec& step,
                                                 Runtime usual = default_runtime);
/// The mistake of a number outside 1 to most_of_a_number; none: it is absent, or within.
inline constexpr std::int64_t most_of_a_number = 1'000'000'000;
[[nodiscard]] std::optional<Diagnostic> out_of_range(std::string_view field,
                                                     const std::optional<std::int64_t>& value);
/// As above, of sizes in bytes, which are at least 0.
[[nodiscard]] std::optional<Diagnostic> below_zero(std::string_view field,
                                                   const std::optional<std::int64_t>& bytes);

/// Errors: neither a name nor a size; a size below 0.
[[nodiscard]] Result<CardQuestion> card_question(const GpuSpec& gpu,
                                                 const ConfigDirectory& configs);

}  // namespace stowage
