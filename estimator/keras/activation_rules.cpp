// Activations, as layers and as the `activation` of other layers, and dropout.
#include <algorithm>
#include <array>
#include <cctype>

#include "estimator/keras/keras_translation.hpp"

namespace stowage {

namespace {

using Rows = std::vector<std::pair<std::string, Attributes::Entries>>;

// "HardSigmoid" and "hard_sigmoid" are one.
std::string folded_word(std::string_view text) {
  std::string word;
  for (const char c : text) {
    if (c != '_') word.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return word;
}

std::optional<Rows> rows_of_activation(std::string_view activation, int keras) {
  constexpr double keras2_slope = 0.2;
  const std::string word = folded_word(activation);
  if (word.empty() || word == "linear") return Rows{};
  if (word == "swish" || word == "silu") return Rows{{"silu", {}}};
  if (word == "hardswish" || word == "hardsilu") return Rows{{"hardswish", {}}};
  if (word == "exponential") return Rows{{"exp", {}}};
  if (word == "leakyrelu") return Rows{{"leaky_relu", {{"negative_slope", 0.2}}}};
  if (word == "logsoftmax") return Rows{{"log_softmax", {}}};
  if (word == "hardsigmoid") {
    if (keras != 2) return Rows{{"hardsigmoid", {}}};
    return Rows{{"scale", {{"factor", keras2_slope}, {"offset", 0.5}}},
                {"clamp", {{"minimum", 0.0}, {"maximum", 1.0}}}};
  }
  for (const std::string_view same : {"relu", "relu6", "sigmoid", "tanh", "softmax", "softplus",
                                      "elu", "selu", "gelu", "mish", "celu"}) {
    if (word == same) return Rows{{std::string(same), {}}};
  }
  return std::nullopt;
}

// For layers with one input, whose channel order is kept.
bool apply_rows(KerasTranslation& translation, KerasCall& call, const KerasTensor& input,
                const Rows& rows) {
  LayerOutput at = input.layer;
  for (auto [row, given] : rows) {
    const bool has_axis = row == "softmax" || row == "log_softmax";
    if (has_axis && given.empty()) {
      const auto axis = layer_axis(input, -1);
      if (!axis) return false;
      given.emplace_back("axis", *axis);
    }
    const auto made = translation.add(call, row, {at}, std::move(given));
    if (!made) return false;
    at = *made;
  }
  call.outputs.clear();
  translation.add_output_like(call, input, at);
  return true;
}

bool translate_activation(KerasTranslation& translation, KerasCall& call) {
  call.outputs = {call.inputs[0]};
  return translation.activate(call, call.config.class_name("activation"));
}

bool translate_relu(KerasTranslation& translation, KerasCall& call) {
  constexpr double six = 6;
  const double slope = call.config.number("negative_slope").value_or(0);
  const auto most = call.config.number("max_value");
  if (call.config.number("threshold").value_or(0) != 0 || (slope != 0 && most)) {
    translation.refuse("a threshold, or a slope with a largest value, is not expressed");
    return false;
  }
  Rows rows{{"relu", {}}};
  if (slope != 0) rows = {{"leaky_relu", {{"negative_slope", slope}}}};
  if (most == six) rows = {{"relu6", {}}};
  if (most && *most != six) rows = {{"clamp", {{"minimum", 0.0}, {"maximum", *most}}}};
  return apply_rows(translation, call, call.inputs[0], rows);
}

bool translate_leaky_relu(KerasTranslation& translation, KerasCall& call) {
  constexpr double usual_slope = 0.3;
  const double slope = call.config.number("negative_slope")
                           .value_or(call.config.number("alpha").value_or(usual_slope));
  return apply_rows(translation, call, call.inputs[0],
                    {{"leaky_relu", {{"negative_slope", slope}}}});
}

bool translate_elu(KerasTranslation& translation, KerasCall& call) {
  return apply_rows(translation, call, call.inputs[0],
                    {{"elu", {{"alpha", call.config.number("alpha").value_or(1)}}}});
}

bool translate_softmax_layer(KerasTranslation& translation, KerasCall& call) {
  const auto axis = layer_axis(call.inputs[0], call.config.integer("axis").value_or(-1));
  if (!axis) return false;
  return apply_rows(translation, call, call.inputs[0], {{"softmax", {{"axis", *axis}}}});
}

// One slope per channel: all other axes are shared.
bool translate_slopes(KerasTranslation& translation, KerasCall& call) {
  const KerasTensor& x = call.inputs[0];
  const std::vector<std::int64_t> shared = call.config.list("shared_axes");
  if (x.shape.size() < 2 || shared.size() + 2 != x.shape.size()) {
    translation.refuse("slopes that differ within a channel are not expressed");
    return false;
  }
  const auto from = translation.channels_first(call, x);
  if (!from) return false;
  const auto made = translation.add_weighted(
      call, "prelu", {*from}, {{"parameters", x.shape.back().constant}}, {{"weight", "alpha"}});
  if (!made) return false;
  if (x.shape.size() > 2) {
    translation.add_channels_first_output(call, *made);
  } else {
    translation.add_output(call, *made);
  }
  return true;
}

bool translate_keras_dropout(KerasTranslation& translation, KerasCall& call) {
  const double rate = call.config.number("rate").value_or(0);
  if (rate <= 0) {
    call.outputs = {call.inputs[0]};
    return true;
  }
  if (call.class_name == "Dropout") {
    return apply_rows(translation, call, call.inputs[0], {{"dropout", {{"p", rate}}}});
  }
  const auto from = translation.channels_first(call, call.inputs[0]);
  const auto made = from ? translation.add(call, "feature_dropout", {*from}, {{"p", rate}}) : from;
  if (made) translation.add_channels_first_output(call, *made);
  return made.has_value();
}

}  // namespace

bool KerasTranslation::activate(KerasCall& call, const std::string& activation) {
  const auto rows = rows_of_activation(activation, call.keras);
  if (!rows) {
    refuse("its activation is '" + activation + "'");
    return false;
  }
  const KerasTensor input = call.outputs.front();
  return rows->empty() || apply_rows(*this, call, input, *rows);
}

std::span<const KerasRule> keras_activation_rules() {
  static constexpr std::array rules{
      KerasRule{"Activation", translate_activation},
      KerasRule{"ReLU", translate_relu},
      KerasRule{"LeakyReLU", translate_leaky_relu},
      KerasRule{"ELU", translate_elu},
      KerasRule{"Softmax", translate_softmax_layer},
      KerasRule{"PReLU", translate_slopes},
      KerasRule{"Dropout", translate_keras_dropout},
      KerasRule{"SpatialDropout1D", translate_keras_dropout},
      KerasRule{"SpatialDropout2D", translate_keras_dropout},
      KerasRule{"SpatialDropout3D", translate_keras_dropout},
  };
  return rules;
}

}  // namespace stowage
