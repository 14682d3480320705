#include "estimator/keras/keras_translation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stowage {

Shape channels_to_front(const Shape& shape) {
  if (shape.size() < 3) return shape;
  Shape front{shape.front(), shape.back()};
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) front.push_back(shape[i]);
  return front;
}

Shape channels_to_back(const Shape& shape) {
  if (shape.size() < 3) return shape;
  Shape back{shape.front()};
  for (std::size_t i = 2; i < shape.size(); ++i) back.push_back(shape[i]);
  back.push_back(shape[1]);
  return back;
}

std::optional<std::int64_t> layer_axis(const KerasTensor& tensor, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(tensor.shape.size());
  if (axis < -rank || axis >= rank) return std::nullopt;
  if (axis < 0) axis += rank;
  if (!tensor.channels_first || axis == 0) return axis;
  return axis == rank - 1 ? 1 : axis + 1;
}

std::optional<LayerOutput> KerasTranslation::add(const KerasCall& call, std::string_view row,
                                                 std::vector<LayerOutput> from,
                                                 Attributes::Entries given) {
  const auto made = layers_.add(row, call.name, std::move(from), std::move(given));
  if (!made) {
    refuse(made.error());
    return std::nullopt;
  }
  layers_.at(*made).frozen =
      !call.config.flag("trainable", true) && !layers_.at(*made).parameters.empty();
  return LayerOutput{*made, 0};
}

std::optional<LayerOutput> KerasTranslation::add_weighted(const KerasCall& call,
                                                          std::string_view row,
                                                          std::vector<LayerOutput> from,
                                                          Attributes::Entries given,
                                                          const std::vector<NamedText>& names) {
  const auto made = add(call, row, std::move(from), std::move(given));
  if (!made) return made;
  for (const auto& [parameter, name] : names) {
    layers_.at(made->layer)
        .parameter_names.emplace_back(parameter, fmt::format("{}/{}", call.name, name));
  }
  return made;
}

std::optional<LayerOutput> KerasTranslation::channels_first(const KerasCall& call,
                                                            const KerasTensor& tensor) {
  if (tensor.channels_first || tensor.shape.size() < 3) return tensor.layer;
  return add(call, "reshape", {tensor.layer}, {{"shape", channels_to_front(tensor.shape)}});
}

std::optional<LayerOutput> KerasTranslation::channels_last(const KerasCall& call,
                                                           const KerasTensor& tensor) {
  if (!tensor.channels_first) return tensor.layer;
  return add(call, "reshape", {tensor.layer}, {{"shape", tensor.shape}});
}

void KerasTranslation::add_output(KerasCall& call, LayerOutput output) {
  call.outputs.push_back({output, layers_.type(output).shape});
}

void KerasTranslation::add_channels_first_output(KerasCall& call, LayerOutput output) {
  call.outputs.push_back({output, channels_to_back(layers_.type(output).shape), true});
}

void KerasTranslation::add_output_like(KerasCall& call, const KerasTensor& input,
                                       LayerOutput output) {
  call.outputs.push_back({output, input.shape, input.channels_first});
}

const KerasRule* find_keras_rule(std::string_view class_name) {
  for (const auto& rules :
       {keras_core_rules(), keras_image_rules(), keras_preprocessing_rules(),
        keras_activation_rules(), keras_normalization_rules(), keras_sequence_rules()}) {
    for (const KerasRule& rule : rules) {
      if (rule.class_name == class_name) return &rule;
    }
  }
  return nullptr;
}

}  // namespace stowage
