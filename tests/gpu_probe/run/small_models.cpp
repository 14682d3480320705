#include "tests/gpu_probe/run/small_models.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "estimator/model/load_model.hpp"
#include "estimator/rewrite/lower_step.hpp"

namespace stowage::test {

const char* const mlp = R"(
model: mlp
inputs:
  x: {shape: [batch, 12]}
  target: {shape: [batch, 3]}
layers:
  - linear: {name: fc1, from: x, features: 16}
  - relu
  - linear: {name: fc2, features: 8}
  - gelu
  - linear: {name: fc3, features: 3}
loss:
  mse: {from: [fc3, target]}
)";

const char* const small_cnn = R"(
model: small-cnn
inputs:
  image: {shape: [batch, 1, 12, 12]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv1, from: image, channels: 4, kernel: 3}
  - relu
  - max_pool2d: {name: pool1, kernel: 2}
  - conv2d: {name: conv2, channels: 6, kernel: 3, padding: same}
  - relu
  - avg_pool2d: {name: pool2, kernel: 2}
  - flatten
  - linear: {name: fc, features: 5}
loss:
  cross_entropy: {from: [fc, label]}
)";

const char* const small_resnet = R"(
model: small-resnet
inputs:
  image: {shape: [batch, 3, 16, 16]}
  label: {shape: [batch], dtype: int64}
defaults:
  conv2d: {bias: false}
blocks:
  basic:
    arguments: {channels: , stride: 1}
    layers:
      - conv2d: {name: conv1, channels: channels, kernel: 3, stride: stride, padding: 1}
      - batch_norm: {name: bn1}
      - relu: {in_place: true}
      - conv2d: {name: conv2, channels: channels, kernel: 3, padding: 1}
      - batch_norm: {name: bn2}
      - conv2d: {name: downsample, from: input, when: stride != 1, channels: channels, kernel: 1, stride: stride}
      - batch_norm: {name: shortcut, when: stride != 1}
      - add: {from: [bn2, shortcut]}
      - relu: {in_place: true}
layers:
  - conv2d: {name: conv1, from: image, channels: 8, kernel: 3, padding: 1}
  - batch_norm: {name: bn1}
  - relu: {in_place: true}
  - max_pool2d: {name: maxpool, kernel: 3, stride: 2, padding: 1}
  - basic: {name: layer1, channels: 8}
  - basic: {name: layer2, channels: 12, stride: 2}
  - adaptive_avg_pool2d: {name: avgpool, size: 1}
  - flatten
  - linear: {name: fc, features: 6}
loss:
  cross_entropy: {from: [fc, label]}
)";

const char* const small_gpt2 = R"(
model: small-gpt2
arguments: {hidden: 16, heads: 2, vocab: 23}
symbols: {seq: 6}
inputs:
  tokens: {shape: [batch, seq], dtype: int64}
  labels: {shape: [batch, seq], dtype: int64}
blocks:
  split_heads:
    layers:
      - reshape: {shape: [batch, seq, heads, hidden / heads]}
      - transpose: {axes: [0, 2, 1, 3]}
  transformer:
    layers:
      - layer_norm: {name: ln_1}
      - linear: {name: c_attn, features: 3 * hidden}
      - split: {name: qkv, parts: 3, axis: 2}
      - split_heads: {name: query, from: qkv.0}
      - split_heads: {name: key, from: qkv.1}
      - split_heads: {name: value, from: qkv.2}
      - scaled_dot_product_attention: {name: attention, from: [query, key, value], causal: true, dropout: 0.1}
      - transpose: {axes: [0, 2, 1, 3]}
      - reshape: {shape: [batch, seq, hidden]}
      - linear: {name: c_proj, features: hidden}
      - dropout: {name: resid_dropout, p: 0.1}
      - add: {name: attended, from: [resid_dropout, input]}
      - layer_norm: {name: ln_2}
      - linear: {name: mlp_c_fc, features: 4 * hidden}
      - gelu: {name: act, approximate: tanh_composite}
      - linear: {name: mlp_c_proj, features: hidden}
      - dropout: {name: mlp_dropout, p: 0.1}
      - add: {from: [attended, mlp_dropout]}
layers:
  - embedding: {name: wte, from: tokens, count: vocab, features: hidden}
  - positions: {length: seq}
  - embedding: {name: wpe, count: 8, features: hidden}
  - add: {name: embedded, from: [wte, wpe]}
  - dropout: {name: drop, p: 0.1}
  - transformer: {name: h, repeat: 2}
  - layer_norm: {name: ln_f}
  - linear: {name: lm_head, features: vocab, bias: false, tie: {weight: wte.weight}}
  - reshape: {name: logits, shape: [batch * seq, vocab]}
  - reshape: {name: targets, from: labels, shape: [batch * seq]}
loss:
  cross_entropy: {from: [logits, targets]}
)";

const char* const small_unet = R"(
model: small-unet
inputs:
  image: {shape: [batch, 2, 8, 8]}
  label: {shape: [batch, 8, 8], dtype: int64}
layers:
  - conv2d: {name: down1, from: image, channels: 4, kernel: 3, padding: 1}
  - batch_norm
  - relu: {name: level1}
  - max_pool2d: {name: pool, kernel: 2}
  - conv2d: {name: down2, channels: 8, kernel: 3, padding: 1}
  - relu
  - conv_transpose2d: {name: up, channels: 4, kernel: 2, stride: 2}
  - concat: {name: joined, from: [level1, up], axis: 1}
  - conv2d: {name: merge, channels: 4, kernel: 3, padding: 1}
  - relu
  - conv2d: {name: classes, channels: 3, kernel: 1}
loss:
  cross_entropy: {from: [classes, label]}
)";

const char* const small_lstm = R"(
model: small-lstm
symbols: {seq: 5}
inputs:
  tokens: {shape: [batch, seq], dtype: int64}
  labels: {shape: [batch, seq], dtype: int64}
layers:
  - embedding: {name: words, from: tokens, count: 11, features: 8}
  - lstm: {name: rnn, hidden: 6, layers: 2, dropout: 0.2, batch_first: true}
  - linear: {name: head, features: 11}
  - reshape: {name: logits, shape: [batch * seq, 11]}
  - reshape: {name: targets, from: labels, shape: [batch * seq]}
loss:
  cross_entropy: {from: [logits, targets]}
)";

StepGraph step_of(const char* text, const LoweringSettings& settings, Precision precision) {
  const auto model = load_model(std::make_shared<SourceText>(SourceText{"<test>", text}),
                                ModelOptions{.precision = precision});
  INFO(std::string(text));
  const std::string mistakes = model ? "" : render(model.error());
  REQUIRE(mistakes == "");
  auto graph = lower_step(*model, settings);
  const std::string refusals = graph ? "" : render(graph.error());
  REQUIRE(refusals == "");
  return std::move(*graph);
}

LoweringSettings sgd_momentum(int micro_batches) {
  return {.kernels = KernelSet::stowage,
          .mode = Mode::train,
          .optimizer = {.name = "sgd", .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 1e-2},
          .micro_batches = micro_batches,
          .in_place = true};
}

LoweringSettings adamw(int micro_batches) {
  return {.kernels = KernelSet::stowage,
          .mode = Mode::train,
          .optimizer = {.name = "adamw", .learning_rate = 0.01, .weight_decay = 0.1},
          .micro_batches = micro_batches,
          .in_place = true};
}

}  // namespace stowage::test
