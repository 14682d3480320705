// The documented rule for convolution workspaces, where cuDNN cannot be asked (docs/workspaces.md).
//
// Read off cuDNN 9.19's own first choices for compute capability 7.5 to 12.0, by type, layout and
// direction. Older cards get the rule of 7.5: an extrapolation, since nothing was measured there.
//
// - On tensor cores (half types from 7.0 on, fp32 with TF32 from 8.0 on) cuDNN works with channels
//   innermost: of contiguous tensors its workspace is converted copies of the operands, w and x, or
//   all three; of channels-last ones it wants none in half, and fp32 is rounded into a copy before
//   9.0. Filter gradients keep partial sums besides, of which an average is taken in half.
// - Off tensor cores the 3x3 convolutions of stride 1 run as Winograd F(3x3), which keeps
// transformed
//   5x5 filters, before 9.0; wide ones of stride 1 convert their operands; the others need index
//   tables of some kilobytes. Channels-last tensors are converted.
// - float64 wants nothing.
#pragma once

#include <memory>

#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// What the first choice of cuDNN takes, by the rule.
[[nodiscard]] Bytes rule_workspace(const ConvolutionQuery& query, double compute_capability);

/// Answers with the rule's engine first and one without workspace second: cuDNN had such an engine
/// for every convolution that was asked about. With benchmark ten plans are timed, of which one
/// converts all operands; an eleventh wants twice the operands (cuDNN's largest over both lists was
/// 1.0 to 2.5 times the operands in the median, its largest among the first ten 1.0 to 1.2). Of
/// attention it answers rule_attention_workspace (attention_workspace.hpp). Origin `rule`.
[[nodiscard]] std::unique_ptr<WorkspaceSource> rule_workspace_source(double compute_capability);

}  // namespace stowage
