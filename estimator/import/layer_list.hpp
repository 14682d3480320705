// LayerList: the layers of a description that is being built, with the sizes of their outputs.
//
// Sizes come from the catalogue's shape rules (OperatorRow::infer), so that importers need none for
// these rows. An operator without a row becomes a foreign layer, whose importer states its outputs.
// Patterns may still replace foreign layers; those that remain are unknown operators.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/model/operator_row.hpp"

namespace stowage {

/// An output of a layer, or an input of the model. Layers are numbered in the order in which they
/// are added.
struct LayerOutput {
  int layer = -1;  ///< -1: none
  int output = 0;
  [[nodiscard]] bool valid() const { return layer >= 0; }
  auto operator<=>(const LayerOutput&) const = default;
};

using NamedText = std::pair<std::string, std::string>;

struct ImportedLayer {
  const OperatorRow* row = nullptr;  ///< null: an input of the model, or foreign
  std::string foreign = {};          ///< foreign layers: the format's operator, "Erf"
  std::string name = {};             ///< unique, a valid name in a description
  std::vector<LayerOutput> from = {};
  Attributes::Entries given = {};  ///< attributes that are written
  std::vector<TensorType> outputs = {};
  std::vector<ParameterSpec> parameters = {};   ///< from the row's shape rule
  std::vector<NamedText> parameter_names = {};  ///< "weight" -> the file's own name
  std::vector<NamedText> ties = {};             ///< "weight" -> "wte.weight"
  bool frozen = false;
  bool is_input = false;
  /// Whether gradients reach it: it has parameters, or one of the layers that it depends on has.
  bool trains = false;

  [[nodiscard]] bool is(std::string_view row_name) const {
    return row != nullptr && row->name == row_name;
  }
};

class LayerList {
 public:
  LayerList();
  LayerOutput add_input(std::string_view name, TensorType type);
  /// Adds a layer and returns its number. Error: the shape rule's message, or that there is no such
  /// row; nothing is added then.
  tl::expected<int, std::string> add(std::string_view row, std::string_view name,
                                     std::vector<LayerOutput> from, Attributes::Entries given = {});
  int add_foreign(std::string_view foreign, std::string_view name, std::vector<LayerOutput> from,
                  std::vector<TensorType> outputs);
  /// Replaces a layer's row, inputs and attributes; it keeps its number and name. False: they do
  /// not go together, and nothing changes.
  bool change(int layer, std::string_view row, std::vector<LayerOutput> from,
              Attributes::Entries given);
  [[nodiscard]] int count() const { return static_cast<int>(layers_.size()); }
  [[nodiscard]] const ImportedLayer& at(int layer) const {
    return layers_[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] ImportedLayer& at(int layer) { return layers_[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] const TensorType& type(LayerOutput output) const {
    return at(output.layer).outputs[static_cast<std::size_t>(output.output)];
  }
  /// A name that no layer has yet, made from `wanted`.
  [[nodiscard]] std::string fresh_name(std::string_view wanted);

 private:
  tl::expected<void, std::string> infer(ImportedLayer& layer) const;

  std::vector<ImportedLayer> layers_;
  // Names in use, with the suffix number for the next layer of that name.
  std::map<std::string, int> names_;
};

}  // namespace stowage
