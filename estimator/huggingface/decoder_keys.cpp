// Reads the keys of the LLaMA-like families into a DecoderShape.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "estimator/huggingface/decoder.hpp"
#include "estimator/huggingface/rotary_keys.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_layers = 10'000;

constexpr double least_factor = 1e-12;

void refuse_both_directions(ConfigReader& config) {
  if (config.boolean("use_bidirectional_attention")) {
    config.wrong("use_bidirectional_attention", "attention in both directions is not read");
  }
}

/// Reads the keys that all of these families have.
DecoderShape read_common(Network& network) {
  ConfigReader& config = network.config;
  DecoderShape shape;
  shape.vocabulary = config.integer("vocab_size");
  shape.hidden = config.integer("hidden_size");
  shape.inner = config.integer("intermediate_size");
  shape.layers = config.integer("num_hidden_layers", 1, most_layers);
  shape.heads = config.integer("num_attention_heads");
  shape.key_heads = config.integer_or_null("num_key_value_heads").value_or(shape.heads);
  const auto width = config.integer_or_null("head_dim");
  if (!width && shape.hidden % shape.heads != 0) {
    config.wrong("num_attention_heads", fmt::format("a hidden size of {} does not divide into {} "
                                                    "heads",
                                                    shape.hidden, shape.heads));
  }
  shape.width = width.value_or(std::max<std::int64_t>(shape.hidden / shape.heads, 1));
  if (shape.heads % shape.key_heads != 0) {
    config.wrong("num_key_value_heads",
                 fmt::format("{} heads are not a multiple of {} key and value heads", shape.heads,
                             shape.key_heads));
    shape.key_heads = shape.heads;
  }
  shape.positions = config.integer("max_position_embeddings");
  shape.attention_dropout = config.probability("attention_dropout");
  shape.tied = config.boolean("tie_word_embeddings");
  const RotaryKeys rotary = read_rotary(config);
  shape.base = rotary.base;
  shape.local_base = rotary.local_base;
  shape.rotated = static_cast<std::int64_t>(static_cast<double>(shape.width) * rotary.part);
  if (shape.rotated < 2 || shape.rotated % 2 != 0) {
    config.wrong("head_dim", fmt::format("rotary positions turn pairs, and {} of a head's {} "
                                         "features are none",
                                         shape.rotated, shape.width));
    shape.rotated = 2;
  }
  return shape;
}

/// Reads the window, and which layers have it: those of `layer_types`, or else of `usual`.
void read_window(ConfigReader& config, DecoderShape& shape,
                 const std::function<bool(std::int64_t)>& usual) {
  const auto window = config.integer_or_null("sliding_window", 0);
  const std::vector<std::string> types = config.words("layer_types");
  shape.sliding.assign(static_cast<std::size_t>(shape.layers), false);
  if (!types.empty() && types.size() != shape.sliding.size()) {
    config.wrong("layer_types",
                 fmt::format("names {} layers, and there are {}", types.size(), shape.layers));
    return;
  }
  for (std::size_t i = 0; i < shape.sliding.size(); ++i) {
    if (types.empty()) {
      shape.sliding[i] = usual(static_cast<std::int64_t>(i));
    } else if (types[i] == "sliding_attention" || types[i] == "full_attention") {
      shape.sliding[i] = types[i] == "sliding_attention";
    } else {
      config.wrong("layer_types",
                   fmt::format("'{}' is no kind of attention that is read", types[i]),
                   "sliding_attention or full_attention");
      return;
    }
  }
  // Qwen's configurations take no layer to slide where there is no window.
  if (!window && types.empty() && config.type().starts_with("qwen")) {
    shape.sliding.assign(shape.sliding.size(), false);
  }
  const auto sliding = std::ranges::count(shape.sliding, true);
  if (sliding > 0) shape.window = window.value_or(0);
  // transformers then makes both masks, and finds no window for the second.
  if (shape.window == 0 && sliding > 0 && sliding < std::ssize(shape.sliding)) {
    config.wrong("sliding_window",
                 fmt::format("{} of {} layers have sliding attention, and there is no window",
                             sliding, shape.layers));
  }
}

/// Sets what all Gemma versions have in common.
DecoderShape read_every_gemma(Network& network) {
  ConfigReader& config = network.config;
  DecoderShape shape = read_common(network);
  shape.eps = config.real("rms_norm_eps");
  shape.norm = DecoderShape::Norm::gemma;
  shape.scaled_embedding = true;
  shape.query_bias = shape.output_bias = config.boolean("attention_bias");
  refuse_both_directions(config);
  return shape;
}

bool every_layer(std::int64_t) { return true; }

void read_experts(ConfigReader& config, DecoderShape& shape, std::string_view count_key) {
  ExpertsShape experts{.count = config.integer(count_key, 1, 65536)};
  experts.chosen = config.integer("num_experts_per_tok", 1, experts.count);
  experts.inner = shape.inner;
  experts.layers.assign(static_cast<std::size_t>(shape.layers), true);
  shape.experts = std::move(experts);
}

void read_sparse_layers(ConfigReader& config, ExpertsShape& experts) {
  const std::int64_t step = config.integer("decoder_sparse_step", 1, most_layers);
  for (std::size_t i = 0; i < experts.layers.size(); ++i) {
    experts.layers[i] = (static_cast<std::int64_t>(i) + 1) % step == 0;
  }
  for (const std::int64_t dense : config.integers("mlp_only_layers", 0)) {
    if (dense < static_cast<std::int64_t>(experts.layers.size())) {
      experts.layers[static_cast<std::size_t>(dense)] = false;
    }
  }
}

}  // namespace

DecoderShape read_llama(Network& network) {
  ConfigReader& config = network.config;
  DecoderShape shape = read_common(network);
  shape.eps = config.real("rms_norm_eps");
  if (config.type() == "llama") {
    shape.query_bias = shape.output_bias = config.boolean("attention_bias");
    shape.mlp_bias = config.boolean("mlp_bias");
    return shape;
  }
  read_window(config, shape, every_layer);  // mistral, mixtral
  if (config.type() == "mixtral") {
    read_experts(config, shape, "num_local_experts");
    if (config.real("router_jitter_noise") > 0) {
      config.wrong("router_jitter_noise", "noise before the router is not read");
    }
  }
  return shape;
}

DecoderShape read_qwen(Network& network) {
  ConfigReader& config = network.config;
  const std::string& type = config.type();
  DecoderShape shape = read_common(network);
  shape.eps = config.real("rms_norm_eps");
  if (type == "qwen2") shape.query_bias = true;
  if (type == "qwen2_moe") shape.query_bias = config.boolean("qkv_bias");
  if (type == "qwen3" || type == "qwen3_moe") {
    shape.query_bias = shape.output_bias = config.boolean("attention_bias");
    shape.head_norm = DecoderShape::HeadNorm::before_transpose;
  }
  if (config.boolean("use_sliding_window")) {
    const std::int64_t first =
        type == "qwen3_moe" ? 0 : config.integer_or_null("max_window_layers", 0).value_or(0);
    read_window(config, shape, [&](std::int64_t layer) {
      if (type == "qwen3_moe") return true;
      return type == "qwen2_moe" ? layer % 2 == 0 && layer < first : layer >= first;
    });
  }
  if (type != "qwen2_moe" && type != "qwen3_moe") return shape;
  read_experts(config, shape, "num_experts");
  shape.experts->inner = config.integer("moe_intermediate_size");
  shape.experts->normalized = config.boolean("norm_topk_prob");
  if (type == "qwen2_moe") {
    shape.experts->shared = config.integer("shared_expert_intermediate_size");
  }
  read_sparse_layers(config, *shape.experts);
  return shape;
}

DecoderShape read_gemma(Network& network) {
  ConfigReader& config = network.config;
  const bool third = config.type() == "gemma3_text";
  DecoderShape shape = read_every_gemma(network);
  shape.activation_key = "hidden_activation";
  shape.sandwich = true;
  shape.scale = 1 / std::sqrt(config.real("query_pre_attn_scalar", 1e-6));
  shape.final_softcap = config.real_or_null("final_logit_softcapping").value_or(0);
  shape.softcap = config.real_or_null("attn_logit_softcapping").value_or(0);
  if (third) shape.head_norm = DecoderShape::HeadNorm::after_transpose;
  std::int64_t pattern = third ? 6 : 2;
  if (third && config.written("sliding_window_pattern") != nullptr) {
    pattern = config.integer("sliding_window_pattern");
  }
  read_window(config, shape, [&](std::int64_t layer) {
    return third ? (layer + 1) % pattern != 0 : layer % 2 == 0;
  });
  return shape;
}

DecoderShape read_granite(Network& network) {
  ConfigReader& config = network.config;
  DecoderShape shape = read_common(network);
  shape.eps = config.real("rms_norm_eps");
  shape.query_bias = shape.output_bias = config.boolean("attention_bias");
  shape.mlp_bias = config.boolean("mlp_bias");
  shape.scale = config.real("attention_multiplier", least_factor);
  shape.embedding_factor = config.real("embedding_multiplier", least_factor);
  shape.residual_factor = config.real("residual_multiplier", least_factor);
  shape.logits_divisor = config.real("logits_scaling", least_factor);
  return shape;
}

DecoderShape read_starcoder2(Network& network) {
  ConfigReader& config = network.config;
  DecoderShape shape = read_common(network);
  shape.norm = DecoderShape::Norm::layer;
  shape.eps = config.real("norm_epsilon");
  shape.query_bias = shape.output_bias = shape.mlp_bias = config.boolean("use_bias");
  shape.gated = false;
  shape.drops_attention = true;
  shape.hidden_dropout = config.probability("residual_dropout");
  shape.embedding_dropout = config.probability("embedding_dropout");
  read_window(config, shape, every_layer);
  return shape;
}

DecoderShape read_first_gemma(Network& network) {
  DecoderShape shape = read_every_gemma(network);
  // Files of 4.38 have it beside `hidden_act`; the class reads either as the approximation of gelu.
  network.config.pass_over("hidden_activation");
  return shape;
}

DecoderShape read_phi3(Network& network) {
  ConfigReader& config = network.config;
  DecoderShape shape = read_common(network);
  shape.eps = config.real("rms_norm_eps");
  shape.hidden_dropout = config.probability("resid_pdrop");
  shape.fused_projections = shape.drops_attention = true;
  shape.rotation = DecoderShape::Rotation::inside;
  read_window(config, shape, every_layer);
  return shape;
}

DecoderShape read_gpt_oss(Network& network) {
  ConfigReader& config = network.config;
  DecoderShape shape = read_common(network);
  shape.eps = config.real("rms_norm_eps");
  shape.norm = DecoderShape::Norm::wide;
  shape.query_bias = shape.output_bias = config.boolean("attention_bias");
  shape.sinks = shape.single_angles = true;
  read_window(config, shape, [](std::int64_t layer) { return layer % 2 == 0; });
  read_experts(config, shape, "num_local_experts");
  shape.experts->clamped = true;
  shape.experts->limit = config.real("swiglu_limit");
  shape.experts->alpha = config.real("swiglu_alpha");
  // Of the published files: other names of keys that the class has.
  config.pass_over("experts_per_token");
  config.pass_over("initial_context_length");
  return shape;
}

DecoderShape read_stablelm(Network& network) {
  ConfigReader& config = network.config;
  DecoderShape shape = read_common(network);
  shape.norm = DecoderShape::Norm::layer;
  shape.eps = config.real("layer_norm_eps");
  shape.query_bias = config.boolean("use_qkv_bias");
  shape.hidden_dropout = config.probability("hidden_dropout");
  shape.parallel = config.boolean("use_parallel_residual");
  shape.rotation = DecoderShape::Rotation::outside;
  if (config.boolean("qk_layernorm")) shape.head_norm = DecoderShape::HeadNorm::each_head;
  return shape;
}

}  // namespace stowage
