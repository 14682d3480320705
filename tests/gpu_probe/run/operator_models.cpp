#include "tests/gpu_probe/run/operator_models.hpp"

namespace stowage::test {
namespace {

constexpr OperatorModel operators[] = {
    {"conv2d", "4, 3, 5", "  - conv2d: {channels: 4, kernel: 3, padding: 1, groups: 2}\n"},
    {"conv_transpose2d", "4, 3, 5", "  - conv_transpose2d: {channels: 3, kernel: 2, stride: 2}\n"},
    {"matmul", "4, 5",
     "  - transpose: {name: turned, axes: [0, 2, 1]}\n  - matmul: {from: [stem, turned]}\n"},
    {"batch_norm", "4, 5", "  - batch_norm\n"},
    {"batch_norm by running statistics", "4, 5", "  - batch_norm: {training: false}\n"},
    {"batch_norm by running statistics, plain", "4, 5",
     "  - batch_norm: {training: false, affine: false}\n"},
    {"batch_norm without running statistics", "4, 5",
     "  - batch_norm: {track_running_stats: false}\n"},
    {"layer_norm", "4, 5", "  - layer_norm: {axes: 2}\n"},
    {"convolution with a computed filter", "4, 3, 5",
     "  - parameter: {name: w, shape: [3, 4, 2, 2]}\n  - tanh: {name: made}\n"
     "  - conv2d: {from: [stem, made], channels: 3, kernel: 2}\n"},
    {"convolution with a computed filter and bias", "4, 5",
     "  - parameter: {name: w, shape: [3, 4, 3]}\n  - tanh: {name: made}\n"
     "  - parameter: {name: b, shape: [3]}\n  - tanh: {name: shift}\n"
     "  - conv1d: {from: [stem, made, shift], channels: 3, kernel: 3, bias: false}\n"},
    {"batch_norm without bias", "4, 5", "  - batch_norm: {bias: false}\n"},
    {"batch_norm with a computed weight", "4, 5",
     "  - parameter: {name: gain, shape: [4]}\n  - scale: {name: factor, factor: 0.5, offset: 1}\n"
     "  - batch_norm: {from: [stem, factor], affine: false, track_running_stats: false}\n"},
    {"einsum of scores", "4, 5", "  - einsum: {from: [stem, stem], equation: \"bid,bjd->bij\"}\n"},
    {"einsum of three, turned", "4, 5",
     "  - parameter: {name: table, shape: [6, 3]}\n  - scale: {name: halved, factor: 0.5}\n"
     "  - einsum: {from: [stem, stem, halved], equation: \"bid,bjd,dk->kbji\"}\n"
     "  - transpose: {axes: [1, 0, 2, 3]}\n"},
    {"einsum with a sum", "4, 5",
     // The shape under which a weight is first read decides its values, in all formats.
     "  - parameter: {name: v, shape: [4]}\n  - scale: {name: halved, factor: 0.5}\n"
     "  - einsum: {from: [stem, halved], equation: \"bid,j->bji\"}\n"},
    {"relu", "4, 5", "  - relu\n"},
    {"gelu", "4, 5", "  - gelu\n"},
    {"softmax", "4, 5", "  - softmax: {axis: 1}\n"},
    {"max_pool2d", "4, 3, 5", "  - max_pool2d: {kernel: 2, stride: 1}\n"},
    {"avg_pool2d", "4, 3, 5", "  - avg_pool2d: {kernel: 2, stride: 1, padding: 1}\n"},
    {"adaptive_avg_pool2d", "4, 3, 5", "  - adaptive_avg_pool2d: {size: 2}\n"},
    {"dropout", "4, 5", "  - dropout: {p: 0.3}\n"},
    {"add", "4, 5",
     "  - linear: {name: other, from: x, features: 6}\n  - add: {from: [stem, other]}\n"},
    {"mul", "4, 5",
     "  - linear: {name: other, from: x, features: 6}\n  - mul: {from: [stem, other]}\n"},
    {"concat", "4, 5",
     "  - linear: {name: other, from: x, features: 6}\n"
     "  - concat: {from: [stem, other], axis: 1}\n"},
    {"reshape", "4, 5", "  - reshape: {shape: [batch, 12, 2]}\n  - softmax\n"},
    {"attention", "4, 5",
     "  - reshape: {name: q, shape: [batch, 2, 4, 3]}\n"
     "  - scaled_dot_product_attention: {from: [q, q, q], causal: true, dropout: 0.2}\n"},
    {"relu6", "4, 5", "  - relu6\n"},
    {"leaky_relu", "4, 5", "  - leaky_relu: {negative_slope: 0.2}\n"},
    {"elu", "4, 5", "  - elu\n"},
    {"silu", "4, 5", "  - silu: {in_place: true}\n"},
    {"mish", "4, 5", "  - mish\n"},
    {"hardswish", "4, 5", "  - hardswish\n"},
    {"hardsigmoid", "4, 5", "  - hardsigmoid\n"},
    {"sigmoid", "4, 5", "  - sigmoid\n"},
    {"tanh", "4, 5", "  - tanh: {in_place: true}\n"},
    {"softplus", "4, 5", "  - softplus: {beta: 2.0}\n"},
    {"exp", "4, 5", "  - exp\n"},
    {"log", "4, 5", "  - exp\n  - log\n"},
    {"sqrt", "4, 5", "  - exp\n  - sqrt\n"},
    {"pow", "4, 5", "  - pow: {exponent: 2.0}\n"},
    {"clamp", "4, 5", "  - clamp: {minimum: -0.5, maximum: 0.5}\n"},
    {"clamp from below", "4, 5", "  - clamp: {minimum: 0.1}\n"},
    {"selu", "4, 5", "  - selu\n"},
    {"celu", "4, 5", "  - celu: {alpha: 0.7}\n"},
    {"hardtanh", "4, 5", "  - hardtanh: {minimum: -0.5, maximum: 0.5, in_place: true}\n"},
    {"log_sigmoid", "4, 5", "  - log_sigmoid\n"},
    {"rsqrt", "4, 5", "  - exp\n  - rsqrt\n"},
    {"reciprocal", "4, 5", "  - exp\n  - reciprocal\n"},
    {"abs", "4, 5", "  - abs\n"},
    {"sin", "4, 5", "  - sin\n"},
    {"cos", "4, 5", "  - cos\n"},
    {"erf", "4, 5", "  - erf\n"},
    {"log1p", "4, 5", "  - exp\n  - log1p\n"},
    {"expm1", "4, 5", "  - expm1\n"},
    {"maximum", "4, 5",
     "  - linear: {name: other, from: x, features: 6}\n  - exp: {name: positive}\n"
     "  - maximum: {from: [stem, positive]}\n"},
    {"minimum, one side repeated", "4, 5",
     "  - mean: {name: level, axes: [1], keep: true}\n  - minimum: {from: [level, stem]}\n"},
    {"addcmul", "4, 5",
     "  - linear: {name: other, from: x, features: 6}\n"
     "  - mean: {name: level, axes: [1], keep: true}\n"
     "  - addcmul: {from: [stem, other, level], value: 0.5}\n"},
    {"addcdiv", "4, 5",
     "  - linear: {name: other, from: x, features: 6}\n  - exp: {name: positive}\n"
     "  - addcdiv: {from: [stem, stem, positive], value: 0.5}\n"},
    {"prelu", "4, 5", "  - prelu: {parameters: 4}\n"},
    {"glu", "4, 5", "  - glu: {axis: 1}\n"},
    {"swiglu of one", "4, 5", "  - swiglu\n"},
    {"swiglu of two", "4, 5",
     "  - linear: {name: up, features: 6}\n  - swiglu: {from: [stem, up]}\n"},
    {"conv1d", "4, 5", "  - conv1d: {channels: 3, kernel: 3, padding: same}\n"},
    {"conv3d", "4, 3, 3, 5", "  - conv3d: {channels: 3, kernel: 2, padding: same}\n"},
    {"conv_transpose1d", "4, 5",
     "  - conv_transpose1d: {channels: 3, kernel: 3, stride: 2, output_padding: 1}\n"},
    {"conv_transpose3d", "4, 2, 2, 5",
     "  - conv_transpose3d: {channels: 3, kernel: 2, stride: 2}\n"},
    {"sub", "4, 5",
     "  - linear: {name: other, from: x, features: 6}\n  - sub: {from: [stem, other]}\n"},
    {"sub, one side repeated", "4, 5",
     "  - mean: {name: level, axes: [1], keep: true}\n  - sub: {from: [stem, level]}\n"},
    {"div", "4, 5",
     "  - linear: {name: other, from: x, features: 6}\n  - exp: {name: positive}\n"
     "  - div: {from: [stem, positive]}\n"},
    {"scale", "4, 5", "  - scale: {factor: 2.5, offset: -1.0}\n"},
    {"learned scale", "4, 5", "  - scale: {learned: true, shape: [4, 1]}\n"},
    {"mean", "4, 5", "  - mean: {axes: [1]}\n"},
    {"sum", "4, 5", "  - sum: {axes: [2], keep: true}\n"},
    {"amax", "4, 5", "  - amax: {axes: [1]}\n"},
    {"amin", "4, 5", "  - amin: {axes: [2], keep: true}\n"},
    {"var", "4, 5", "  - var: {axes: [1], correction: 0}\n"},
    {"std", "4, 5", "  - std: {axes: [2]}\n"},
    {"norm", "4, 5",
     "  - norm: {name: length, axes: [2], keep: true}\n  - div: {from: [stem, length]}\n"},
    {"norm of p 1", "4, 5", "  - norm: {p: 1, axes: [1]}\n"},
    {"norm of p 3", "4, 5", "  - norm: {p: 3, axes: [1]}\n"},
    {"norm of the largest", "4, 5", "  - norm: {p: .inf, axes: [1]}\n"},
    {"max", "4, 5", "  - max: {name: m, axis: 1}\n  - identity: {from: m.0}\n"},
    {"min", "4, 5", "  - min: {name: m, axis: -1, keep: true}\n  - sub: {from: [stem, m.0]}\n"},
    {"argmax", "4, 5",
     "  - argmax: {axis: 2}\n  - embedding: {name: e, count: 6, features: 6}\n"
     "  - add: {from: [stem, e]}\n"},
    {"argmin", "4, 5",
     "  - argmin: {axis: 2}\n  - embedding: {name: e, count: 6, features: 6}\n"
     "  - add: {from: [stem, e]}\n"},
    {"topk", "4, 5", "  - topk: {name: t, count: 2}\n  - identity: {from: t.0}\n"},
    {"sort", "4, 5", "  - sort: {name: t, axis: 1}\n  - identity: {from: t.0}\n"},
    {"argsort", "4, 5",
     "  - argsort: {axis: 2, descending: true}\n"
     "  - embedding: {count: 6, features: 1}\n  - reshape: {name: e, shape: [batch, 4, 6]}\n"
     "  - add: {from: [stem, e]}\n"},
    {"cumsum", "4, 5", "  - cumsum: {axis: 1}\n"},
    {"expand", "4, 5", "  - mean: {axes: [1], keep: true}\n  - expand: {shape: [batch, 3, 6]}\n"},
    {"stack", "4, 5",
     "  - linear: {name: other, from: x, features: 6}\n"
     "  - stack: {from: [stem, other], axis: 1}\n"},
    {"slice", "4, 5", "  - slice: {axis: 2, start: 1, length: 4}\n"},
    {"slice, every second", "4, 5", "  - slice: {axis: 2, start: 1, step: 2}\n"},
    {"tile", "4, 5", "  - tile: {repeats: [1, 2, 3]}\n"},
    {"repeat_interleave", "4, 5", "  - repeat_interleave: {repeats: 3, axis: 1}\n"},
    {"unfold", "4, 3, 5", "  - unfold: {kernel: [2, 3], padding: 1, stride: [1, 2]}\n"},
    {"fold", "4, 5", "  - fold: {size: [4, 3], kernel: 2}\n"},
    {"index_select", "4, 5",
     "  - constant: {name: places, shape: [3], dtype: int64, value: 2}\n"
     "  - index_select: {from: [stem, places], axis: -1}\n"},
    {"index", "4, 5",
     "  - positions: {name: p, length: 3}\n  - index: {from: [stem, p], axis: 1}\n"},
    {"index of two axes", "4, 5",
     "  - positions: {name: p, length: 3}\n"
     "  - constant: {name: two, shape: [2, 1], dtype: int64, value: 1}\n"
     "  - index: {from: [stem, two, p], axis: 1}\n"},
    {"gather", "4, 5", "  - topk: {name: t, count: 2}\n  - gather: {from: [stem, t.1], axis: 2}\n"},
    {"index_add", "4, 5",
     "  - constant: {name: zeros, shape: [batch, 8, 6], dtype: lower}\n"
     "  - constant: {name: places, shape: [4], dtype: int64, value: 2}\n"
     "  - index_add: {from: [zeros, places, stem], axis: 1}\n"},
    {"scatter_add", "4, 5",
     "  - topk: {name: t, count: 2}\n  - scatter_add: {from: [stem, t.1, t.0], axis: 2}\n"},
    {"scatter", "4, 5",
     "  - topk: {name: t, count: 2}\n  - linear: {name: other, from: x, features: 6}\n"
     "  - scatter: {from: [other, t.1, t.0], axis: 2}\n"},
    {"scatter of a number", "4, 5",
     "  - topk: {name: t, count: 2}\n  - scatter: {from: [stem, t.1], axis: 2, value: 0.5}\n"},
    {"slice_scatter", "4, 5",
     "  - slice: {name: first, axis: 2, length: 2}\n"
     "  - slice_scatter: {from: [stem, first], start: [0, 0, 3]}\n"},
    {"slice_scatter of several axes", "4, 5",
     "  - linear: {name: part, from: x, features: 3}\n"
     "  - slice: {name: rows, axis: 1, start: 2}\n"
     "  - slice_scatter: {from: [stem, rows], start: [0, 1, 2], in_place: true}\n"},
    // Away from the steps of the function, where the loss has a slope.
    {"steps of a number", "4, 5",
     "  - scale: {name: small, factor: 0.02, offset: 0.3}\n  - floor: {name: a, from: small}\n"
     "  - ceil: {name: b, from: small}\n  - round: {name: c, from: small}\n"
     "  - trunc: {name: d, from: small}\n  - sign: {name: e, from: small}\n"
     "  - add: {name: ab, from: [a, b]}\n  - add: {name: cd, from: [c, d]}\n"
     "  - add: {name: abcd, from: [ab, cd]}\n  - add: {name: all, from: [abcd, e]}\n"
     "  - mul: {from: [all, stem]}\n"},
    {"norms of other powers", "4, 5",
     "  - exp: {name: positive}\n  - norm: {name: a, p: -1, axes: [2], keep: true}\n"
     "  - norm: {name: b, from: positive, p: -.inf, axes: [2], keep: true}\n"
     "  - norm: {name: c, from: positive, p: 0, axes: [2], keep: true}\n"
     "  - concat: {name: norms, from: [a, b, c], axis: 2}\n"
     "  - concat: {from: [norms, stem], axis: 2}\n"},
    {"attention over five axes", "4, 5",
     "  - reshape: {name: q, shape: [batch, 2, 2, 2, 3]}\n"
     "  - constant: {name: mask, shape: [2, 1, 2, 2], value: -1.0}\n"
     "  - scaled_dot_product_attention: {from: [q, q, q, mask], causal: true, dropout: 0.2}\n"},
    {"einsum of an ellipsis", "4, 5",
     "  - parameter: {name: table, shape: [1, 6, 3]}\n"
     "  - einsum: {from: [stem, table], equation: \"...i,...ij->...j\"}\n"},
    {"einsum of a diagonal", "4, 5",
     "  - parameter: {name: table, shape: [6, 3, 6]}\n"
     "  - einsum: {from: [stem, table], equation: \"bij,jkj->bki\"}\n"},
    {"where", "4, 5",
     "  - linear: {name: other, from: x, features: 6}\n  - exp: {name: positive}\n"
     "  - compare: {name: larger, from: [stem, positive], operation: gt}\n"
     "  - where: {from: [larger, stem, positive]}\n"},
    {"masked_fill", "4, 5",
     "  - compare: {name: high, operation: ge, value: 0.5}\n"
     "  - compare: {name: low, from: stem, operation: lt, value: -0.5}\n"
     "  - logical: {name: far, from: [high, low], operation: or}\n"
     "  - masked_fill: {from: [stem, far], value: 0.25}\n"},
    {"tril", "4, 5", "  - tril\n"},
    {"triu", "4, 5", "  - triu: {diagonal: 1}\n"},
    {"one_hot", "4, 5",
     "  - argmax: {axis: 2}\n  - one_hot: {classes: 6}\n"
     "  - compare: {name: chosen, operation: eq, value: 1}\n"
     "  - masked_fill: {from: [stem, chosen]}\n"},
    {"roll", "4, 5", "  - roll: {shifts: [1, -2], axes: [1, 2]}\n"},
    {"identity", "4, 5", "  - identity\n"},
    {"constant", "4, 5",
     "  - constant: {name: twos, shape: [4, 6], value: 2.0}\n  - mul: {from: [stem, twos]}\n"},
    {"feature_dropout", "4, 5", "  - feature_dropout: {p: 0.3}\n"},
    {"drop_path", "4, 5", "  - drop_path: {p: 0.3}\n"},
    {"split by sizes", "4, 5",
     "  - split: {name: s, sizes: [2, 4], axis: 2}\n  - concat: {from: [s.1, s.0], axis: 2}\n"},
    {"group_norm", "4, 5", "  - group_norm: {groups: 2}\n"},
    {"group_norm without weight", "4, 5", "  - group_norm: {groups: 2, affine: false}\n"},
    {"group_norm without bias", "4, 5", "  - group_norm: {groups: 2, bias: false}\n"},
    {"instance_norm", "4, 5", "  - instance_norm: {affine: true, track_running_stats: true}\n"},
    {"rms_norm", "4, 5", "  - rms_norm\n"},
    {"rms_norm_plus_one", "4, 5", "  - rms_norm_plus_one\n"},
    {"rms_norm_wide", "4, 5", "  - rms_norm_wide\n"},
    {"rms_norm in operators", "4, 5", "  - rms_norm: {implementation: composite}\n"},
    {"layer_norm without bias", "4, 5", "  - layer_norm: {bias: false}\n"},
    {"local_response_norm", "4, 5", "  - local_response_norm: {size: 3}\n"},
    {"max_pool1d", "4, 5", "  - max_pool1d: {kernel: 3, stride: 2, padding: 1}\n"},
    {"max_pool3d", "4, 3, 3, 5", "  - max_pool3d: {kernel: 2, ceil_mode: true}\n"},
    {"avg_pool1d", "4, 5", "  - avg_pool1d: {kernel: 3, padding: 1, count_include_pad: false}\n"},
    {"avg_pool3d", "4, 3, 3, 5", "  - avg_pool3d: {kernel: 2, ceil_mode: true}\n"},
    {"adaptive_avg_pool1d", "4, 5", "  - adaptive_avg_pool1d: {size: 4}\n"},
    {"adaptive_avg_pool3d", "4, 3, 3, 5", "  - adaptive_avg_pool3d: {size: 2}\n"},
    {"adaptive_max_pool1d", "4, 5", "  - adaptive_max_pool1d: {size: 4}\n"},
    {"adaptive_max_pool2d", "4, 3, 5", "  - adaptive_max_pool2d: {size: 2}\n"},
    {"adaptive_max_pool3d", "4, 3, 3, 5", "  - adaptive_max_pool3d: {size: 2}\n"},
    {"pad by reflection", "4, 5", "  - pad: {before: [2], after: [1], mode: reflect}\n"},
    {"pad by repetition", "4, 3, 5", "  - pad: {before: [2, 1], after: [0, 3], mode: replicate}\n"},
    {"pad around", "4, 5", "  - pad: {before: [2], after: [1], mode: circular}\n"},
    {"cut off", "4, 5", "  - pad: {before: [-1], after: [2], value: 1.5}\n"},
    {"upsample", "4, 5", "  - upsample: {scale: 2}\n"},
    {"upsample bicubic", "4, 3, 5", "  - upsample: {scale: 1.5, mode: bicubic}\n"},
    {"upsample trilinear", "4, 2, 2, 5",
     "  - upsample: {size: 3, mode: trilinear, align_corners: true}\n"},
    {"pixel_shuffle", "4, 3, 5", "  - pixel_shuffle: {factor: 2}\n"},
    {"pixel_unshuffle", "4, 2, 5", "  - pixel_unshuffle: {factor: 2}\n"},
    {"attention with shared keys and a learned bias", "4, 5",
     "  - reshape: {name: split, shape: [batch, 4, 2, 3]}\n"
     "  - transpose: {name: q, axes: [0, 2, 1, 3]}\n"
     "  - reshape: {name: k, from: stem, shape: [batch, 1, 8, 3]}\n"
     "  - parameter: {name: bias, shape: [1, 2, 4, 8]}\n"
     "  - scaled_dot_product_attention: {from: [q, k, k, bias], causal: true, dropout: 0.2}\n"},
    {"attention, masked", "4, 5",
     "  - reshape: {name: q, shape: [batch, 2, 4, 3]}\n"
     "  - constant: {name: mask, shape: [4, 4], value: -1.0}\n"
     "  - scaled_dot_product_attention: {from: [q, q, q, mask], scale: 0.5}\n"},
    {"parameter", "4, 5",
     "  - parameter: {name: token, shape: [1, 1, 6]}\n  - expand: {name: tokens, shape: [batch, 1, "
     "6]}\n  - concat: {from: [tokens, stem], axis: 1}\n"},
    {"rotary", "4, 5",
     "  - rotary_table: {name: t, length: 4, features: 6}\n"
     "  - rotary: {name: both, from: [stem, stem, t.0, t.1]}\n  - add: {from: [both.0, both.1]}\n"},
    {"rotary, each angle once", "4, 5",
     "  - rotary_table: {name: t, length: 4, features: 6, repeated: false}\n"
     "  - rotary: {name: both, from: [stem, stem, t.0, t.1]}\n  - add: {from: [both.0, both.1]}\n"},
    {"sink_softmax", "4, 3, 5",
     "  - parameter: {name: sinks, shape: [4]}\n  - sink_softmax: {from: [stem, sinks]}\n"},
    {"indices that are computed", "4, 5",
     "  - positions: {name: p, length: 4}\n"
     "  - constant: {name: two, shape: [1, 1], dtype: int64, value: 2}\n"
     "  - mul: {name: even, from: [p, two]}\n  - sub: {name: back, from: [even, p]}\n"
     "  - add: {name: third, from: [even, back]}\n"
     "  - expand: {name: each, shape: [batch, 4]}\n"
     "  - embedding: {name: e, count: 10, features: 6}\n  - add: {from: [stem, e]}\n"},
    {"attention under a mask of each sample", "4, 5",
     "  - reshape: {name: q, shape: [batch, 2, 4, 3]}\n"
     "  - constant: {name: seen, shape: [1, 1, 1, 4], dtype: bool, value: 1}\n"
     "  - expand: {name: mask, shape: [batch, 1, 4, 4]}\n"
     "  - scaled_dot_product_attention: {from: [q, q, q, mask]}\n"},
    {"relative_position_bias", "4, 5",
     "  - relative_position_bias: {heads: 2, window: [2, 2]}\n"
     "  - reshape: {name: rows, shape: [8, 4]}\n  - matmul: {from: [rows, stem]}\n"},
    {"relative_position_buckets", "4, 5",
     "  - relative_position_buckets: {heads: 2, queries: 4, keys: 4, buckets: 4, max_distance: 3}\n"
     "  - reshape: {name: rows, shape: [8, 4]}\n  - matmul: {from: [rows, stem]}\n"},
    {"lstm", "4, 5",
     "  - lstm: {hidden: 3, layers: 2, bidirectional: true, dropout: 0.2, batch_first: true}\n"},
    {"lstm with states", "4, 5",
     "  - lstm: {name: r, hidden: 3, batch_first: true, states: true}\n"
     "  - transpose: {from: r.2, axes: [1, 0, 2]}\n"},
    {"gru", "4, 5", "  - gru: {hidden: 3, batch_first: true, bias: false}\n"},
    {"rnn", "4, 5", "  - rnn: {hidden: 3, batch_first: true, nonlinearity: relu}\n"},
};

}  // namespace

std::span<const OperatorModel> operator_models() { return operators; }

// The stem gives x a gradient. The head reduces any result to one of three numbers.
std::string operator_description(const OperatorModel& model) {
  return std::string("model: ") + model.name + "\ninputs:\n  x: {shape: [batch, " + model.input +
         "]}\n  target: {shape: [batch, 3]}\nlayers:\n" +
         "  - linear: {name: stem, from: x, features: 6}\n" + model.layers +
         "  - flatten\n  - linear: {name: head, features: 3}\n" +
         "loss:\n  mse: {from: [head, target]}\n";
}

}  // namespace stowage::test
