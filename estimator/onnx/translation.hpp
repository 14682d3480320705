// Translation: an ONNX graph that is being translated to a LayerList, node by node.
//
// A node with constant inputs is folded (onnx_value.hpp). For any other node the rule of its
// operator (translation_rules.hpp) makes layers. If there is no rule, or it fails, the node becomes
// a foreign layer of the size that ONNX gives it. Foreign layers that are left after the search for
// patterns are unknown operators.
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

  /// Sets the value of one of the graph's inputs or initialisers.
  void set_value(const std::string& name, OnnxValue value) {
    drop_excess_numbers(value);
    values_[name] = std::move(value);
  }
  void run();

  // For the rules.
  [[nodiscard]] const OnnxValue& input(const OnnxNode& node, std::size_t number) const;
  [[nodiscard]] bool has(const OnnxNode& node, std::size_t number) const {
    return !input(node, number).is_absent();
  }
  [[nodiscard]] std::vector<const OnnxValue*> inputs(const OnnxNode& node) const;
  /// The value as a layer's output. For a parameter or a constant a layer `parameter` or `constant`
  /// is made.
  [[nodiscard]] LayerOutput activation(const OnnxValue& value);
  /// Makes a layer. Absent: the row's shape rule fails, and its message becomes the node's reason.
  [[nodiscard]] std::optional<int> layer(const OnnxNode& node, std::string_view row,
                                         std::vector<LayerOutput> from,
                                         Attributes::Entries given = {});
  /// As above, for a layer with parameters. It is named after its first weight.
  [[nodiscard]] std::optional<int> layer_with_weights(
      const OnnxNode& node, std::string_view row, std::vector<LayerOutput> from,
      Attributes::Entries given,
      const std::vector<std::pair<std::string, const OnnxValue*>>& weights);
  /// Makes the initialiser the layer's parameter: named after it, or tied to the first layer that
  /// has it.
  void set_parameter(int layer, const std::string& parameter, const OnnxValue& weight);
  /// Sets the node's output to a layer's output, or to a value.
  void set_output(const OnnxNode& node, int layer, std::size_t output = 0, int layer_output = 0);
  void set_output(const OnnxNode& node, OnnxValue value, std::size_t output = 0);
  /// Makes a chain of layers with one input each for a node, whose output is that of the last one.
  [[nodiscard]] bool chain(const OnnxNode& node, LayerOutput from,
                           const std::vector<std::pair<std::string, Attributes::Entries>>& rows);
  void refuse(std::string reason) { reason_ = std::move(reason); }

  [[nodiscard]] LayerList& layers() { return layers_; }
  [[nodiscard]] const LayerList& layers() const { return layers_; }
  [[nodiscard]] const OnnxGraph& graph() const { return graph_; }
  [[nodiscard]] const OnnxValue* find(const std::string& name) const;
  [[nodiscard]] Diagnostics& mistakes() { return mistakes_; }
  /// The batch if it was a number in the file; 0: it was a symbol.
  std::int64_t fixed_batch = 0;
  /// By foreign layer: why it is foreign.
  std::map<int, std::string> reasons;
  /// The constant layers that are causal masks.
  std::set<int> causal_masks;
  /// The number of batch norms that an exporter had folded and that were restored.
  int restored_norms = 0;

 private:
  void translate(const OnnxNode& node);
  [[nodiscard]] bool has_too_many_outputs(const OnnxNode& node);
  void set_folded(const OnnxNode& node, OnnxValue value, std::size_t output);
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
  // Their layers; addresses in values_ are stable.
  std::unordered_map<const OnnxValue*, int> constants_;
  // By initialiser and transposition: its layer `parameter`.
  std::map<std::pair<int, bool>, int> parameter_layers_;
  int counted_layers_ = 0;
  std::size_t made_outputs_ = 0;  ///< of the counted layers
  FoldingBudget folding_budget_;
  std::string reason_;
  Diagnostics mistakes_;
};

/// The layer that owns a parameter: "layer1.0.conv1" for "layer1.0.conv1.weight".
[[nodiscard]] std::string owner_of_parameter(std::string_view name);

}  // namespace stowage
