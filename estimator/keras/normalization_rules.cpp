// Normalizations. If Keras has only one of scale and offset, and the row only both or none, the
// existing one becomes a `parameter` that is applied in place after the row.
#include <array>

#include "estimator/keras/keras_translation.hpp"

namespace stowage {

namespace {

using Integers = std::vector<std::int64_t>;
constexpr double usual_epsilon = 1e-3;

// Adds y + parameter or y * parameter, along `axis` of the layer.
std::optional<LayerOutput> applied(KerasTranslation& translation, const KerasCall& call,
                                   LayerOutput y, std::size_t axis, const std::string& name) {
  const Shape& shape = translation.layers().type(y).shape;
  Shape own(shape.size() - axis, Affine(1));
  own[0] = shape[axis];
  KerasCall named = call;
  named.name += "_" + name;
  const auto weight = translation.add(named, "parameter", {}, {{"shape", own}});
  if (!weight) return weight;
  ImportedLayer& made = translation.layers().at(weight->layer);
  made.parameter_names.emplace_back(std::string(made.parameters[0].name), call.name + "/" + name);
  Attributes::Entries given;
  if (name == "beta") given.emplace_back("in_place", true);
  return translation.add(call, name == "beta" ? "add" : "mul", {y, *weight}, std::move(given));
}

bool translate_keras_batch_norm(KerasTranslation& translation, KerasCall& call) {
  constexpr double usual_momentum = 0.99;
  const KerasTensor& x = call.inputs[0];
  const auto rank = static_cast<std::int64_t>(x.shape.size());
  const Integers listed = call.config.list("axis");
  std::int64_t axis = listed.size() == 1 ? listed[0] : call.config.integer("axis").value_or(-1);
  if (axis < 0) axis += rank;
  const bool over_last = axis == rank - 1;
  if (!over_last && axis != 1) {
    translation.refuse("its axis is neither the last nor the second");
    return false;
  }
  const auto from =
      over_last ? translation.channels_first(call, x) : translation.channels_last(call, x);
  if (!from) return false;
  const bool scales = call.config.flag("scale", true);
  const bool shifts = call.config.flag("center", true);
  std::vector<NamedText> names{{"running_mean", "moving_mean"}, {"running_var", "moving_variance"}};
  if (scales && shifts) {
    names.emplace_back("weight", "gamma");
    names.emplace_back("bias", "beta");
  }
  const bool trains = call.config.flag("trainable", true);
  Attributes::Entries given{
      {"eps", call.config.number("epsilon").value_or(usual_epsilon)},
      {"momentum", 1 - call.config.number("momentum").value_or(usual_momentum)},
      {"affine", scales && shifts}};
  if (!trains) given.emplace_back("training", false);
  auto made = translation.add_weighted(call, "batch_norm", {*from}, std::move(given), names);
  if (made && scales != shifts)
    made = applied(translation, call, *made, 1, scales ? "gamma" : "beta");
  if (!made) return false;
  if (over_last && rank > 2) {
    translation.add_channels_first_output(call, *made);
  } else {
    translation.add_output(call, *made);
  }
  return true;
}

bool translate_keras_layer_norm(KerasTranslation& translation, KerasCall& call) {
  const auto from = translation.channels_last(call, call.inputs[0]);
  if (!from) return false;
  const Integers listed = call.config.list("axis");
  const auto axes = static_cast<std::int64_t>(listed.empty() ? 1 : listed.size());
  const bool is_rms = call.class_name == "RMSNormalization";
  const bool scales = call.config.flag("scale", true);
  const bool shifts = !is_rms && call.config.flag("center", true);
  Attributes::Entries given{{"axes", axes},
                            {"eps", call.config.number("epsilon").value_or(usual_epsilon)}};
  std::vector<NamedText> names;
  if (scales) names.emplace_back("weight", is_rms ? "scale" : "gamma");
  if (scales && shifts) names.emplace_back("bias", "beta");
  if (!scales) given.emplace_back("affine", false);
  if (!is_rms && scales && !shifts) given.emplace_back("bias", false);
  auto made = translation.add_weighted(call, is_rms ? "rms_norm" : "layer_norm", {*from},
                                       std::move(given), names);
  if (made && !scales && shifts) {
    made = applied(translation, call, *made,
                   call.inputs[0].shape.size() - static_cast<std::size_t>(axes), "beta");
  }
  if (made) translation.add_output(call, *made);
  return made.has_value();
}

bool translate_keras_group_norm(KerasTranslation& translation, KerasCall& call) {
  const auto from = translation.channels_first(call, call.inputs[0]);
  if (!from) return false;
  std::int64_t groups = call.config.integer("groups").value_or(32);
  if (groups == -1) groups = call.inputs[0].shape.back().constant;
  const bool scales = call.config.flag("scale", true);
  const bool shifts = call.config.flag("center", true);
  std::vector<NamedText> names;
  if (scales && shifts) names = {{"weight", "gamma"}, {"bias", "beta"}};
  auto made =
      translation.add_weighted(call, "group_norm", {*from},
                               {{"groups", groups},
                                {"eps", call.config.number("epsilon").value_or(usual_epsilon)},
                                {"affine", scales && shifts}},
                               names);
  if (made && scales != shifts)
    made = applied(translation, call, *made, 1, scales ? "gamma" : "beta");
  if (made) translation.add_channels_first_output(call, *made);
  return made.has_value();
}

// x / |x| along the last axis.
bool translate_unit_norm(KerasTranslation& translation, KerasCall& call) {
  const auto x = translation.channels_last(call, call.inputs[0]);
  if (!x) return false;
  auto made = translation.add(call, "pow", {*x}, {{"exponent", 2.0}});
  if (made) made = translation.add(call, "sum", {*made}, {{"axes", Integers{-1}}, {"keep", true}});
  if (made) made = translation.add(call, "sqrt", {*made});
  if (made) made = translation.add(call, "div", {*x, *made});
  if (made) translation.add_output(call, *made);
  return made.has_value();
}

}  // namespace

std::span<const KerasRule> keras_normalization_rules() {
  static constexpr std::array rules{
      KerasRule{"BatchNormalization", translate_keras_batch_norm},
      KerasRule{"LayerNormalization", translate_keras_layer_norm},
      KerasRule{"RMSNormalization", translate_keras_layer_norm},
      KerasRule{"GroupNormalization", translate_keras_group_norm},
      KerasRule{"UnitNormalization", translate_unit_norm},
  };
  return rules;
}

}  // namespace stowage
