// From Keras' layers to a LayerList.
//
// Keras keeps channels last, the catalogue's images have them first. Sizes are the same either
// way, so an image is held as [batch, channels, ...] and taken for channels last again by a
// `reshape`, a view that costs nothing: the order of elements within a tensor is not Keras'.
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
  Shape shape;                  ///< as Keras has it, batch first
  bool channels_first = false;  ///< the layer's shape is [batch, channels, ...], Keras' not
};

/// One call of a layer.
struct KerasCall {
  std::string class_name;
  std::string name;  ///< the layer's, with those of the models around it: "backbone/conv2d"
  KerasConfig config;
  KerasConfig keywords;  ///< of the call
  std::vector<KerasTensor> inputs;
  std::vector<KerasTensor> outputs = {};
  int keras = 3;  ///< whose JSON it is: 2 or 3
};

class KerasTranslation {
 public:
  [[nodiscard]] LayerList& layers() { return layers_; }
  /// Absent: the row refuses, and the reason is remembered.
  [[nodiscard]] std::optional<LayerOutput> add(const KerasCall& call, std::string_view row,
                                               std::vector<LayerOutput> from,
                                               Attributes::Entries given = {});
  /// As above; its parameters are the call's own: {"weight", "kernel"}.
  [[nodiscard]] std::optional<LayerOutput> add_weighted(const KerasCall& call, std::string_view row,
                                                        std::vector<LayerOutput> from,
                                                        Attributes::Entries given,
                                                        const std::vector<NamedText>& names);
  /// [batch, channels, ...].
  [[nodiscard]] std::optional<LayerOutput> first(const KerasCall& call, const KerasTensor& tensor);
  /// In Keras' own shape.
  [[nodiscard]] std::optional<LayerOutput> last(const KerasCall& call, const KerasTensor& tensor);
  /// The output as Keras has it; its shape is that of the layer.
  void give(KerasCall& call, LayerOutput output);
  /// An image with channels first, which Keras has last.
  void give_first(KerasCall& call, LayerOutput output);
  /// The shape of the input, and how it is held.
  void give_like(KerasCall& call, const KerasTensor& input, LayerOutput output);
  /// The layer's `activation`, applied to the outputs. False: it is not known.
  [[nodiscard]] bool activate(KerasCall& call, const std::string& activation);

  void refuse(std::string reason) { reason_ = std::move(reason); }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  LayerList layers_;
  std::string reason_;
};

/// [batch, ..., channels] with the channels moved to the front, or back.
[[nodiscard]] Shape channels_to_front(const Shape& shape);
[[nodiscard]] Shape channels_to_back(const Shape& shape);
/// The axis of `tensor`'s layer that is `axis` for Keras; nullopt: out of range.
[[nodiscard]] std::optional<std::int64_t> held_axis(const KerasTensor& tensor, std::int64_t axis);

struct KerasRule {
  std::string_view class_name;
  /// False: it made nothing, and has said why.
  bool (*translate)(KerasTranslation& translation, KerasCall& call) = nullptr;
};
[[nodiscard]] std::span<const KerasRule> keras_core_rules();        ///< Dense, shapes, merging
[[nodiscard]] std::span<const KerasRule> keras_image_rules();       ///< convolutions, pooling
[[nodiscard]] std::span<const KerasRule> keras_activation_rules();  ///< and dropout
[[nodiscard]] std::span<const KerasRule> keras_normalization_rules();
[[nodiscard]] std::span<const KerasRule> keras_sequence_rules();  ///< recurrent, attention
/// nullptr: none.
[[nodiscard]] const KerasRule* find_keras_rule(std::string_view class_name);

}  // namespace stowage
