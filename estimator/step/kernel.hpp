// Kernels: what a step graph's nodes call, and in which order their arguments stand.
//
// The executor's contract: a backend implements each kernel of the `stowage` set for the argument
// order given here. Tensors of that set are contiguous, row-major, with no offset: its views are
// whole storages under another shape. "[b]" = present if the attribute or the node says so; an
// argument under "in place" is the same storage on both sides. Attributes are those of the
// operator's catalogue row plus the ones named here.
//
// clang-format off
//   convolution_forward        x, w, [b] -> y                       any spatial rank
//   convolution_backward_data  dy, w -> dx
//   convolution_backward_filter
//                              x, dy -> dw
//   transposed_convolution_forward
//                              x, w, [b] -> y                       w: [in, out/groups, kh, kw]
//   transposed_convolution_backward_data
//                              dy, w -> dx
//   transposed_convolution_backward_filter
//                              x, dy -> dw
//   channel_sum                dy -> db                             sums all axes but `axis`
//   linear_forward             x, w, [b] -> y                       x: [..., in], w: [out, in]
//   linear_backward_data       dy, w -> dx
//   linear_backward_filter     x, dy -> dw
//   matmul                     a, b -> y                            (1)
//   batch_norm_forward         x, [w, b], mean, var -> y, save_mean, save_invstd, mean, var  (2)
//   batch_norm_inference       x, [w, b], mean, var -> y
//   batch_norm_backward        x, dy, [w], save_mean, save_invstd -> dx, [dw, db]
//   layer_norm_forward         x, [w, b] -> y, mean, rstd           axes (how many trailing), eps
//   layer_norm_backward        x, dy, [w], mean, rstd -> dx, [dw, db]
//   relu_forward               x -> y                               y may be x
//   relu_backward              y, dy -> dx
//   gelu_forward               x -> y                               approximate
//   gelu_backward              x, dy -> dx                          approximate
//   max_pool_forward           x -> y, [indices]
//   max_pool_backward          x, y, dy -> dx                       a window's first maximum gets it
//   avg_pool_forward           x -> y
//   avg_pool_backward          dy -> dx
//   adaptive_avg_pool_forward  x -> y
//   adaptive_avg_pool_backward dy -> dx
//   dropout_forward            x -> y, mask                         p, seed (integer)
//   dropout_backward           dy, mask -> dx
//   add                        a, b -> y                            broadcasts
//   multiply                   a, b -> y                            broadcasts
//   sum_to_shape               x -> y                               sums the broadcast axes
//   accumulate                 a, b -> a                            a += b, in place
//   concatenate                x0, x1, ... -> y                     axis (>= 0)
//   slice                      x -> y                               axis (>= 0), start
//   permute                    x -> y                               axes
//   copy                       x -> y
//   fill                       - -> y                               value
//   iota                       - -> y                               int64 0, 1, ... on the last axis
//   embedding_forward          indices, w -> y
//   embedding_backward         indices, dy -> dw                    (3)
//   softmax_forward            x -> y                               axis (>= 0), causal (4)
//   softmax_backward           y, dy -> dx
//   attention_forward          q, k, v, [bias] -> out, logsumexp, [rng]  pytorch only
//   attention_backward         dout, q, k, v, out, logsumexp, [bias] -> dq, dk, dv, [dbias] pytorch
//   log_softmax_forward        x -> y                               axis (>= 0)
//   log_softmax_backward       y, dy -> dx
//   nll_loss_forward           logp, target -> loss                 (5); pytorch: -> loss, total_weight
//   nll_loss_backward          logp, target -> dlogp                scale; pytorch: dloss, logp, target, total_weight
//   cross_entropy_forward      logits, target -> loss, logsumexp    (5)
//   cross_entropy_backward     logits, target, logsumexp -> dlogits scale
//   mse_forward                x, target -> loss                    mean
//   mse_backward               x, target -> dx                      scale
//   sgd_update                 p, g, [m] -> p, [m]                  in place
//   adam_update                p, g, m, v, [vmax] -> p, m, v, [vmax]  in place; decoupled, amsgrad
//   unary_forward              x -> y                               function (6); y may be x
//   unary_backward             s, dy -> dx                          function; s: x or y, by (6)
//   prelu_forward              x, w -> y                            w: one, or one a channel (axis 1)
//   prelu_backward             x, w, dy -> dx, dw
//   glu_forward                x -> y                               axis (>= 0), gate (7)
//   glu_backward               x, dy -> dx
//   subtract                   a, b -> y                            broadcasts
//   divide                     a, b -> y                            broadcasts
//   scale                      x -> y                               factor, offset: y = factor x + offset
//   reduce                     x -> y                               axes, operation: sum | mean
//   expand                     x -> y                               factor: y = factor x, broadcast to y
//   pad                        x -> y                               before, after (one an axis), mode (8), value
//   pad_backward               dy -> dx                             before, after, mode
//   roll                       x -> y                               shifts, axes
//   upsample_forward           x -> y                               mode: nearest | linear | cubic, align_corners, [scale] (0: by the extents)
//   upsample_backward          dy -> dx                             mode, align_corners
//   adaptive_max_pool_forward  x -> y, [indices]
//   adaptive_max_pool_backward x, y, dy -> dx                       a window's first maximum gets it
//   group_norm_forward         x, [w, b] -> y, mean, rstd           groups, eps; mean: [batch, groups]
//   group_norm_backward        x, dy, [w], mean, rstd -> dx, [dw, db]
//   rms_norm_forward           x, [w] -> y, rstd                    axes (how many trailing), eps
//   rms_norm_backward          x, dy, [w], rstd -> dx, [dw]
//   local_response_norm_forward  x -> y, scale                      size, alpha, beta, k; scale: k + alpha/size sum x^2
//   local_response_norm_backward x, y, scale, dy -> dx
//   feature_dropout_forward    x -> y, mask                         p, seed; mask: x's shape with trailing ones
//   feature_dropout_backward   dy, mask -> dx
//   rotary_forward             x, cos, sin -> y                     layout: halves | pairs (9)
//   rotary_backward            dy, cos, sin -> dx
//   rotary_table               - -> cos, sin                        base (9)
//   relative_buckets           - -> y                               int64 [queries, keys] (12)
//   rnn_forward                x, h0, [c0], w... -> y, hn, [cn], reserve   (10)
//   rnn_backward               x, h0, [c0], w..., y, reserve, dy, [dhn, [dcn]] -> dx, dh0, [dc0], dw...
//   l1_forward                 x, target -> loss                    mean
//   l1_backward                x, target -> dx                      scale
//   bce_forward                x, target -> loss                    mean; logits: x are logits
//   bce_backward               x, target -> dx                      scale; logits
//   kl_div_forward             logp, target -> loss                 reduction: mean | batchmean
//   kl_div_backward            logp, target -> dlogp                scale
//   optimizer_update           p, g, [state...] -> p, [state...]    in place; optimizer: a row's name,
//                                                                   its state in the row's order
//   cast                       x -> y                               to y's format (11)
//   custom_forward             x... -> y..., saved...               what the user states; runs nowhere
//   custom_backward            saved..., dy... -> dx..., dw...
//   foreach_update             p..., g..., [state...] -> p..., [state...]  pytorch only
//
// (1) transpose_a, transpose_b (last two axes), alpha; leading axes broadcast; where y lacks a
//     leading axis that a and b have, or has it as 1, it is summed over
// (2) training; running mean and var in place; eps, momentum
// (3) zeroes dw first; the row `padding_index` gets nothing, -1: none
// (4) masks above the diagonal of the last two axes, aligned as PyTorch's is_causal
// (5) mean over the targets that are not ignore_index; class axis 1; label_smoothing
// (6) s is y for sigmoid, tanh, exp and sqrt, else x: relu6, leaky_relu (negative_slope), elu
//     (alpha), silu, mish, hardswish, hardsigmoid, softplus (beta, threshold), log, power
//     (exponent), clamp (minimum, maximum); catalogue/unary_function.hpp has the operators
// (7) y = a gate(b) of the two halves along the axis; gate: sigmoid (glu), or silu on the first
//     half with first_is_gate (swiglu: y = silu(a) b)
// (8) constant | reflect | replicate | circular
// (9) halves: y = x cos + rotate_half(x) sin (GPT-NeoX, LLaMA); pairs: neighbours are rotated
//     (GPT-J); cos, sin: [..., positions, features], broadcast over the leading axes;
//     rotary_table: cos and sin of position / base^(2 i / features), i = column modulo features/2
// (10) cell: lstm | gru | tanh | relu; layers, bidirectional, dropout, seed; x: [seq, batch, in] or
//     batch_first [batch, seq, in]; weights in PyTorch's order: for each layer and direction w_ih,
//     w_hh, [b_ih, b_hh]; h0: [layers * directions, batch, hidden]; reserve: see rnn_reserve.hpp
// (11) rounds to nearest, ties to even, to integers towards zero; past the range: infinity
// (12) T5's bucket of the distance key - query: buckets, max_distance, bidirectional
// clang-format on
#pragma once

#include <optional>
#include <string_view>

namespace stowage {

enum class Kernel {
  convolution_forward,
  convolution_backward_data,
  convolution_backward_filter,
  transposed_convolution_forward,
  transposed_convolution_backward_data,
  transposed_convolution_backward_filter,
  channel_sum,
  linear_forward,
  linear_backward_data,
  linear_backward_filter,
  matmul,
  batch_norm_forward,
  batch_norm_inference,
  batch_norm_backward,
  layer_norm_forward,
  layer_norm_backward,
  relu_forward,
  relu_backward,
  gelu_forward,
  gelu_backward,
  max_pool_forward,
  max_pool_backward,
  avg_pool_forward,
  avg_pool_backward,
  adaptive_avg_pool_forward,
  adaptive_avg_pool_backward,
  dropout_forward,
  dropout_backward,
  add,
  multiply,
  sum_to_shape,
  accumulate,
  concatenate,
  slice,
  permute,
  copy,
  fill,
  iota,
  embedding_forward,
  embedding_backward,
  softmax_forward,
  softmax_backward,
  attention_forward,
  attention_backward,
  log_softmax_forward,
  log_softmax_backward,
  nll_loss_forward,
  nll_loss_backward,
  cross_entropy_forward,
  cross_entropy_backward,
  mse_forward,
  mse_backward,
  sgd_update,
  adam_update,
  foreach_update,
  unary_forward,
  unary_backward,
  prelu_forward,
  prelu_backward,
  glu_forward,
  glu_backward,
  subtract,
  divide,
  scale,
  reduce,
  expand,
  pad,
  pad_backward,
  roll,
  upsample_forward,
  upsample_backward,
  adaptive_max_pool_forward,
  adaptive_max_pool_backward,
  group_norm_forward,
  group_norm_backward,
  rms_norm_forward,
  rms_norm_backward,
  local_response_norm_forward,
  local_response_norm_backward,
  feature_dropout_forward,
  feature_dropout_backward,
  rotary_forward,
  rotary_backward,
  rnn_forward,
  rnn_backward,
  l1_forward,
  l1_backward,
  bce_forward,
  bce_backward,
  kl_div_forward,
  kl_div_backward,
  optimizer_update,
  cast,
  custom_forward,
  custom_backward,
  rotary_table,
  relative_buckets,
  foreign,  ///< of a step that was not lowered here: named by KernelNode::foreign_kernel, run
            ///< nowhere
};
/// Without `foreign`, which is no kernel of the program's.
inline constexpr int kernel_count = static_cast<int>(Kernel::foreign);

/// The enumerator's own name: "convolution_forward".
[[nodiscard]] std::string_view to_string(Kernel kernel);
/// Of such a name; `foreign` is not one.
[[nodiscard]] std::optional<Kernel> find_kernel(std::string_view name);

}  // namespace stowage
