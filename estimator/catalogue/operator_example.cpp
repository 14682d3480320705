#include "estimator/catalogue/operator_example.hpp"

#include <fmt/format.h>

#include <cassert>

namespace stowage {

namespace {

struct OperatorExample {
  std::string_view op;
  std::string_view lines;
  std::string_view input = "4, 5";  ///< x behind the batch; the stem makes its last axis 6
  std::string_view before = {};     ///< of a loss: layers behind `head`
};

constexpr std::string_view image = "4, 3, 5";
constexpr std::string_view volume = "4, 2, 2, 5";

constexpr OperatorExample examples[] = {
    {"conv1d", "- conv1d: {channels: 8, kernel: 3, padding: same}\n"},
    {"conv2d", "- conv2d: {channels: 8, kernel: 3, padding: 1}\n", image},
    {"conv3d", "- conv3d: {channels: 8, kernel: 2}\n", volume},
    {"conv_transpose1d", "- conv_transpose1d: {channels: 8, kernel: 2, stride: 2}\n"},
    {"conv_transpose2d", "- conv_transpose2d: {channels: 8, kernel: 2, stride: 2}\n", image},
    {"conv_transpose3d", "- conv_transpose3d: {channels: 8, kernel: 2, stride: 2}\n", volume},
    {"linear", "- linear: {features: 8}\n"},
    {"matmul",
     "- linear: {name: queries, from: stem, features: 8}\n"
     "- linear: {name: keys, from: stem, features: 8}\n"
     "- matmul: {from: [queries, keys], transpose_b: true}\n"},
    {"einsum",
     "- linear: {name: queries, from: stem, features: 8}\n"
     "- linear: {name: keys, from: stem, features: 8}\n"
     "- einsum: {from: [queries, keys], equation: \"bid,bjd->bij\"}\n"},
    {"batch_norm", "- batch_norm\n"},
    {"layer_norm", "- layer_norm\n"},
    {"group_norm", "- group_norm: {groups: 2}\n"},
    {"instance_norm", "- instance_norm\n"},
    {"rms_norm", "- rms_norm\n"},
    {"rms_norm_plus_one", "- rms_norm_plus_one\n"},
    {"rms_norm_wide", "- rms_norm_wide\n"},
    {"local_response_norm", "- local_response_norm: {size: 3}\n", image},
    {"relu", "- relu\n"},
    {"relu6", "- relu6\n"},
    {"leaky_relu", "- leaky_relu: {negative_slope: 0.2}\n"},
    {"prelu", "- prelu\n"},
    {"elu", "- elu\n"},
    {"selu", "- selu\n"},
    {"celu", "- celu: {alpha: 0.5}\n"},
    {"gelu", "- gelu\n"},
    {"silu", "- silu\n"},
    {"mish", "- mish\n"},
    {"hardswish", "- hardswish\n"},
    {"hardsigmoid", "- hardsigmoid\n"},
    {"hardtanh", "- hardtanh\n"},
    {"sigmoid", "- sigmoid\n"},
    {"tanh", "- tanh\n"},
    {"softplus", "- softplus\n"},
    {"log_sigmoid", "- log_sigmoid\n"},
    {"glu", "- glu: {axis: 2}\n"},
    {"swiglu",
     "- linear: {name: gate, from: stem, features: 8}\n"
     "- linear: {name: up, from: stem, features: 8}\n"
     "- swiglu: {from: [gate, up]}\n"},
    {"softmax", "- softmax\n"},
    {"sink_softmax",
     "- parameter: {name: sinks, shape: [4]}\n"
     "- sink_softmax: {from: [stem, sinks]}\n",
     image},
    {"log_softmax", "- log_softmax\n"},
    {"max_pool1d", "- max_pool1d: {kernel: 2}\n"},
    {"max_pool2d", "- max_pool2d: {kernel: 3, stride: 2, padding: 1}\n", image},
    {"max_pool3d", "- max_pool3d: {kernel: 2}\n", volume},
    {"avg_pool1d", "- avg_pool1d: {kernel: 2}\n"},
    {"avg_pool2d", "- avg_pool2d: {kernel: 2}\n", image},
    {"avg_pool3d", "- avg_pool3d: {kernel: 2}\n", volume},
    {"adaptive_avg_pool1d", "- adaptive_avg_pool1d: {size: 1}\n"},
    {"adaptive_avg_pool2d", "- adaptive_avg_pool2d: {size: 1}\n", image},
    {"adaptive_avg_pool3d", "- adaptive_avg_pool3d: {size: 1}\n", volume},
    {"adaptive_max_pool1d", "- adaptive_max_pool1d: {size: 1}\n"},
    {"adaptive_max_pool2d", "- adaptive_max_pool2d: {size: 1}\n", image},
    {"adaptive_max_pool3d", "- adaptive_max_pool3d: {size: 1}\n", volume},
    {"pad", "- pad: {before: [2], after: [1], mode: reflect}\n"},
    {"upsample", "- upsample: {scale: 2, mode: bilinear}\n", image},
    {"pixel_shuffle", "- pixel_shuffle: {factor: 2}\n", image},
    {"pixel_unshuffle", "- pixel_unshuffle: {factor: 2}\n", "4, 2, 5"},
    {"dropout", "- dropout: {p: 0.1}\n"},
    {"feature_dropout", "- feature_dropout: {p: 0.1}\n"},
    {"drop_path", "- drop_path: {p: 0.1}\n"},
    {"add", "- linear: {name: branch, features: 6}\n- add: {from: [stem, branch]}\n"},
    {"sub", "- linear: {name: branch, features: 6}\n- sub: {from: [stem, branch]}\n"},
    {"mul", "- linear: {name: gate, features: 6}\n- mul: {from: [stem, gate]}\n"},
    {"div", "- linear: {name: branch, features: 6}\n- div: {from: [stem, branch]}\n"},
    {"maximum", "- linear: {name: branch, features: 6}\n- maximum: {from: [stem, branch]}\n"},
    {"minimum", "- linear: {name: branch, features: 6}\n- minimum: {from: [stem, branch]}\n"},
    {"addcmul",
     "- linear: {name: gate, features: 6}\n"
     "- addcmul: {from: [stem, stem, gate], value: 0.5}\n"},
    {"addcdiv",
     "- linear: {name: gate, features: 6}\n"
     "- addcdiv: {from: [stem, stem, gate], value: 0.5}\n"},
    {"scale", "- scale: {factor: 0.5}\n"},
    {"pow", "- pow: {exponent: 2}\n"},
    {"sqrt", "- sqrt\n"},
    {"rsqrt", "- exp\n- rsqrt\n"},
    {"reciprocal", "- exp\n- reciprocal\n"},
    {"abs", "- abs\n"},
    {"sign", "- sign\n- add: {from: [stem, sign_1]}\n"},
    {"floor", "- floor\n- add: {from: [stem, floor_1]}\n"},
    {"ceil", "- ceil\n- add: {from: [stem, ceil_1]}\n"},
    {"round", "- round\n- add: {from: [stem, round_1]}\n"},
    {"trunc", "- trunc\n- add: {from: [stem, trunc_1]}\n"},
    {"exp", "- exp\n"},
    {"expm1", "- expm1\n"},
    {"log", "- log\n"},
    {"log1p", "- exp\n- log1p\n"},
    {"sin", "- sin\n"},
    {"cos", "- cos\n"},
    {"erf", "- erf\n"},
    {"clamp", "- clamp: {minimum: -1, maximum: 1}\n"},
    {"mean", "- mean: {axes: [1]}\n"},
    {"sum", "- sum: {axes: [1], keep: true}\n"},
    {"amax", "- amax: {axes: [1]}\n"},
    {"amin", "- amin: {axes: [1], keep: true}\n"},
    {"var", "- var: {axes: [1], correction: 0}\n"},
    {"std", "- std: {axes: [1]}\n"},
    {"norm",
     "- norm: {name: length, axes: [2], keep: true}\n"
     "- clamp: {name: bounded, minimum: 1.0e-12}\n"
     "- div: {from: [stem, bounded]}\n"},
    {"max", "- max: {name: m, axis: 1, keep: true}\n- sub: {from: [stem, m.0]}\n"},
    {"min", "- min: {name: m, axis: 1, keep: true}\n- sub: {from: [stem, m.0]}\n"},
    {"argmax", "- argmax: {axis: 2}\n- embedding: {count: 6, features: 8}\n"},
    {"argmin", "- argmin: {axis: 2}\n- embedding: {count: 6, features: 8}\n"},
    {"topk", "- topk: {name: best, count: 2}\n- identity: {from: best.0}\n"},
    {"sort", "- sort: {name: ordered, descending: true}\n- identity: {from: ordered.0}\n"},
    {"argsort", "- argsort: {axis: 2}\n- embedding: {count: 6, features: 8}\n"},
    {"cumsum", "- cumsum: {axis: 1}\n"},
    {"concat", "- linear: {name: more, features: 2}\n- concat: {from: [stem, more], axis: 2}\n"},
    {"stack", "- linear: {name: branch, features: 6}\n- stack: {from: [stem, branch], axis: 1}\n"},
    {"split", "- split: {name: half, parts: 2, axis: 2}\n- add: {from: [half.0, half.1]}\n"},
    {"slice", "- slice: {axis: 1, start: 0, length: 1}\n"},
    {"reshape", "- reshape: {shape: [batch, 4, 2, 3]}\n"},
    {"flatten", "- flatten\n"},
    {"transpose", "- transpose: {axes: [0, 2, 1]}\n"},
    {"contiguous", "- transpose: {axes: [0, 2, 1]}\n- contiguous\n"},
    {"roll", "- roll: {shifts: [1], axes: [1]}\n"},
    {"expand", "- parameter: {name: token, shape: [1, 1, 6]}\n- expand: {shape: [batch, 1, 6]}\n"},
    {"tile", "- tile: {repeats: [1, 1, 2]}\n"},
    {"repeat_interleave", "- repeat_interleave: {repeats: 2, axis: 1}\n"},
    {"unfold", "- unfold: {kernel: 3, padding: 1}\n", image},
    {"fold", "- fold: {size: [4, 3], kernel: 2}\n"},
    {"index_select",
     "- constant: {name: places, shape: [3], dtype: int64, value: 2}\n"
     "- index_select: {from: [stem, places], axis: 2}\n"},
    {"index",
     "- positions: {name: places, length: 2}\n"
     "- index: {from: [stem, places], axis: 1}\n"},
    {"gather",
     "- argmax: {name: best, axis: 2, keep: true}\n- gather: {from: [stem, best], axis: 2}\n"},
    {"index_add",
     "- constant: {name: zeros, shape: [batch, 8, 6]}\n"
     "- constant: {name: places, shape: [4], dtype: int64, value: 2}\n"
     "- index_add: {from: [zeros, places, stem], axis: 1}\n"},
    {"scatter_add",
     "- argmax: {name: best, axis: 2, keep: true}\n"
     "- slice: {name: first, from: stem, axis: 2, length: 1}\n"
     "- scatter_add: {from: [stem, best, first], axis: 2}\n"},
    {"scatter",
     "- argmax: {name: best, axis: 2, keep: true}\n"
     "- slice: {name: first, from: stem, axis: 2, length: 1}\n"
     "- scatter: {from: [stem, best, first], axis: 2}\n"},
    {"slice_scatter",
     "- slice: {name: first, from: stem, axis: 2, length: 2}\n"
     "- slice_scatter: {from: [stem, first], start: [0, 0, 3]}\n"},
    {"compare",
     "- compare: {name: positive, operation: gt, value: 0}\n"
     "- masked_fill: {from: [stem, positive], value: 0}\n"},
    {"logical",
     "- compare: {name: positive, operation: gt, value: 0}\n"
     "- logical: {name: rest, operation: not}\n"
     "- masked_fill: {from: [stem, rest], value: 0}\n"},
    {"where",
     "- linear: {name: branch, features: 6}\n"
     "- compare: {name: larger, from: [stem, branch], operation: gt}\n"
     "- where: {from: [larger, stem, branch]}\n"},
    {"masked_fill",
     "- compare: {name: positive, operation: gt, value: 0}\n"
     "- masked_fill: {from: [stem, positive], value: -1}\n"},
    {"tril", "- tril\n"},
    {"triu", "- triu: {diagonal: 1}\n"},
    {"identity", "- identity\n"},
    {"cast", "- cast: {dtype: bfloat16}\n- cast: {dtype: float32}\n"},
    {"constant", "- constant: {name: mask, shape: [4, 6]}\n- add: {from: [stem, mask]}\n"},
    {"embedding", "- embedding: {from: tokens, count: 100, features: 8}\n"},
    {"one_hot",
     "- argmax: {axis: 2}\n"
     "- one_hot: {classes: 6}\n"
     "- cast: {name: chosen, dtype: float32}\n"
     "- mul: {from: [stem, chosen]}\n"},
    {"positions",
     "- positions: {length: 4}\n"
     "- embedding: {name: places, count: 16, features: 6}\n"
     "- add: {from: [stem, places]}\n"},
    {"parameter",
     "- parameter: {name: positions, shape: [1, 4, 6]}\n- add: {from: [stem, positions]}\n"},
    {"rotary_table",
     "- rotary_table: {name: angles, length: 4, features: 6}\n"
     "- rotary: {name: turned, from: [stem, stem, angles.0, angles.1]}\n"
     "- add: {from: [turned.0, turned.1]}\n"},
    {"rotary",
     "- rotary_table: {name: angles, length: 4, features: 6}\n"
     "- rotary: {name: turned, from: [stem, stem, angles.0, angles.1]}\n"
     "- add: {from: [turned.0, turned.1]}\n"},
    {"relative_position_bias",
     "- relative_position_bias: {name: bias, heads: 2, window: [2, 2]}\n"
     "- reshape: {name: q, from: stem, shape: [batch, 2, 4, 3]}\n"
     "- scaled_dot_product_attention: {from: [q, q, q, bias]}\n"},
    {"relative_position_buckets",
     "- relative_position_buckets: {name: bias, heads: 2, queries: 4, keys: 4, buckets: 4}\n"
     "- reshape: {name: q, from: stem, shape: [batch, 2, 4, 3]}\n"
     "- scaled_dot_product_attention: {from: [q, q, q, bias]}\n"},
    {"lstm", "- lstm: {hidden: 8, batch_first: true}\n"},
    {"gru", "- gru: {hidden: 8, batch_first: true}\n"},
    {"rnn", "- rnn: {hidden: 8, batch_first: true}\n"},
    {"scaled_dot_product_attention",
     "- linear: {name: query, from: stem, features: 6}\n"
     "- reshape: {name: q, shape: [batch, 1, 4, 6]}\n"
     "- linear: {name: key, from: stem, features: 6}\n"
     "- reshape: {name: k, shape: [batch, 1, 4, 6]}\n"
     "- linear: {name: value, from: stem, features: 6}\n"
     "- reshape: {name: v, shape: [batch, 1, 4, 6]}\n"
     "- scaled_dot_product_attention: {from: [q, k, v], causal: true}\n"},
    {"cross_entropy", "cross_entropy: {from: [head, classes]}\n"},
    {"nll", "nll: {from: [likely, classes]}\n", "4, 5", "- log_softmax: {name: likely, axis: 1}\n"},
    {"mse", "mse: {from: [head, numbers]}\n"},
    {"l1", "l1: {from: [head, numbers]}\n"},
    {"bce", "bce: {from: [chance, numbers]}\n", "4, 5", "- sigmoid: {name: chance}\n"},
    {"bce_with_logits", "bce_with_logits: {from: [head, numbers]}\n"},
    {"kl_div", "kl_div: {from: [likely, numbers], reduction: batchmean}\n", "4, 5",
     "- log_softmax: {name: likely, axis: 1}\n"},
    {"routed_experts",
     "- reshape: {name: rows, from: stem, shape: [batch * 4, 6]}\n"
     "- linear: {name: router, features: 4, bias: false}\n"
     "- parameter: {name: up, shape: [4, 10, 6]}\n"
     "- parameter: {name: down, shape: [4, 6, 5]}\n"
     "- routed_experts: {from: [rows, router, up, down], chosen: 2}\n"
     "- reshape: {shape: [batch, 24]}\n"},
    {"custom", "- custom: {shape: [batch, 16], saved: [batch, 64], flops: [batch, 1000]}\n"},
};

const OperatorExample* find_example(std::string_view op) {
  for (const OperatorExample& example : examples) {
    if (example.op == op) return &example;
  }
  return nullptr;
}

}  // namespace

std::string_view example_lines(const OperatorRow& row) {
  const OperatorExample* const example = find_example(row.name);
  return example == nullptr ? std::string_view() : example->lines;
}

std::string example_description(const OperatorRow& row) {
  const OperatorExample* const example = find_example(row.name);
  assert(example != nullptr);
  // Whatever shape an operator's result has, the head makes [batch, 3] of it.
  return fmt::format(
      "model: {}\n"
      "inputs:\n"
      "  x: {{shape: [batch, {}]}}\n"
      "  tokens: {{shape: [batch, 4], dtype: int64}}\n"
      "  numbers: {{shape: [batch, 3]}}\n"
      "  classes: {{shape: [batch], dtype: int64}}\n"
      "layers:\n"
      "- linear: {{name: stem, from: x, features: 6}}\n"
      "{}"
      "- flatten\n"
      "- linear: {{name: head, features: 3}}\n"
      "{}"
      "loss:\n"
      "- {}",
      row.name, example->input, row.is_loss ? std::string_view() : example->lines, example->before,
      row.is_loss ? example->lines : "mse: {from: [head, numbers]}\n");
}

}  // namespace stowage
