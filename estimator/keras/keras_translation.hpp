// KerasTranslation: a Keras model that is being translated to a LayerList, and the rules by class.
//
// Keras images have channels last, the catalogue's have channels first. Sizes are the same either
// way, so an image is kept as [batch, channels, ...], and where channels last is needed a
// `reshape`, a view without cost, gives it that shape. The order of elements within a tensor is not
// Keras' then.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "estimator/import/layer_list.hpp"
#include "estimator/keras/keras_config.hpp"

namespace stowage {

struct KerasTensor {
  LayerOutput layer;
  Shape shape;                  ///< in Keras, batch first
  bool channels_first = false;  ///< the layer's shape is [batch, channels, ...], unlike `shape`
};

/// One call of a layer.
struct KerasCall {
  std::string class_name;
  std::string name;  ///< the layer's, after those of enclosing models: "backbone/conv2d"
  KerasConfig config;
  KerasConfig keywords;                 ///< arguments of the call
  const YamlNode* arguments = nullptr;  ///< those without a keyword, the tensors among them
  std::vector<KerasTensor> inputs;
  std::vector<KerasTensor> outputs = {};
  int keras = 3;  ///< major version of the JSON: 2 or 3
};

class KerasTranslation {
 public:
  [[nodiscard]] LayerList& layers() { return layers_; }
  /// Adds a layer for the call. Absent: the row's shape rule fails, and its reason is kept.
  [[nodiscard]] std::optional<LayerOutput> add(const KerasCall& call, std::string_view row,
                                               std::vector<LayerOutput> from,
                                               Attributes::Entries given = {});
  /// As above, with Keras' names for the layer's parameters: {"weight", "kernel"}.
  [[nodiscard]] std::optional<LayerOutput> add_weighted(const KerasCall& call, std::string_view row,
                                                        std::vector<LayerOutput> from,
                                                        Attributes::Entries given,
                                                        const std::vector<NamedText>& names);
  /// The tensor in the shape [batch, channels, ...].
  [[nodiscard]] std::optional<LayerOutput> channels_first(const KerasCall& call,
                                                          const KerasTensor& tensor);
  /// The tensor in Keras' shape, with channels last.
  [[nodiscard]] std::optional<LayerOutput> channels_last(const KerasCall& call,
                                                         const KerasTensor& tensor);
  /// Appends an output to the call that has the layer's shape in Keras too.
  void add_output(KerasCall& call, LayerOutput output);
  /// Appends an output that is an image with channels first, and has channels last in Keras.
  void add_channels_first_output(KerasCall& call, LayerOutput output);
  /// Appends an output with the Keras shape and the channel order of `input`.
  void add_output_like(KerasCall& call, const KerasTensor& input, LayerOutput output);
  /// Applies the layer's `activation` to the call's outputs. False: it is unknown.
  [[nodiscard]] bool activate(KerasCall& call, const std::string& activation);

  void refuse(std::string reason) { reason_ = std::move(reason); }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  LayerList layers_;
  std::string reason_;
};

/// From [batch, ..., channels] to [batch, channels, ...], and back.
[[nodiscard]] Shape channels_to_front(const Shape& shape);
[[nodiscard]] Shape channels_to_back(const Shape& shape);
/// The axis of the tensor's layer that is `axis` in Keras; nullopt: out of range.
[[nodiscard]] std::optional<std::int64_t> layer_axis(const KerasTensor& tensor, std::int64_t axis);

struct KerasRule {
  std::string_view class_name;
  /// False: no layer was made; KerasTranslation::refuse was told why.
  bool (*translate)(KerasTranslation& translation, KerasCall& call) = nullptr;
};
[[nodiscard]] std::span<const KerasRule> keras_core_rules();           ///< Dense, shapes, merging
[[nodiscard]] std::span<const KerasRule> keras_image_rules();          ///< convolutions, pooling
[[nodiscard]] std::span<const KerasRule> keras_preprocessing_rules();  ///< and arithmetic
[[nodiscard]] std::span<const KerasRule> keras_activation_rules();     ///< and dropout
[[nodiscard]] std::span<const KerasRule> keras_normalization_rules();
[[nodiscard]] std::span<const KerasRule> keras_sequence_rules();  ///< recurrent, attention
/// The rule for a class; nullptr: there is none.
[[nodiscard]] const KerasRule* find_keras_rule(std::string_view class_name);

}  // namespace stowage
