// The file of a plan for PyTorch: JSON text (which is YAML as well), a decision a line.
// docs/apply.md has the format.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"
#include "planner/pytorch/pytorch_plan.hpp"

namespace stowage {

/// What the file's member `format` says.
inline constexpr std::string_view pytorch_plan_format = "stowage-pytorch-plan";
/// What its member `updates` says where each comes as soon as its gradient is whole.
inline constexpr std::string_view early_updates_word = "early";

/// The text, once read_pytorch_plan has read the same plan from it. Throws std::logic_error where
/// it cannot be read: a mistake of the program.
[[nodiscard]] std::string write_pytorch_plan(const PytorchPlan& plan);

/// Whether the text's `format` says that it is one. Reads its beginning alone.
[[nodiscard]] bool is_pytorch_plan(std::string_view text);

/// Errors, with their places: not JSON, another format or version, a member that is missing or of
/// another kind, a key that a plan names and that no storage has.
[[nodiscard]] Result<PytorchPlan> read_pytorch_plan(SourceTextPtr source);

}  // namespace stowage
