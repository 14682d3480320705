// Translates Keras models as graphs of layer calls: Sequential, Functional, nested models, shared
// layers.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "estimator/import/imported_model.hpp"
#include "estimator/keras/keras_translation.hpp"

namespace stowage {

/// The result of translating a model's graph.
struct KerasGraph {
  std::vector<KerasTensor> outputs;
  std::int64_t seq = 0;  ///< 0: no open dimension is the sequence length
  bool has_fixed_batch = false;
  /// By the number of a foreign layer: why it is foreign.
  std::map<int, std::string> reasons;
};

inline constexpr int deepest_keras_model = 16;  ///< levels of nested models
inline constexpr std::size_t most_keras_calls = 50'000;

/// `root`: the whole JSON. Errors: an inconsistent graph, open dimensions without a value; with
/// `allow_unknown` also unknown layers whose output size the file does not say.
[[nodiscard]] Result<KerasGraph> translate_keras_graph(const YamlDocument& document,
                                                       const ImportOptions& options,
                                                       KerasTranslation& translation);

/// Where a call's input tensor comes from: the layer's name, its call, its output.
using KerasHistory = std::tuple<std::string, std::int64_t, std::int64_t>;
/// One call of a layer: its input tensors and keyword arguments.
struct KerasInbound {
  std::vector<KerasHistory> from;
  std::vector<const YamlNode*> shapes;  ///< of each input, in Keras 3 files; null: not given
  const YamlNode* arguments = nullptr;  ///< in Keras 3 files: the list, with the input tensors
  KerasConfig keywords;
};
/// The calls of a layer, from `inbound_nodes` in the form of Keras 2 or 3.
[[nodiscard]] std::vector<KerasInbound> inbound_calls(const YamlNode* inbound);
/// Reads ["name", 0, 0], or a list of such entries.
[[nodiscard]] std::vector<KerasHistory> histories_of(const YamlNode* node);

}  // namespace stowage
