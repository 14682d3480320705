// The documented rule for convolution workspaces, used if cuDNN is not available
// (docs/workspaces.md).
//
// Derived from cuDNN 9.19's first choices for compute capability 7.5 to 12.0, by type, layout and
// direction. Older cards get the rule of 7.5, which is an extrapolation, since nothing was measured
// there.
//
// - On tensor cores (16-bit types from 7.0 on, fp32 with TF32 from 8.0 on) cuDNN works with
//   channels last. For contiguous tensors its workspace is converted copies of the operands, w and
//   x, or all three. For channels-last tensors it needs none in 16 bits, and below 9.0 a rounded
//   copy of fp32 operands. Filter gradients also need partial sums, for which an average is used in
//   16 bits.
// - Without tensor cores, 3x3 convolutions of stride 1 run as Winograd F(3x3) below 9.0, which
//   stores transformed 5x5 filters; wide ones of stride 1 convert their operands; others need index
//   tables of a few kilobytes. Channels-last tensors are converted.
// - float64 needs nothing.
#pragma once

#include <memory>

#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// The workspace of cuDNN's first choice by the rule.
[[nodiscard]] Bytes rule_workspace(const ConvolutionQuery& query, double compute_capability);

/// Answers with the rule's engine first and one without workspace second, which cuDNN had for every
/// convolution that was measured. With benchmark ten plans are timed, of which one converts all
/// operands; an eleventh needs twice the operands (the median of cuDNN's largest workspace was 1.0
/// to 2.5 times the operands over both lists, and 1.0 to 1.2 times among the first ten). For
/// attention it answers rule_attention_workspace() (attention_workspace.hpp). The origin is `rule`.
[[nodiscard]] std::unique_ptr<WorkspaceSource> rule_workspace_source(double compute_capability);

}  // namespace stowage
