#include "estimator/huggingface/fragments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stowage {

namespace {

std::string from_part(std::string_view from) {
  return from.empty() ? std::string() : fmt::format("from: {}, ", from);
}

std::string axes_line(std::string_view name) {
  return fmt::format("transpose: {{name: {}, axes: [0, 2, 1, 3]}}", name);
}

std::string number(double value) { return fmt::format("{:.17g}", value); }

}  // namespace

std::string linear_line(std::string_view name, std::string_view from, std::int64_t features,
                        bool bias) {
  return fmt::format("linear: {{name: {}, {}features: {}{}}}", name, from_part(from), features,
                     bias ? "" : ", bias: false");
}

Lines split_heads(std::string_view name, std::int64_t count, std::int64_t width,
                  std::string_view length) {
  return {fmt::format("reshape: {{name: {}_view, shape: [batch, {}, {}, {}]}}", name, length, count,
                      width),
          axes_line(name)};
}

Lines joined_heads(std::int64_t features, std::string_view length) {
  return {axes_line("rows"),
          fmt::format("reshape: {{name: joined, shape: [batch, {}, {}]}}", length, features)};
}

Lines activation_lines(Network& network, std::string_view key, std::string_view name,
                       std::string_view from) {
  const std::string act = network.config.word(key);
  const std::string source = from_part(from);
  const auto one = [&](std::string_view op, std::string_view attributes = {}) -> Lines {
    return {fmt::format("{}: {{{}name: {}{}}}", op, source, name, attributes)};
  };
  if (act == "gelu" || act == "gelu_python") return one("gelu");
  if (act == "gelu_new") return one("gelu", ", approximate: tanh_composite");
  if (act == "gelu_pytorch_tanh" || act == "gelu_python_tanh") {
    return one("gelu", ", approximate: tanh");
  }
  if (act == "silu" || act == "swish") return one("silu");
  for (const std::string_view plain :
       {"relu", "relu6", "tanh", "sigmoid", "mish", "leaky_relu", "hardswish"}) {
    if (act == plain) return one(plain);
  }
  if (act == "relu2" || act == "relu_squared") {
    return {fmt::format("relu: {{{}name: {}_relu}}", source, name),
            fmt::format("pow: {{name: {}, exponent: 2}}", name)};
  }
  if (act == "linear") return one("identity");
  if (act == "quick_gelu") {
    // x * sigmoid(1.702 x); without `from` the input is the block's or the layer before, which
    // needs a name here.
    return {fmt::format("identity: {{{}name: {}_input}}", source, name),
            fmt::format("scale: {{name: {}_scaled, factor: 1.702}}", name),
            fmt::format("sigmoid: {{name: {}_gate}}", name),
            fmt::format("mul: {{name: {}, from: [{}_input, {}_gate]}}", name, name, name)};
  }
  network.config.wrong(key, fmt::format("activation '{}' is not one of those that are read", act),
                       "read are gelu, gelu_new, gelu_pytorch_tanh, quick_gelu, relu, relu2, silu, "
                       "tanh, sigmoid, mish, relu6, leaky_relu, hardswish and linear");
  return one("identity");
}

namespace {

Lines repeated_heads(const AttentionCall& call, const std::string& from, std::string_view name) {
  const std::int64_t each = call.heads / call.key_heads;
  if (each == 1) return {fmt::format("identity: {{name: {}, from: {}}}", name, from)};
  return {fmt::format("reshape: {{name: {}_groups, from: {}, shape: [batch, {}, 1, {}, {}]}}", name,
                      from, call.key_heads, call.keys, call.width),
          fmt::format("expand: {{name: {}_wide, shape: [batch, {}, {}, {}, {}]}}", name,
                      call.key_heads, each, call.keys, call.width),
          fmt::format("reshape: {{name: {}, shape: [batch, {}, {}, {}]}}", name, call.heads,
                      call.keys, call.width)};
}

/// Whether the type's eager attention computes the softmax in the format of the scores.
bool has_plain_softmax(std::string_view type) {
  for (const std::string_view plain :
       {"gpt2", "bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "bart",
        "whisper", "t5", "falcon"}) {
    if (type == plain) return true;
  }
  return false;
}

/// The version since which a type's layers have the weights of eager attention in a variable, by
/// the wheels of 4.48, 4.53, 4.57, 5.0, 5.6, 5.10, 5.14, 5.15 and 5.17. Before, they return them
/// only where they are asked for.
LibraryVersion returned_since(std::string_view type) {
  struct Row {
    std::string_view type;
    LibraryVersion since;
  };
  constexpr std::array rows{Row{"gpt2", {4, 53}},
                            Row{"gpt_neox", {4, 53}},
                            Row{"bart", {4, 53}},
                            Row{"whisper", {4, 53}},
                            Row{"bert", {4, 57}},
                            Row{"roberta", {4, 57}},
                            Row{"xlm-roberta", {4, 57}},
                            Row{"camembert", {4, 57}},
                            Row{"electra", {4, 57}},
                            Row{"falcon", {4, 57}},
                            Row{"distilbert", {5, 0}},
                            Row{"stablelm", {5, 0}},
                            Row{"clip", {5, 0}},
                            Row{"clip_text_model", {5, 0}},
                            Row{"clip_vision_model", {5, 0}},
                            Row{"opt", {5, 6}},
                            Row{"vit", {5, 10}},
                            Row{"swin", {5, 10}},
                            Row{"t5", {5, 15}}};
  const auto row = std::ranges::find(rows, type, &Row::type);
  return row == rows.end() ? LibraryVersion{4, 48} : row->since;
}

}  // namespace

std::string_view held_weights(const Network& network) {
  return network.version >= returned_since(network.config.type()) ? "layer" : "module";
}

namespace {

double scale_of(const AttentionCall& call) {
  return call.scale > 0 ? call.scale : 1 / std::sqrt(static_cast<double>(call.width));
}

// eager_attention_forward: two products, and each operation between them as a separate layer.
Lines eager_lines(const AttentionCall& call) {
  Lines lines = repeated_heads(call, call.key, "keys_repeated");
  const auto add = [&](std::string line) { lines.push_back(std::move(line)); };
  for (std::string& line : repeated_heads(call, call.value, "values_repeated"))
    add(std::move(line));
  add(fmt::format("matmul: {{name: scores, from: [{}, keys_repeated], transpose_b: true}}",
                  call.query));
  add(fmt::format("scale: {{name: scaled, factor: {}}}", number(scale_of(call))));
  if (call.softcap > 0) {
    add(fmt::format("scale: {{name: lowered, factor: {}}}", number(1 / call.softcap)));
    add("tanh: {name: capped}");
    add(fmt::format("scale: {{name: raised, factor: {}}}", number(call.softcap)));
  }
  if (!call.mask.empty()) {
    add(fmt::format("add: {{name: masked, from: [{}, {}]}}", call.softcap > 0 ? "raised" : "scaled",
                    call.mask));
  }
  if (!call.sinks.empty()) {
    add(fmt::format("sink_softmax: {{name: weights, from: [masked, {}], held: {}}}", call.sinks,
                    call.held));
  } else {
    add(fmt::format("softmax: {{name: weights{}, held: {}}}",
                    call.wide_softmax ? ", upcast: true" : "", call.held));
  }
  if (call.dropout > 0) add(fmt::format("dropout: {{name: kept, p: {}}}", call.dropout));
  add(fmt::format("matmul: {{name: attention, from: [{}, values_repeated]}}",
                  call.dropout > 0 ? "kept" : "weights"));
  return lines;
}

Lines fused_lines(const AttentionCall& call) {
  std::string rest;
  if (call.dropout > 0) rest += fmt::format(", dropout: {}", call.dropout);
  if (call.scale > 0) rest += fmt::format(", scale: {}", number(call.scale));
  if (!call.window.empty()) rest += fmt::format(", window: {}", call.window);
  if (call.wide_softmax) rest += ", written_out: wide";
  const bool grouped = call.heads != call.key_heads;
  if (grouped && call.repeats_for_one_query) rest += ", one_query: repeat";
  const std::string inputs = fmt::format("{}, {}, {}", call.query, call.key, call.value);
  // transformers lets PyTorch handle grouped heads if there is no mask and heads are not wide.
  constexpr std::int64_t widest_grouped = 256;
  const auto line = [&](std::string_view name, std::string_view when, const std::string& from,
                        bool causal, bool repeats) {
    return fmt::format("scaled_dot_product_attention: {{name: {}{}, from: [{}]{}{}{}}}", name, when,
                       from, causal ? ", causal: true" : "",
                       grouped && repeats ? ", grouped: repeat" : "", rest);
  };
  const bool wide = call.width > widest_grouped;
  if (call.masked.empty()) return {line("attention", "", inputs, call.causal, wide)};
  // If the first attention is left out, the name `unmasked` refers to its query.
  return {line("unmasked", fmt::format(", when: not ({})", call.masked), inputs, call.causal, wide),
          line("attention", fmt::format(", when: {}", call.masked),
               fmt::format("unmasked, {}, {}, {}", call.key, call.value, call.mask), false, true)};
}

}  // namespace

Lines attention_lines(const Network& network, const AttentionCall& given) {
  AttentionCall call = given;
  call.wide_softmax = !has_plain_softmax(network.config.type());
  call.held = held_weights(network);
  constexpr LibraryVersion packs_one_query{5, 23};  // integrations/sdpa_attention.py, pack_gqa
  call.repeats_for_one_query = network.version < packs_one_query;
  Lines lines =
      network.attention == AttentionFunction::eager ? eager_lines(call) : fused_lines(call);
  for (std::string& line : joined_heads(call.heads * call.width, call.queries)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

Lines causal_mask_lines(const Network& network, std::int64_t window) {
  if (network.attention == AttentionFunction::eager) {
    Lines lines{fmt::format("constant: {{name: {}, shape: [batch, 1, seq, seq], causal: true}}",
                            full_mask)};
    if (window > 0) {
      lines.push_back(
          fmt::format("constant: {{name: {}, shape: [batch, 1, seq, seq], causal: true, window: "
                      "{}}}",
                      window_mask, window));
    }
    return lines;
  }
  if (window == 0) return {};
  // One mask of booleans, seen by each sample.
  return {fmt::format("constant: {{name: {}_numbers, when: seq >= {}, shape: [1, 1, seq, seq], "
                      "dtype: bool}}",
                      window_mask, window),
          fmt::format("expand: {{name: {}, when: seq >= {}, shape: [batch, 1, seq, seq]}}",
                      window_mask, window)};
}

std::string chosen_layers(const std::vector<bool>& chosen) {
  const auto count = std::ranges::count(chosen, true);
  if (count == 0) return "false";
  if (count == static_cast<std::ptrdiff_t>(chosen.size())) return "true";
  for (std::size_t period = 2; period <= std::min<std::size_t>(chosen.size(), 12); ++period) {
    const auto repeats = [&] {
      for (std::size_t i = period; i < chosen.size(); ++i) {
        if (chosen[i] != chosen[i - period]) return false;
      }
      return true;
    };
    if (!repeats()) continue;
    std::string text;
    for (std::size_t i = 0; i < period; ++i) {
      if (!chosen[i]) continue;
      text += fmt::format("{}index % {} == {}", text.empty() ? "" : " or ", period, i);
    }
    return text;
  }
  std::string text;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) text += fmt::format("{}index == {}", text.empty() ? "" : " or ", i);
  }
  return text;
}

}  // namespace stowage
