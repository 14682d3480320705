// LayerList: a description in the making, layer by layer, with the sizes that follow.
//
// Sizes come from the catalogue's own rules (OperatorRow::infer), so that a reader knows no shape
// rule of a row that it uses. What has no row is a foreign layer, whose outputs its reader states:
// patterns may still take it in; what is left in the end is unknown to the catalogue.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/model/operator_row.hpp"

namespace stowage {

/// An output of a layer, or an input of the model. Layers are numbered in the order of making.
struct LayerOutput {
  int layer = -1;  ///< none: nothing
  int output = 0;
  [[nodiscard]] bool valid() const { return layer >= 0; }
  auto operator<=>(const LayerOutput&) const = default;
};

using NamedText = std::pair<std::string, std::string>;

struct ImportedLayer {
  const OperatorRow* row = nullptr;  ///< null: an input of the model, or foreign
  std::string foreign = {};          ///< the format's own operator: "Erf"; else ""
  std::string name = {};             ///< unique, as descriptions have names
  std::vector<LayerOutput> from = {};
  Attributes::Entries given = {};  ///< as they are written
  std::vector<TensorType> outputs = {};
  std::vector<ParameterSpec> parameters = {};   ///< as the row's rule has them
  std::vector<NamedText> parameter_names = {};  ///< "weight" -> the file's own name
  std::vector<NamedText> ties = {};             ///< "weight" -> "wte.weight"
  bool frozen = false;
  bool is_input = false;
  /// Whether a gradient passes to it: it has parameters, or reads what has.
  bool trains = false;

  [[nodiscard]] bool is(std::string_view row_name) const {
    return row != nullptr && row->name == row_name;
  }
};

class LayerList {
 public:
  LayerList();
  LayerOutput add_input(std::string_view name, TensorType type);
  /// The layer's number. Errors: a sentence, as the row's shape rule gives it, or that there is no
  /// such row; nothing is added then.
  tl::expected<int, std::string> add(std::string_view row, std::string_view name,
                                     std::vector<LayerOutput> from, Attributes::Entries given = {});
  int add_foreign(std::string_view foreign, std::string_view name, std::vector<LayerOutput> from,
                  std::vector<TensorType> outputs);
  /// The layer with another row, other inputs or attributes, under its number and name. False:
  /// they do not suit, and it stays as it was.
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
  /// A name that no layer has yet, made of `wanted`.
  [[nodiscard]] std::string fresh_name(std::string_view wanted);

 private:
  tl::expected<void, std::string> infer(ImportedLayer& layer) const;

  std::vector<ImportedLayer> layers_;
  std::map<std::string, int> names_;  // and the number that the next of that name gets
};

}  // namespace stowage
