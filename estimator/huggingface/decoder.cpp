#include "estimator/huggingface/decoder.hpp"

#include <fmt/format.h>

#include "estimator/huggingface/fragments.hpp"

namespace stowage {

namespace {

bool has_eager(const Network& network) { return network.attention == AttentionFunction::eager; }

/// Whether some layers have the window, and some have not.
bool mixes_windows(const DecoderShape& shape) {
  bool some = false, all = true;
  for (const bool slides : shape.sliding) {
    some = some || slides;
    all = all && slides;
  }
  return some && !all;
}

// Queries, keys and values: `query`, `key`, `value`, [batch, heads, seq, width].

/// The block `q_layernorm_per_head`: a norm for each head.
void write_norms_of_heads(Network& network, const DecoderShape& shape, std::string_view norm,
                          std::int64_t heads) {
  LayerLines& layers = network.text.block(fmt::format("{}_per_head", norm));
  layers.add(fmt::format("split: {{name: heads, from: input, parts: {}, axis: 1}}", heads));
  std::string normed;
  for (std::int64_t i = 0; i < heads; ++i) {
    layers.add(fmt::format("layer_norm: {{name: norms_{}, from: heads.{}, eps: {}, bias: false}}",
                           i, i, shape.eps));
    normed += fmt::format("{}norms_{}", i == 0 ? "" : ", ", i);
  }
  layers.add(fmt::format("concat: {{name: whole, from: [{}], axis: 1}}", normed));
}

Lines head_norm_lines(const DecoderShape& shape, std::string_view norm, std::string_view heads) {
  if (shape.head_norm == DecoderShape::HeadNorm::each_head) {
    return {fmt::format("{}_per_head: {{name: {}, from: {}}}", norm, norm, heads)};
  }
  return {norm_line(shape, norm, heads)};
}

void add_projection(LayerLines& layers, const DecoderShape& shape, std::string_view name,
                    std::string_view letter, std::int64_t count) {
  const std::string projection = fmt::format("{}_proj", letter);
  layers.add(linear_line(projection, "input.0", count * shape.width, shape.query_bias));
  const std::string norm = fmt::format(
      "{}_{}", letter, shape.head_norm == DecoderShape::HeadNorm::each_head ? "layernorm" : "norm");
  const bool normed = letter != "v" && shape.head_norm != DecoderShape::HeadNorm::none;
  if (!normed) return layers.add(split_heads(name, count, shape.width));
  if (shape.head_norm == DecoderShape::HeadNorm::before_transpose) {
    layers.add(fmt::format("reshape: {{name: {}_view, shape: [batch, seq, {}, {}]}}", name, count,
                           shape.width));
    layers.add(head_norm_lines(shape, norm, fmt::format("{}_view", name)));
    layers.add(fmt::format("transpose: {{name: {}, axes: [0, 2, 1, 3]}}", name));
    return;
  }
  layers.add(split_heads(fmt::format("{}_heads", name), count, shape.width));
}

// Norms of heads that come behind the transposition, once all projections are made.
void add_late_head_norms(LayerLines& layers, const DecoderShape& shape) {
  using HeadNorm = DecoderShape::HeadNorm;
  if (shape.head_norm != HeadNorm::after_transpose && shape.head_norm != HeadNorm::each_head) {
    return;
  }
  const std::string_view suffix = shape.head_norm == HeadNorm::each_head ? "layernorm" : "norm";
  for (const auto& [letter, name] : {std::pair{"q", "query"}, std::pair{"k", "key"}}) {
    layers.add(head_norm_lines(shape, fmt::format("{}_{}", letter, suffix),
                               fmt::format("{}_heads", name)));
    layers.add(fmt::format("identity: {{name: {}}}", name));
  }
}

void add_fused_projection(LayerLines& layers, const DecoderShape& shape) {
  const std::int64_t own = shape.heads * shape.width, other = shape.key_heads * shape.width;
  layers.add(linear_line("qkv_proj", "input.0", own + 2 * other, shape.query_bias));
  layers.add(fmt::format("split: {{name: qkv, sizes: [{}, {}, {}], axis: 2}}", own, other, other));
  for (const auto& [name, part, count] :
       {std::tuple{"query", 0, shape.heads}, std::tuple{"key", 1, shape.key_heads},
        std::tuple{"value", 2, shape.key_heads}}) {
    layers.add(fmt::format("reshape: {{name: {}_view, from: qkv.{}, shape: [batch, seq, {}, {}]}}",
                           name, part, count, shape.width));
    layers.add(fmt::format("transpose: {{name: {}, axes: [0, 2, 1, 3]}}", name));
  }
}

/// Adds the rotation of `query` and `key`; returns the names of the rotated ones.
std::pair<std::string, std::string> add_rotation(LayerLines& layers, const DecoderShape& shape) {
  using Rotation = DecoderShape::Rotation;
  const std::string tables = "input.1, input.2";
  if (shape.rotation == Rotation::whole) {
    layers.add(fmt::format("rotary: {{name: turned, from: [query, key, {}]}}", tables));
    return {"turned.0", "turned.1"};
  }
  const bool rest = shape.rotated < shape.width;
  if (!rest && shape.rotation == Rotation::inside) {
    // All features are rotated, and the result is still copied.
    layers.add(fmt::format("rotary: {{name: turned, from: [query, key, {}]}}", tables));
    layers.add("contiguous: {name: whole_query, from: turned.0}");
    layers.add("contiguous: {name: whole_key, from: turned.1}");
    return {"whole_query", "whole_key"};
  }
  for (const std::string_view name : {"query", "key"}) {
    layers.add(fmt::format("slice: {{name: {}_rot, from: {}, axis: 3, length: {}}}", name, name,
                           shape.rotated));
    layers.add(fmt::format("slice: {{name: {}_pass, from: {}, axis: 3, start: {}}}", name, name,
                           shape.rotated));
  }
  layers.add(fmt::format("rotary: {{name: turned, from: [query_rot, key_rot, {}]}}", tables));
  layers.add("concat: {name: whole_query, from: [turned.0, query_pass], axis: 3}");
  layers.add("concat: {name: whole_key, from: [turned.1, key_pass], axis: 3}");
  return {"whole_query", "whole_key"};
}

// Inputs: the normed states, cosines, sines, and the masks (of all layers; of sliding ones).
void write_attention(Network& network, const DecoderShape& shape) {
  LayerLines& layers = network.text.block("self_attn");
  if (shape.fused_projections) {
    add_fused_projection(layers, shape);
  } else {
    add_projection(layers, shape, "query", "q", shape.heads);
    add_projection(layers, shape, "key", "k", shape.key_heads);
    add_projection(layers, shape, "value", "v", shape.key_heads);
    add_late_head_norms(layers, shape);
  }
  const auto [query, key] = add_rotation(layers, shape);
  AttentionCall call{.query = query,
                     .key = key,
                     .value = "value",
                     .heads = shape.heads,
                     .key_heads = shape.key_heads,
                     .width = shape.width,
                     .causal = true,
                     .dropout = shape.attention_dropout,
                     .scale = shape.scale,
                     .softcap = shape.softcap};
  if (shape.sinks) {
    layers.add(fmt::format("parameter: {{name: sinks, shape: [{}]}}", shape.heads));
    call.sinks = "sinks";
  }
  if (has_eager(network)) {
    call.mask = "input.3";
  } else if (shape.window > 0) {
    call.mask = "input.3";
    call.masked = fmt::format("seq >= {}", shape.window);
    call.window = fmt::format("{}", shape.window);
    if (mixes_windows(shape)) {
      const std::string slides = chosen_layers(shape.sliding);
      call.masked += fmt::format(" and ({})", slides);
      call.window += fmt::format(" if {} else 0", slides);
    }
  }
  layers.add(attention_lines(network, call));
  layers.add(linear_line("o_proj", "", shape.hidden, shape.output_bias));
}

// Adds the dropout and the factor of the previous layer's result, which attention or the
// feed-forward network adds to the layer's input.
void add_dropped(LayerLines& layers, const DecoderShape& shape, std::string_view name) {
  if (shape.residual_factor) {
    layers.add(fmt::format("scale: {{name: {}, factor: {:.17g}}}", name, *shape.residual_factor));
  } else if (shape.hidden_dropout > 0) {
    layers.add(fmt::format("dropout: {{name: {}, p: {}}}", name, shape.hidden_dropout));
  } else {
    layers.add(fmt::format("identity: {{name: {}}}", name));
  }
}

void add_feed_forward(LayerLines& layers, std::string_view from) {
  layers.add(fmt::format("mlp: {{name: mlp, from: {}}}", from));
}

/// A line that chooses the second input if `condition` holds, else the first.
std::string chosen_input(std::string_view name, std::string_view first, std::string_view second,
                         std::string_view condition) {
  return fmt::format("second: {{name: {}, from: [{}, {}], when: {}}}", name, first, second,
                     condition);
}

/// Writes the block of a decoder layer: its inputs (those that differ between sliding and other
/// layers are chosen by the layer's index), attention, and the feed-forward network, in the order
/// of the family.
void write_layer(Network& network, const DecoderShape& shape) {
  LayerLines& layers = network.text.block("decoder_layer");
  layers.add(norm_line(shape, "input_layernorm", "input.0"));
  // Inputs: states, cosines, sines, [mask], [what sliding layers have in their stead].
  std::string inputs = "input_layernorm";
  const bool masks = has_eager(network) || shape.window > 0;
  const bool two_masks = has_eager(network) && mixes_windows(shape);
  int other = masks ? 4 : 3;
  const std::string slides = chosen_layers(shape.sliding);
  const auto pass = [&](std::string_view name, int usual, bool differs) {
    if (differs) {
      layers.add(chosen_input(name, fmt::format("input.{}", usual),
                              fmt::format("input.{}", other++), slides));
      inputs += fmt::format(", {}", name);
    } else {
      inputs += fmt::format(", input.{}", usual);
    }
  };
  pass("cosines", 1, shape.local_base.has_value());
  pass("sines", 2, shape.local_base.has_value());
  if (masks) pass("mask", 3, two_masks);
  layers.add(fmt::format("self_attn: {{name: self_attn, from: [{}]}}", inputs));
  if (shape.sandwich) {
    layers.add(norm_line(shape, "post_attention_layernorm", ""));
    layers.add("add: {name: attended, from: [input.0, post_attention_layernorm]}");
    layers.add(norm_line(shape, "pre_feedforward_layernorm", ""));
    add_feed_forward(layers, "pre_feedforward_layernorm");
    layers.add(norm_line(shape, "post_feedforward_layernorm", "mlp"));
    layers.add("add: {name: done, from: [attended, post_feedforward_layernorm]}");
    return;
  }
  if (shape.parallel) {
    add_feed_forward(layers, "input_layernorm");
    add_dropped(layers, shape, "fed");
    layers.add("add: {name: attended, from: [input.0, self_attn]}");
    layers.add("add: {name: done, from: [attended, fed]}");
    return;
  }
  if (shape.drops_attention || shape.residual_factor) {
    add_dropped(layers, shape, "attention_dropped");
    layers.add("add: {name: attended, from: [input.0, attention_dropped]}");
  } else {
    layers.add("add: {name: attended, from: [input.0, self_attn]}");
  }
  layers.add(norm_line(shape, "post_attention_layernorm", ""));
  add_feed_forward(layers, "post_attention_layernorm");
  add_dropped(layers, shape, "fed");
  layers.add("add: {name: done, from: [attended, fed]}");
}

/// Writes the block `decoder`: embedding with its scaling and dropout, masks, rotary tables, the
/// repeated layer with its inputs in write_layer()'s order, and the final norm.
void write_backbone(Network& network, const DecoderShape& shape) {
  LayerLines& layers = network.text.block("decoder");
  layers.add(fmt::format("embedding: {{name: embed_tokens, from: input, count: {}, features: {}}}",
                         shape.vocabulary, shape.hidden));
  std::string states = "embed_tokens";
  if (shape.scaled_embedding) {
    layers.add("constant: {name: embed_scale, shape: [], buffer: true}");
    layers.add("mul: {name: embedded, from: [embed_tokens, embed_scale]}");
    states = "embedded";
  }
  if (shape.embedding_factor) {
    layers.add(fmt::format("scale: {{name: embedded, factor: {:.17g}}}", *shape.embedding_factor));
    states = "embedded";
  }
  if (shape.embedding_dropout > 0) {
    layers.add(fmt::format("dropout: {{name: embedding_dropped, p: {}}}", shape.embedding_dropout));
    states = "embedding_dropped";
  }
  Lines masks = causal_mask_lines(network, shape.window);
  // If every layer has the window, transformers does not make the mask without it.
  if (has_eager(network) && shape.window > 0 && !mixes_windows(shape)) masks.erase(masks.begin());
  layers.add(masks);
  layers.add(
      fmt::format("rotary_table: {{name: rotary_emb, length: seq, features: {}, base: {}{}}}",
                  shape.rotated, shape.base, shape.single_angles ? ", repeated: false" : ""));
  std::string inputs = states + ", rotary_emb.0, rotary_emb.1";
  if (has_eager(network)) {
    inputs +=
        fmt::format(", {}", shape.window > 0 && !mixes_windows(shape) ? window_mask : full_mask);
  } else if (shape.window > 0) {
    inputs += fmt::format(", {}", window_mask);
  }
  if (shape.local_base) {
    layers.add(
        fmt::format("rotary_table: {{name: rotary_emb_local, length: seq, features: {}, base: "
                    "{}}}",
                    shape.rotated, *shape.local_base));
    inputs += ", rotary_emb_local.0, rotary_emb_local.1";
  }
  if (has_eager(network) && mixes_windows(shape)) inputs += fmt::format(", {}", window_mask);
  layers.add(
      fmt::format("decoder_layer: {{name: layers, from: [{}], repeat: layers, checkpoint: "
                  "checkpoint}}",
                  inputs));
  layers.add(norm_line(shape, "norm", ""));
}

}  // namespace

std::string norm_line(const DecoderShape& shape, std::string_view name, std::string_view from) {
  const std::string source = from.empty() ? "" : fmt::format("from: {}, ", from);
  switch (shape.norm) {
    case DecoderShape::Norm::layer:
      return fmt::format("layer_norm: {{name: {}, {}eps: {}}}", name, source, shape.eps);
    case DecoderShape::Norm::gemma:
      return fmt::format("rms_norm_plus_one: {{name: {}, {}eps: {}}}", name, source, shape.eps);
    case DecoderShape::Norm::wide:
      return fmt::format("rms_norm_wide: {{name: {}, {}eps: {}}}", name, source, shape.eps);
    case DecoderShape::Norm::rms:
      break;
  }
  return fmt::format("rms_norm: {{name: {}, {}eps: {}, implementation: composite}}", name, source,
                     shape.eps);
}

Lines feed_forward_lines(Network& network, const DecoderShape& shape, std::int64_t inner) {
  LayerLines layers;
  if (shape.fused_projections) {
    layers.add(linear_line("gate_up_proj", "input", 2 * inner, shape.mlp_bias));
    layers.add("split: {name: halves, parts: 2, axis: -1}");
    layers.add(activation_lines(network, shape.activation_key, "act_fn", "halves.0"));
    layers.add("mul: {name: gated, from: [halves.1, act_fn]}");
  } else if (!shape.gated) {
    layers.add(linear_line("c_fc", "input", inner, shape.mlp_bias));
    layers.add(activation_lines(network, shape.activation_key, "act"));
    layers.add(linear_line("c_proj", "", shape.hidden, shape.mlp_bias));
    return layers.lines();
  } else {
    layers.add(linear_line("gate_proj", "input", inner, shape.mlp_bias));
    layers.add(activation_lines(network, shape.activation_key, "act_fn"));
    layers.add(linear_line("up_proj", "input", inner, shape.mlp_bias));
    layers.add("mul: {name: gated, from: [act_fn, up_proj]}");
  }
  layers.add(linear_line("down_proj", "", shape.hidden, shape.mlp_bias));
  return layers.lines();
}

void write_decoder(Network& network, const DecoderShape& shape) {
  DescriptionText& text = network.text;
  text.argument("layers", fmt::format("{}", shape.layers));
  text.argument("checkpoint", "false");
  sequence_symbol(network, shape.positions, 2048);
  token_input(network);
  if (shape.local_base || mixes_windows(shape) || shape.experts) {
    text.block("second").add("identity: {name: chosen, from: input.1}");
  }
  if (shape.head_norm == DecoderShape::HeadNorm::each_head) {
    write_norms_of_heads(network, shape, "q_layernorm", shape.heads);
    write_norms_of_heads(network, shape, "k_layernorm", shape.key_heads);
  }
  write_attention(network, shape);
  if (shape.experts) {
    write_experts(network, shape);
  } else {
    text.block("mlp").add(feed_forward_lines(network, shape, shape.inner));
  }
  write_layer(network, shape);
  write_backbone(network, shape);
  text.layers().add("decoder: {name: model, from: tokens}");
  if (network.head == Head::none) return;
  if (network.head == Head::causal_lm) {
    causal_lm_head(network, "model", "lm_head", shape.vocabulary, false,
                   shape.tied ? "model.embed_tokens.weight" : "",
                   {.softcap = shape.final_softcap, .divisor = shape.logits_divisor});
  } else {
    last_token_head(network, "model", "score");
  }
}

}  // namespace stowage
