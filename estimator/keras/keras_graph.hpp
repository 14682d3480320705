// Keras' models as graphs of calls: Sequential, Functional, models within models, shared layers.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "estimator/import/imported_model.hpp"
#include "estimator/keras/keras_translation.hpp"

namespace stowage {

/// What a translation of a model's graph found.
struct KerasGraph {
  std::vector<KerasTensor> outputs;
  std::int64_t seq = 0;  ///< 0: no open dimension was taken for a sequence's
  bool has_fixed_batch = false;
  /// Of foreign layers, why they are such: by their number.
  std::map<int, std::string> reasons;
};

inline constexpr int deepest_keras_model = 16;  ///< models within models
inline constexpr std::size_t most_keras_calls = 50'000;

/// `root`: the whole JSON. Errors: a graph that does not hang together, open dimensions without a
/// value; with `allow_unknown` also unknown layers whose output the file does not size.
[[nodiscard]] Result<KerasGraph> translate_keras_graph(const YamlDocument& document,
                                                       const ImportOptions& options,
                                                       KerasTranslation& translation);

/// The layer that a call's tensor comes from: its name, its call, its output.
using KerasHistory = std::tuple<std::string, std::int64_t, std::int64_t>;
struct KerasInbound {
  std::vector<KerasHistory> from;
  std::vector<const YamlNode*> shapes;  ///< of each, as Keras 3 says; null: not said
  KerasConfig keywords;
};
/// The calls of a layer, of `inbound_nodes` as Keras 2 or 3 writes them.
[[nodiscard]] std::vector<KerasInbound> inbound_calls(const YamlNode* inbound);
/// ["name", 0, 0], or a list of such.
[[nodiscard]] std::vector<KerasHistory> histories_of(const YamlNode* node);

}  // namespace stowage
