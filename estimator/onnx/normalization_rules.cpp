// Normalizations.
#include <algorithm>
#include <array>

#include "estimator/onnx/checked_axes.hpp"
#include "estimator/onnx/translation_rules.hpp"

namespace stowage {

namespace {

constexpr double usual_epsilon = 1e-5;

bool is_weight_of(const Translation& translation, const OnnxNode& node, std::size_t input) {
  const OnnxValue& value = translation.input(node, input);
  return value.is_parameter() && !value.turned;
}

// The inputs from 1 on are the row's parameters, as far as the layer has them.
bool normalized(Translation& translation, const OnnxNode& node, std::string_view row,
                Attributes::Entries given, const std::vector<std::string>& parameters) {
  const OnnxValue& x = translation.input(node, 0);
  std::vector<std::pair<std::string, const OnnxValue*>> weights;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    weights.emplace_back(parameters[i], &translation.input(node, i + 1));
  }
  if (weights.empty()) weights.emplace_back("", &x);
  const auto made = translation.layer_with_weights(node, row, {translation.activation(x)},
                                                   std::move(given), weights);
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

bool translate_batch_norm(Translation& translation, const OnnxNode& node) {
  constexpr double usual_momentum = 0.9;
  const bool affine = is_weight_of(translation, node, 1) && is_weight_of(translation, node, 2);
  Attributes::Entries given{{"eps", node.real("epsilon", usual_epsilon)}};
  // ONNX' momentum is the share of the old statistics, PyTorch's that of the new.
  given.emplace_back("momentum", std::clamp(1 - node.real("momentum", usual_momentum), 0.0, 1.0));
  if (!affine) given.emplace_back("affine", false);
  const OnnxValue& x = translation.input(node, 0);
  std::vector<std::pair<std::string, const OnnxValue*>> weights;
  const std::array<std::string, 4> names{"weight", "bias", "running_mean", "running_var"};
  for (std::size_t i = affine ? 0 : 2; i < names.size(); ++i) {
    weights.emplace_back(names[i], &translation.input(node, i + 1));
  }
  const auto made = translation.layer_with_weights(node, "batch_norm", {translation.activation(x)},
                                                   std::move(given), weights);
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

// How many axes from `axis` on, or nullopt.
std::optional<std::int64_t> trailing_axes(const OnnxNode& node, const OnnxValue& x) {
  const auto first = axis_in(node.integer("axis", -1), x.rank());
  if (!first) return std::nullopt;
  return static_cast<std::int64_t>(x.rank() - *first);
}

bool translate_layer_norm(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const auto axes = trailing_axes(node, x);
  if (!axes) return false;
  Attributes::Entries given{{"axes", *axes}, {"eps", node.real("epsilon", usual_epsilon)}};
  if (!is_weight_of(translation, node, 1)) {
    given.emplace_back("affine", false);
    return normalized(translation, node, "layer_norm", std::move(given), {});
  }
  if (!is_weight_of(translation, node, 2)) {
    given.emplace_back("bias", false);
    return normalized(translation, node, "layer_norm", std::move(given), {"weight"});
  }
  return normalized(translation, node, "layer_norm", std::move(given), {"weight", "bias"});
}

bool translate_rms_norm(Translation& translation, const OnnxNode& node) {
  const auto axes = trailing_axes(node, translation.input(node, 0));
  if (!axes) return false;
  Attributes::Entries given{{"axes", *axes}, {"eps", node.real("epsilon", usual_epsilon)}};
  if (is_weight_of(translation, node, 1)) {
    return normalized(translation, node, "rms_norm", std::move(given), {"weight"});
  }
  given.emplace_back("affine", false);
  return normalized(translation, node, "rms_norm", std::move(given), {});
}

// Before opset 21 scale and bias have a number a group, which the row has not: they are constants
// of ones and zeros where an exporter writes them so.
bool translate_group_norm(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  Attributes::Entries given{{"groups", node.integer("num_groups", 1)},
                            {"eps", node.real("epsilon", usual_epsilon)}};
  const bool per_channel =
      x.rank() > 1 && translation.input(node, 1).type.shape == Shape{x.type.shape[1]};
  if (per_channel && is_weight_of(translation, node, 1) && is_weight_of(translation, node, 2)) {
    return normalized(translation, node, "group_norm", std::move(given), {"weight", "bias"});
  }
  given.emplace_back("affine", false);
  return normalized(translation, node, "group_norm", std::move(given), {});
}

bool translate_instance_norm(Translation& translation, const OnnxNode& node) {
  Attributes::Entries given{{"eps", node.real("epsilon", usual_epsilon)}};
  if (!is_weight_of(translation, node, 1)) {
    return normalized(translation, node, "instance_norm", std::move(given), {});
  }
  given.emplace_back("affine", true);
  return normalized(translation, node, "instance_norm", std::move(given), {"weight", "bias"});
}

bool translate_local_response_norm(Translation& translation, const OnnxNode& node) {
  constexpr double usual_alpha = 1e-4;
  constexpr double usual_beta = 0.75;
  return normalized(translation, node, "local_response_norm",
                    {{"size", node.integer("size", 1)},
                     {"alpha", node.real("alpha", usual_alpha)},
                     {"beta", node.real("beta", usual_beta)},
                     {"k", node.real("bias", 1)}},
                    {});
}

}  // namespace

std::span<const OnnxRule> onnx_normalization_rules() {
  static constexpr std::array rules{
      OnnxRule{"BatchNormalization", translate_batch_norm},
      OnnxRule{"LayerNormalization", translate_layer_norm},
      OnnxRule{"RMSNormalization", translate_rms_norm},
      OnnxRule{"SimplifiedLayerNormalization", translate_rms_norm},
      OnnxRule{"GroupNormalization", translate_group_norm},
      OnnxRule{"InstanceNormalization", translate_instance_norm},
      OnnxRule{"LRN", translate_local_response_norm},
  };
  return rules;
}

}  // namespace stowage
