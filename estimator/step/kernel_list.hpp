// The kernels: what a step graph's nodes call. One row a kernel; from it come the enumerator and
// its name (kernel.hpp), the table (kernel_table.hpp), the host's functions
// (gpu_probe/host/kernels/) and docs/kernels.md.
//
//   KERNEL(name, type, signature, notes)        our own: a row of that name (gpu_probe/kernels)
//   LIBRARY(name, type, signature, notes)       of oneDNN and OpenBLAS on the host (gpu_probe/host)
//   ABSENT(name, type, why, signature, notes)   runs on no device
//
// The executor's contract: a backend implements each kernel for the arguments that its signature
// (kernel_signature.hpp) names, in that order. Tensors of the `stowage` set are contiguous,
// row-major, with no offset: its views are whole storages under another shape. Signatures are that
// set's; where PyTorch's differs, the notes say so. `type` is an ArgumentType. Attributes are those
// of the operator's catalogue row and the ones that the notes name.
#pragma once

// clang-format off
#define STOWAGE_KERNELS(KERNEL, LIBRARY, ABSENT) \
  LIBRARY(convolution_forward, floating, "x, w, [b] -> y", \
         "any spatial rank; stride, padding, dilation, groups") \
  LIBRARY(convolution_backward_data, floating, "dy, w -> dx", "as forward") \
  LIBRARY(convolution_backward_filter, floating, "x, dy -> dw", "as forward") \
  LIBRARY(transposed_convolution_forward, floating, "x, w, [b] -> y", \
         "w: [in, out/groups, kh, kw]; as convolution_forward, and output_padding") \
  LIBRARY(transposed_convolution_backward_data, floating, "dy, w -> dx", "as forward") \
  LIBRARY(transposed_convolution_backward_filter, floating, "x, dy -> dw", "as forward") \
  KERNEL(channel_sum, floating, "dy -> db", "sums all axes but `axis`") \
  LIBRARY(linear_forward, floating, "x, w, [b] -> y", "x: [..., in], w: [out, in]") \
  LIBRARY(linear_backward_data, floating, "dy, w -> dx", "") \
  LIBRARY(linear_backward_filter, floating, "x, dy -> dw", "") \
  LIBRARY(matmul, floating, "a, b -> y", \
         "transpose_a, transpose_b (the last two axes), alpha; leading axes broadcast; where y " \
         "lacks a leading axis that a and b have, or has it as 1, it is summed over") \
  KERNEL(batch_norm_forward, floating, "x, [w, b], mean, var -> y over x, save_mean, save_invstd, mean, var", \
         "training: the running mean and var are updated; eps, momentum") \
  KERNEL(batch_norm_inference, floating, "x, [w, b], mean, var -> y over x", "eps") \
  KERNEL(batch_norm_apply, floating, "x, [w, b], save_mean, save_invstd -> y over x", \
         "what batch_norm_forward made, from the statistics that it made; function, and what it takes: " \
         "applied to the result, relu or one of unary_forward's; none: nothing is") \
  KERNEL(batch_norm_backward, floating, "x, dy, [w], save_mean, save_invstd -> dx over dy, [dw, db]", \
         "dw and db where there is w") \
  KERNEL(layer_norm_forward, floating, "x, [w, b] -> y over x, mean, rstd", \
         "axes (how many trailing), eps") \
  KERNEL(layer_norm_backward, floating, "x, dy, [w], mean, rstd -> dx over dy, [dw, db]", \
         "axes; dw and db where there is w") \
  KERNEL(relu_forward, floating, "x -> y over x", "") \
  KERNEL(relu_backward, floating, "y, dy -> dx over dy", "") \
  KERNEL(gelu_forward, floating, "x -> y over x", "approximate") \
  KERNEL(gelu_backward, floating, "x, dy -> dx over dy", "approximate") \
  KERNEL(max_pool_forward, floating, "x -> y, [indices: index]", \
         "kernel, stride, padding, dilation") \
  KERNEL(max_pool_backward, floating, "x, y, dy -> dx", \
         "a window's first maximum gets the gradient") \
  KERNEL(avg_pool_forward, floating, "x -> y", \
         "as max_pool_forward; count_include_pad") \
  KERNEL(avg_pool_backward, floating, "dy -> dx", "as forward") \
  KERNEL(adaptive_avg_pool_forward, floating, "x -> y", "") \
  KERNEL(adaptive_avg_pool_backward, floating, "dy -> dx", "") \
  KERNEL(adaptive_max_pool_forward, floating, "x -> y, [indices: index]", "") \
  KERNEL(adaptive_max_pool_backward, floating, "x, y, dy -> dx", \
         "a window's first maximum gets the gradient") \
  KERNEL(dropout_forward, floating, "x -> y over x, mask: mask", "p, seed (integer)") \
  KERNEL(dropout_backward, floating, "dy, mask: mask -> dx over dy", "p") \
  KERNEL(feature_dropout_forward, floating, "x -> y over x, mask: mask", \
         "p, seed; mask: x's shape with trailing ones") \
  KERNEL(feature_dropout_backward, floating, "dy, mask: mask -> dx over dy", "p") \
  KERNEL(add, number, "a, b -> y over a or b", "broadcasts") \
  KERNEL(subtract, number, "a, b -> y over a or b", "broadcasts") \
  KERNEL(multiply, number, "a, b -> y over a or b", "broadcasts") \
  KERNEL(divide, floating, "a, b -> y over a or b", "broadcasts") \
  KERNEL(scale, floating, "x -> y over x", "factor, offset: y = factor x + offset") \
  KERNEL(sum_to_shape, floating, "x -> y", "sums the broadcast axes") \
  KERNEL(accumulate, floating, "a, b -> a", "a += b") \
  KERNEL(maximum, floating, "a, b -> y over a or b", "broadcasts; NaN wins") \
  KERNEL(minimum, floating, "a, b -> y over a or b", "broadcasts; NaN wins") \
  KERNEL(extremum_backward, floating, "a, b, dy -> da over dy", \
         "operation: maximum or minimum; the gradient of a before it is summed to a's shape: half " \
         "of dy where a and b are equal") \
  KERNEL(reduce, floating, "x -> y", "axes, operation: sum or mean") \
  KERNEL(statistic_forward, floating, "x -> y", \
         "axes, operation: maximum, minimum, variance or deviation (correction), norm (p)") \
  KERNEL(statistic_backward, floating, "x, y, dy -> dx", \
         "as forward; equal extrema share the gradient") \
  KERNEL(extreme_place, floating, "x -> indices: index, [y]", \
         "axis (>= 0), operation: maximum or minimum; the first place of it, and its value") \
  KERNEL(top_places, floating, "x -> y, indices: index", \
         "axis (>= 0), count, largest; in falling order (rising: not largest), the first of equals " \
         "first") \
  KERNEL(cumulate, number, "x -> y", "axis (>= 0): sums up to each place; reverse: from it on") \
  KERNEL(expand, constant, "x -> y", "factor: y = factor x, broadcast to y") \
  KERNEL(concatenate, any, "x... -> y", "axis (>= 0)") \
  KERNEL(slice, any, "x -> y", "axis (>= 0), start") \
  KERNEL(permute, any, "x -> y", "axes") \
  KERNEL(copy, any, "x -> y", "") \
  KERNEL(cast, any, "x -> y", \
         "to y's format: rounds to nearest, ties to even, to integers towards zero; past the " \
         "range: infinity") \
  KERNEL(fill, constant, "-> y", "value") \
  KERNEL(iota, index, "-> y", "0, 1, ... on the last axis") \
  KERNEL(pad, element, "x -> y", \
         "before, after (one an axis), mode (constant, reflect, replicate, circular), value") \
  KERNEL(pad_backward, floating, "dy -> dx", "before, after, mode") \
  KERNEL(roll, element, "x -> y", "shifts, axes") \
  KERNEL(compare, constant, "a, [b] -> y: mask", \
         "broadcasts; operation: eq, ne, lt, le, gt or ge; without b: to value") \
  KERNEL(logical, mask, "a, [b] -> y over a or b", \
         "broadcasts; operation: and, or, xor; not, of a alone") \
  KERNEL(select, element, "condition: mask, a, b -> y", "broadcasts; a where condition, else b") \
  KERNEL(triangle, element, "x -> y over x", \
         "diagonal, upper: zeros below that diagonal of the last two axes, else above it") \
  KERNEL(one_hot, index, "indices -> y", "1 at the index along a new last axis, else 0") \
  KERNEL(unfold, floating, "x -> y", \
         "x: [batch, channels, height, width], y: [batch, channels kh kw, windows]; kernel, stride, " \
         "padding, dilation") \
  KERNEL(fold, floating, "x -> y", "the other way round: sums what lies at one place; as unfold") \
  KERNEL(take_forward, element, "x, indices...: index -> y", \
         "axis (>= 0): of as many axes of x from there on as there are indices (up to 4), the " \
         "elements that the indices, broadcast, name") \
  KERNEL(take_backward, floating, "indices...: index, dy -> dx", "axis; elements named twice add up") \
  KERNEL(index_add, floating, "x, indices: index, source -> y over x", \
         "axis; x with parts of source added to the parts that the indices name") \
  KERNEL(gather_forward, element, "x, indices: index -> y", \
         "axis (>= 0); y: of the shape of indices, which name places along axis") \
  KERNEL(gather_backward, floating, "indices: index, dy -> dx", "axis; what is named twice adds up") \
  KERNEL(scatter_add, floating, "x, indices: index, source -> y over x", \
         "axis; x with each element of source added where its index says; replace: put there, the last of several") \
  KERNEL(embedding_forward, floating, "indices: index, w -> y", "") \
  KERNEL(embedding_backward, floating, "indices: index, dy -> dw", \
         "zeroes dw first; the row `padding_index` gets nothing (-1: none)") \
  KERNEL(softmax_forward, floating, "x -> y over x", \
         "axis (>= 0), causal: masks above the diagonal of the last two axes, aligned as " \
         "PyTorch's is_causal") \
  KERNEL(softmax_backward, floating, "y, dy -> dx over dy", "axis, causal") \
  KERNEL(log_softmax_forward, floating, "x -> y over x", "axis (>= 0)") \
  KERNEL(log_softmax_backward, floating, "y, dy -> dx over dy", "axis") \
  KERNEL(attention_forward, floating, "q, k, v, [bias] -> y, [logsumexp, [rng...: any]]", \
         "softmax(scale q k^T + bias) v; scale (0: 1 / sqrt(features)), causal, dropout, seed; q, y: " \
         "[batch, heads, length, features]; k, v: as many heads, or a divisor of them; bias: " \
         "broadcast to [batch, heads, queries, keys]; logsumexp: of each row of scores, float32 or " \
         "float64; implementation: cudnn where cuDNN may run it. PyTorch's also writes rng") \
  KERNEL(attention_backward, floating, "dy, q, k, v, y, logsumexp, [bias] -> dq, dk, dv, [dbias]", \
         "as forward") \
  KERNEL(nll_loss_forward, floating, "logp, target: index -> loss", \
         "mean over the targets that are not ignore_index; class axis 1. PyTorch's also writes " \
         "total_weight") \
  KERNEL(nll_loss_backward, floating, "logp, target: index -> dlogp", \
         "scale. PyTorch's reads dloss, logp, target, total_weight") \
  KERNEL(cross_entropy_forward, floating, "logits, target: index -> loss, logsumexp", \
         "as nll_loss_forward; label_smoothing") \
  KERNEL(cross_entropy_backward, floating, "logits, target: index, logsumexp -> dlogits over logits", \
         "scale") \
  KERNEL(mse_forward, floating, "x, target -> loss", "mean") \
  KERNEL(mse_backward, floating, "x, target -> dx over x", "scale") \
  KERNEL(l1_forward, floating, "x, target -> loss", "mean") \
  KERNEL(l1_backward, floating, "x, target -> dx over x", "scale") \
  KERNEL(bce_forward, floating, "x, target -> loss", "mean; logits: x are logits") \
  KERNEL(bce_backward, floating, "x, target -> dx over x", "scale; logits") \
  KERNEL(kl_div_forward, floating, "logp, target -> loss", "reduction: mean or batchmean") \
  KERNEL(kl_div_backward, floating, "logp, target -> dlogp over logp", "reduction, scale") \
  KERNEL(unary_forward, floating, "x -> y over x", \
         "function, and what it takes: relu6, leaky_relu (negative_slope), elu (alpha), silu, " \
         "mish, hardswish, hardsigmoid, softplus (beta, threshold), log, power (exponent), " \
         "clamp (minimum, maximum), sigmoid, tanh, exp, sqrt, rsqrt, reciprocal, abs, sin, cos, " \
         "erf, log1p, expm1, selu, celu (alpha), log_sigmoid, sign, floor, ceil, round, trunc") \
  KERNEL(unary_backward, floating, "s, dy -> dx over dy", \
         "as forward; s is y for relu6, sigmoid, tanh, exp, expm1, sqrt, rsqrt and reciprocal, else x") \
  KERNEL(prelu_forward, floating, "x, w -> y over x", "w: one, or one a channel (axis 1)") \
  KERNEL(prelu_backward, floating, "x, w, dy -> dx over dy, dw", "") \
  KERNEL(glu_forward, floating, "x -> y", \
         "axis (>= 0); y = a gate(b) of the two halves along it; gate: sigmoid (glu), or silu " \
         "on the first half with first_is_gate (swiglu: y = silu(a) b)") \
  KERNEL(glu_backward, floating, "x, dy -> dx", "as forward") \
  KERNEL(upsample_forward, floating, "x -> y", \
         "mode: nearest, linear or cubic; align_corners; scale (0: by the extents)") \
  KERNEL(upsample_backward, floating, "dy -> dx", "as forward") \
  KERNEL(group_norm_forward, floating, "x, [w, b] -> y over x, mean, rstd", \
         "groups, eps; mean: [batch, groups]") \
  KERNEL(group_norm_backward, floating, "x, dy, [w], mean, rstd -> dx over dy, [dw, db]", \
         "groups; dw and db where there is w") \
  KERNEL(rms_norm_forward, floating, "x, [w] -> y over x, rstd", "axes (how many trailing), eps") \
  KERNEL(rms_norm_backward, floating, "x, dy, [w], rstd -> dx over dy, [dw]", \
         "axes; dw where there is w") \
  KERNEL(local_response_norm_forward, floating, "x -> y, scale", \
         "size, alpha, beta, k; scale: k + alpha/size sum x^2") \
  KERNEL(local_response_norm_backward, floating, "x, y, scale, dy -> dx", "as forward") \
  KERNEL(rotary_forward, floating, "x, cos, sin -> y over x", \
         "layout: halves (y = x cos + rotate_half(x) sin: GPT-NeoX, LLaMA) or pairs " \
         "(neighbours are rotated: GPT-J); cos, sin: [..., positions, features], broadcast " \
         "over the leading axes") \
  KERNEL(rotary_backward, floating, "dy, cos, sin -> dx over dy", "as forward") \
  KERNEL(rotary_table, floating, "-> cos, sin", \
         "base: of position / base^(2 i / features), i = column modulo features/2") \
  KERNEL(relative_buckets, index, "-> y", \
         "[queries, keys]: T5's bucket of the distance key - query; buckets, max_distance, " \
         "bidirectional") \
  LIBRARY(rnn_forward, floating, "x, h0, [c0], w... -> y, hn, [cn], [reserve: bytes, [scratch: bytes]]", \
         "cell: lstm, gru, tanh or relu; layers, bidirectional, dropout, seed; x: [seq, batch, " \
         "in], or batch_first; weights in PyTorch's order: for each layer and direction w_ih, " \
         "w_hh, [b_ih, b_hh]; h0: [layers * directions, batch, hidden]; reserve: " \
         "estimator/step/rnn_reserve.hpp, in training; scratch: rnn_scratch.hpp, on a GPU") \
  LIBRARY(rnn_backward, floating, "x, h0, [c0], w..., y, reserve: bytes, dy, [dhn, [dcn]] -> dx, dh0, [dc0], dw..., [scratch: bytes]", \
         "as forward") \
  KERNEL(sgd_update, floating, "p, g, [m] -> p, [m]", \
         "the optimizer's settings by their names; step (from 1)") \
  KERNEL(adam_update, floating, "p, g, m, v, [vmax] -> p, m, v, [vmax]", \
         "as sgd_update; decoupled, amsgrad") \
  KERNEL(optimizer_update, floating, "p, g, [state...] -> p, [state...]", \
         "as sgd_update; optimizer: a row's name, whose state stands in the row's order") \
  ABSENT(foreach_update, floating, "PyTorch's own", "p...: any -> p...: any", \
         "all parameters, then gradients, then state") \
  KERNEL(dequantize_blocks, floating, "q: bytes, absmax: floating, code: floating, offset: floating -> y", \
         "block: y = absmax of the block * code[q] + offset; bitsandbytes' 8 bits") \
  KERNEL(dequantize_4bit, floating, "q: bytes, absmax: floating, code: floating -> w", \
         "block: w = absmax of the block * code of its half byte, the high half first") \
  KERNEL(dequantize_rows, floating, "q: bytes, scales: floating -> w", \
         "encoding: int8 (w = q scale / 127) or float8 (e4m3fn: w = q scale); a scale a row of w") \
  ABSENT(quantize_rows, floating, "bitsandbytes' own", "x -> q: bytes, scales: floating", \
         "int8, a scale a row") \
  ABSENT(int8_product, index, "bitsandbytes' own", "x: bytes, w: bytes -> y", \
         "of int8 values, summed in int32") \
  ABSENT(scale_int8_product, floating, "bitsandbytes' own", \
         "x: index, row_scales: floating, column_scales: floating, [b: floating] -> y", \
         "y = x row_scale column_scale / 127^2 + b") \
  ABSENT(custom_forward, any, "what it computes is not stated", "x... -> y...", \
         "the inputs and parameters; the outputs, then what is saved") \
  ABSENT(custom_backward, any, "what it computes is not stated", "x... -> y...", \
         "what was saved, the gradients that arrive, parameters; the gradients made")
// clang-format on
