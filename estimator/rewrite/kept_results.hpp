// Results that a selective checkpoint is to keep, held against what overwrites them. Internal to
// checkpoints.cpp.
#pragma once

#include <optional>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/rewrite/checkpoints.hpp"

namespace stowage {

[[nodiscard]] inline bool runs_forward(const KernelNode& node) {
  return node.phase != Phase::backward && node.phase != Phase::update;
}

/// An error for a kept result that an operator of the region overwrites, which PyTorch refuses too.
[[nodiscard]] std::optional<Diagnostic> overwritten_result(
    const StepGraph& step, const std::vector<CheckpointRegion>& regions);

}  // namespace stowage
