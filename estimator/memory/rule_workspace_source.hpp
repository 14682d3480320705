// The documented rule for convolution workspaces, where cuDNN cannot be asked (docs/workspaces.md).
//
// Fitted on cuDNN 9.19's own first choices for fp32 NCHW convolutions of compute capability 7.5 to
// 12.0. Older cards get the rule of 7.5: an extrapolation, since nothing was measured there.
//
// From 8.0 on cuDNN runs fp32 convolutions on tensor cores (TF32) in channels-last layout, so its
// workspace is converted copies of the operands: w and x, or x and y as well. Before 8.0 the 3x3
// convolutions of stride 1 run as Winograd F(3x3), which keeps transformed 5x5 filters; wide ones
// of stride 1 convert their operands; the others need index tables of some kilobytes.
#pragma once

#include <memory>

#include "estimator/memory/workspace_source.hpp"

namespace stowage {

/// What the first choice of cuDNN takes, by the rule.
[[nodiscard]] Bytes rule_workspace(const ConvolutionQuery& query, double compute_capability);

/// Answers with the rule's engine first and one without workspace second: cuDNN had such an engine
/// for every convolution that was asked about. Origin `rule`.
[[nodiscard]] std::unique_ptr<WorkspaceSource> rule_workspace_source(double compute_capability);

}  // namespace stowage
