// A plan for PyTorch that a question names, with its text.
#pragma once

#include <optional>
#include <string>

#include "estimator/base/diagnostic.hpp"
#include "planner/pytorch/pytorch_plan.hpp"

namespace stowage {

/// A plan for PyTorch and the text that it was read from.
struct NamedPytorchPlan {
  SourceTextPtr source;
  PytorchPlan plan;
};

/// The plan for PyTorch that the text is; none: it is something else. Errors: those of its reader.
[[nodiscard]] Result<std::optional<NamedPytorchPlan>> pytorch_plan_of(SourceTextPtr source);

/// The plan for PyTorch that lies at `path`; none: another file lies there, or none. Errors: those
/// of its reader.
[[nodiscard]] Result<std::optional<NamedPytorchPlan>> find_pytorch_plan(const std::string& path);

/// Mistakes in what the plan was made of, with the plan's file as their place: nobody typed these
/// words now.
[[nodiscard]] Diagnostics about_plan(Diagnostics mistakes, const NamedPytorchPlan& named);

/// Whether a plan's file lies there, of either kind.
[[nodiscard]] bool names_plan(const std::string& path);

}  // namespace stowage
