// Translation: an ONNX graph becoming a LayerList, node by node.
//
// A node whose inputs are all constants is folded (onnx_value.hpp). Any other goes to the rule of
// its operator (translation_rules.hpp), which makes layers. An operator without a rule, or that a
// rule refuses, becomes a foreign layer of the size that ONNX gives it; what of those is left once
// patterns are found is unknown to the catalogue.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "estimator/import/imported_model.hpp"
#include "estimator/onnx/onnx_value.hpp"

namespace stowage {

class Translation {
 public:
  /// Precondition: `graph` and `symbols` outlive it.
  Translation(const OnnxGraph& graph, const std::map<std::string, Affine>& symbols,
              std::string file_name);

  /// The values of the graph's inputs and initialisers.
  void set(const std::string& name, OnnxValue value) { values_[name] = std::move(value); }
  void run();

  // For the rules.
  [[nodiscard]] const OnnxValue& input(const OnnxNode& node, std::size_t number) const;
  [[nodiscard]] bool has(const OnnxNode& node, std::size_t number) const {
    return !input(node, number).is_absent();
  }
  [[nodiscard]] std::vector<const OnnxValue*> inputs(const OnnxNode& node) const;
  /// As the output of a layer, which is made where there is none: `parameter`, `constant`.
  [[nodiscard]] LayerOutput activation(const OnnxValue& value);
  /// Makes a layer. Absent: the row refuses, which is remembered as the reason of the node.
  [[nodiscard]] std::optional<int> layer(const OnnxNode& node, std::string_view row,
                                         std::vector<LayerOutput> from,
                                         Attributes::Entries given = {});
  /// As above, named after the parameter `weight`, which it owns under `parameter`.
  [[nodiscard]] std::optional<int> layer_with_weights(
      const OnnxNode& node, std::string_view row, std::vector<LayerOutput> from,
      Attributes::Entries given,
      const std::vector<std::pair<std::string, const OnnxValue*>>& weights);
  /// The layer's parameter is that initialiser: under its name, or tied to whoever has it first.
  void own(int layer, const std::string& parameter, const OnnxValue& weight);
  /// The node's output is the layer's.
  void give(const OnnxNode& node, int layer, std::size_t output = 0, int layer_output = 0);
  void give(const OnnxNode& node, OnnxValue value, std::size_t output = 0);
  /// Layers that were made for one node and are all of it: rows with one input, chained.
  [[nodiscard]] bool chain(const OnnxNode& node, LayerOutput from,
                           const std::vector<std::pair<std::string, Attributes::Entries>>& rows);
  void refuse(std::string reason) { reason_ = std::move(reason); }

  [[nodiscard]] LayerList& layers() { return layers_; }
  [[nodiscard]] const LayerList& layers() const { return layers_; }
  [[nodiscard]] const OnnxGraph& graph() const { return graph_; }
  [[nodiscard]] const OnnxValue* find(const std::string& name) const;
  [[nodiscard]] Diagnostics& mistakes() { return mistakes_; }
  /// Where the batch was a number in the file; 0: it was a symbol.
  std::int64_t fixed_batch = 0;
  /// Of each foreign layer, why it is one.
  std::map<int, std::string> reasons;
  /// Constants that are causal masks.
  std::set<int> triangles;
  /// Batch norms that an exporter had folded, and are layers again.
  int restored_norms = 0;

 private:
  void translate(const OnnxNode& node);
  void make_foreign(const OnnxNode& node);
  [[nodiscard]] bool folded(const OnnxNode& node);
  [[nodiscard]] std::optional<TensorType> stated_type(const std::string& name) const;
  [[nodiscard]] std::string place_of(const OnnxNode& node) const;

  const OnnxGraph& graph_;
  const std::map<std::string, Affine>& symbols_;
  std::string file_name_;
  LayerList layers_;
  std::unordered_map<std::string, OnnxValue> values_;  // looked up only
  std::unordered_map<std::string_view, const OnnxValueInfo*> stated_;
  std::unordered_map<const OnnxValue*, int> constants_;  // their layers; values_ keeps its places
  std::map<std::pair<int, bool>, int> alone_;  // of each initialiser: its layer `parameter`
  std::size_t folded_numbers_ = 0;
  std::string reason_;
  Diagnostics mistakes_;
};

/// "layer1.0.conv1" of "layer1.0.conv1.weight".
[[nodiscard]] std::string owner_of_parameter(std::string_view name);

}  // namespace stowage
