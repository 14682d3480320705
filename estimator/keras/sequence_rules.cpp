// Recurrent layers, TimeDistributed, attention.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "estimator/keras/keras_translation.hpp"

namespace stowage {

namespace {

using Integers = std::vector<std::int64_t>;

std::optional<std::string> row_of_cell(std::string_view class_name) {
  if (class_name == "LSTM" || class_name == "CuDNNLSTM") return "lstm";
  if (class_name == "GRU" || class_name == "CuDNNGRU") return "gru";
  if (class_name == "SimpleRNN") return "rnn";
  return std::nullopt;
}

// Keras has one bias per gate and the row has two, so the second is tied to the first. A GRU with
// reset_after has two.
void name_weights(KerasTranslation& translation, const KerasCall& call, LayerOutput made,
                  bool has_two_offsets) {
  ImportedLayer& layer = translation.layers().at(made.layer);
  for (const ParameterSpec& spec : layer.parameters) {
    const std::string name(spec.name);
    const bool reverse = name.ends_with("_reverse");
    const std::string prefix = fmt::format("{}/{}", call.name, reverse ? "backward/" : "");
    if (name.starts_with("weight_ih")) layer.parameter_names.emplace_back(name, prefix + "kernel");
    if (name.starts_with("weight_hh")) {
      layer.parameter_names.emplace_back(name, prefix + "recurrent_kernel");
    }
    if (name.starts_with("bias_ih")) layer.parameter_names.emplace_back(name, prefix + "bias");
    if (!name.starts_with("bias_hh")) continue;
    const std::string recurrent = prefix + (has_two_offsets ? "recurrent_bias" : "bias");
    layer.parameter_names.emplace_back(name, recurrent);
  }
}

// [directions, batch, hidden] as [batch, directions * hidden].
std::optional<LayerOutput> last_states(KerasTranslation& translation, const KerasCall& call,
                                       LayerOutput states) {
  const Shape s = translation.layers().type(states).shape;
  if (s.size() != 3) return std::nullopt;
  std::optional<LayerOutput> made = states;
  if (s[0] != Affine(1)) {
    made = translation.add(call, "transpose", {states}, {{"axes", Integers{1, 0, 2}}});
  }
  if (!made) return made;
  return translation.add(call, "reshape", {*made}, {{"shape", Shape{s[1], s[0] * s[2]}}});
}

/// Adds the row of the cell, names its weights, and adds the outputs that the layer returns: all
/// positions or the last state, and the states if they are asked for.
bool translate_cell(KerasTranslation& translation, KerasCall& call, const KerasConfig& config,
                    std::string_view class_name, bool is_bidirectional) {
  const auto row = row_of_cell(class_name);
  const auto units = config.integer("units");
  if (!row || !units || call.inputs.empty()) {
    translation.refuse(fmt::format("a cell '{}' is not expressed", class_name));
    return false;
  }
  const std::string activation = config.class_name("activation");
  const bool is_plain =
      activation.empty() || activation == "tanh" || (*row == "rnn" && activation == "relu");
  if (!is_plain) {
    translation.refuse(fmt::format("its activation is '{}'", activation));
    return false;
  }
  const auto x = translation.channels_last(call, call.inputs[0]);
  if (!x) return false;
  Attributes::Entries given{{"hidden", *units},
                            {"bidirectional", is_bidirectional},
                            {"batch_first", true},
                            {"bias", config.flag("use_bias", true)},
                            {"states", true}};
  if (*row == "rnn" && activation == "relu")
    given.emplace_back("nonlinearity", std::string("relu"));
  const auto made = translation.add(call, *row, {*x}, std::move(given));
  if (!made) return false;
  name_weights(translation, call, *made, *row == "gru" && config.flag("reset_after", true));
  if (config.flag("return_sequences", false)) {
    translation.add_output(call, *made);
  } else {
    const auto state = last_states(translation, call, {made->layer, 1});
    if (!state) return false;
    translation.add_output(call, *state);
  }
  if (!config.flag("return_state", false) || is_bidirectional) return true;
  const auto outputs = static_cast<int>(translation.layers().at(made->layer).outputs.size());
  for (int i = 1; i < outputs; ++i) {
    const auto state = last_states(translation, call, {made->layer, i});
    if (!state) return false;
    translation.add_output(call, *state);
  }
  return true;
}

bool translate_recurrent(KerasTranslation& translation, KerasCall& call) {
  if (call.config.flag("go_backwards", false)) {
    translation.refuse("a layer that runs backwards alone is not expressed");
    return false;
  }
  return translate_cell(translation, call, call.config, call.class_name, false);
}

// Both directions concatenated, or merged by sum, product or mean.
bool translate_bidirectional(KerasTranslation& translation, KerasCall& call) {
  const KerasConfig inner = call.config.at("layer");
  if (!translate_cell(translation, call, inner.at("config"), inner.text("class_name"), true)) {
    return false;
  }
  const std::string mode = call.config.text("merge_mode", "concat");
  if (mode == "concat") return true;
  const std::string row = mode == "sum" || mode == "ave" ? "add" : mode == "mul" ? "mul" : "";
  if (row.empty()) {
    translation.refuse("directions that are not merged are not expressed");
    return false;
  }
  const KerasTensor both = call.outputs.front();
  const auto axis = static_cast<std::int64_t>(both.shape.size() - 1);
  const auto parts =
      translation.add(call, "split", {both.layer}, {{"parts", std::int64_t{2}}, {"axis", axis}});
  auto made = parts ? translation.add(call, row, {{parts->layer, 0}, {parts->layer, 1}}) : parts;
  if (made && mode == "ave") made = translation.add(call, "scale", {*made}, {{"factor", 0.5}});
  if (!made) return false;
  call.outputs.clear();
  translation.add_output(call, *made);
  return true;
}

// Applies the inner layer to all positions at once, as if they were samples.
bool translate_distributed(KerasTranslation& translation, KerasCall& call) {
  const KerasConfig inner = call.config.at("layer");
  const KerasRule* rule = find_keras_rule(inner.text("class_name"));
  const Shape& s = call.inputs[0].shape;
  if (rule == nullptr || rule->translate == translate_distributed || s.size() < 3) {
    translation.refuse(
        fmt::format("the layer '{}' in it is not expressed", inner.text("class_name")));
    return false;
  }
  const auto x = translation.channels_last(call, call.inputs[0]);
  if (!x) return false;
  Shape joined{s[0] * s[1]};
  for (std::size_t i = 2; i < s.size(); ++i) joined.push_back(s[i]);
  const auto from = translation.add(call, "reshape", {*x}, {{"shape", joined}});
  if (!from) return false;
  KerasCall one{.class_name = inner.text("class_name"),
                .name = call.name,
                .config = inner.at("config"),
                .keywords = KerasConfig(),
                .inputs = {{*from, joined}},
                .keras = call.keras};
  if (!rule->translate(translation, one) || one.outputs.empty()) return false;
  const auto y = translation.channels_last(call, one.outputs[0]);
  if (!y) return false;
  Shape apart{s[0], s[1]};
  for (std::size_t i = 1; i < one.outputs[0].shape.size(); ++i) {
    apart.push_back(one.outputs[0].shape[i]);
  }
  const auto made = translation.add(call, "reshape", {*y}, {{"shape", apart}});
  if (made) translation.add_output(call, *made);
  return made.has_value();
}

// [batch, positions, features] as [batch, heads, positions, features / heads].
std::optional<LayerOutput> apart_in_heads(KerasTranslation& translation, const KerasCall& call,
                                          LayerOutput from, std::int64_t heads) {
  const Shape s = translation.layers().type(from).shape;
  if (s.size() != 3 || !divides(Affine(heads), s[2])) return std::nullopt;
  const auto apart =
      translation.add(call, "reshape", {from},
                      {{"shape", Shape{s[0], s[1], heads, quotient(s[2], Affine(heads))}}});
  if (!apart) return apart;
  return translation.add(call, "transpose", {*apart}, {{"axes", Integers{0, 2, 1, 3}}});
}

// Attention as products and a softmax, as Keras runs it without a fused kernel.
bool translate_multi_head(KerasTranslation& translation, KerasCall& call) {
  const auto heads = call.config.integer("num_heads");
  const auto key_features = call.config.integer("key_dim");
  if (!heads || !key_features || *heads < 1 || call.inputs.size() < 2) return false;
  const std::int64_t value_features = call.config.integer("value_dim").value_or(*key_features);
  const bool biased = call.config.flag("use_bias", true);
  const KerasTensor& query = call.inputs[0];
  const KerasTensor& value = call.inputs[1];
  const KerasTensor& key = call.inputs.size() > 2 ? call.inputs[2] : value;
  const auto projected = [&](const KerasTensor& of, const std::string& name,
                             std::int64_t features) -> std::optional<LayerOutput> {
    const auto x = translation.channels_last(call, of);
    if (!x) return x;
    KerasCall part = call;
    part.name += "/" + name;
    std::vector<NamedText> names{{"weight", "kernel"}};
    if (biased) names.emplace_back("bias", "bias");
    return translation.add_weighted(part, "linear", {*x},
                                    {{"features", checked_multiply(features, 1)}, {"bias", biased}},
                                    names);
  };
  const auto heads_of = [&](const KerasTensor& of, const std::string& name, std::int64_t features) {
    const auto all = projected(of, name, checked_multiply(*heads, features));
    return all ? apart_in_heads(translation, call, *all, *heads) : all;
  };
  const auto q = heads_of(query, "query", *key_features);
  const auto k = heads_of(key, "key", *key_features);
  const auto v = heads_of(value, "value", value_features);
  if (!q || !k || !v) return false;
  const bool causal = call.keywords.flag("use_causal_mask", false);
  Attributes::Entries given{{"implementation", std::string("math")}, {"causal", causal}};
  const double dropout = call.config.number("dropout").value_or(0);
  if (dropout > 0) given.emplace_back("dropout", dropout);
  auto made = translation.add(call, "scaled_dot_product_attention", {*q, *k, *v}, std::move(given));
  if (made) made = translation.add(call, "transpose", {*made}, {{"axes", Integers{0, 2, 1, 3}}});
  if (!made) return false;
  const Shape s = translation.layers().type(*made).shape;
  made = translation.add(call, "reshape", {*made}, {{"shape", Shape{s[0], s[1], s[2] * s[3]}}});
  if (!made) return false;
  const KerasTensor joined{*made, translation.layers().type(*made).shape};
  made = projected(joined, "attention_output",
                   call.config.integer("output_shape").value_or(query.shape.back().constant));
  if (made) translation.add_output(call, *made);
  return made.has_value();
}

// softmax(q k^T) v, without weights.
bool translate_plain_attention(KerasTranslation& translation, KerasCall& call) {
  if (call.inputs.size() < 2 || call.config.flag("use_scale", false) ||
      call.config.text("score_mode", "dot") != "dot") {
    translation.refuse("a learned scale and other scores are not expressed");
    return false;
  }
  std::vector<LayerOutput> from;
  for (const std::size_t i :
       {std::size_t{0}, call.inputs.size() > 2 ? std::size_t{2} : 1, std::size_t{1}}) {
    const auto x = translation.channels_last(call, call.inputs[i]);
    const Shape& s = call.inputs[i].shape;
    if (!x || s.size() != 3) return false;
    const auto one =
        translation.add(call, "reshape", {*x}, {{"shape", Shape{s[0], 1, s[1], s[2]}}});
    if (!one) return false;
    from.push_back(*one);
  }
  const auto made = translation.add(call, "scaled_dot_product_attention", std::move(from),
                                    {{"scale", 1.0}, {"implementation", std::string("math")}});
  if (!made) return false;
  const Shape s = translation.layers().type(*made).shape;
  const auto joined =
      translation.add(call, "reshape", {*made}, {{"shape", Shape{s[0], s[2], s[3]}}});
  if (joined) translation.add_output(call, *joined);
  return joined.has_value();
}

}  // namespace

std::span<const KerasRule> keras_sequence_rules() {
  static constexpr std::array rules{
      KerasRule{"LSTM", translate_recurrent},
      KerasRule{"GRU", translate_recurrent},
      KerasRule{"SimpleRNN", translate_recurrent},
      KerasRule{"CuDNNLSTM", translate_recurrent},
      KerasRule{"CuDNNGRU", translate_recurrent},
      KerasRule{"Bidirectional", translate_bidirectional},
      KerasRule{"TimeDistributed", translate_distributed},
      KerasRule{"MultiHeadAttention", translate_multi_head},
      KerasRule{"Attention", translate_plain_attention},
  };
  return rules;
}

}  // namespace stowage
