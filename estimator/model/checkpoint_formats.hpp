// CheckpointFormats: how the weights of a checkpoint are quantised, by its quantization_config:
// which layers, in which layouts. The room `adapt` applies it to the graph
// (adapt/quantised_base.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/model/fine_tuning.hpp"
#include "estimator/model/name_pattern.hpp"

namespace stowage {

/// Which modules an entry of a list means.
struct LayerRule {
  enum class Kind {
    linear,      ///< every linear layer: the class name "Linear"
    whole_path,  ///< the module of that path
    match,       ///< re.match of the path (compressed-tensors' "re:", GPTQModel's `dynamic`)
    conversion,  ///< transformers' should_convert_module (quantizers_utils.py, 5.24): the pattern
                 ///< up to a module's boundary, or the path's end
  };
  Kind kind = Kind::linear;
  std::string text;
  std::optional<NamePattern> pattern;
};
[[nodiscard]] bool means(const LayerRule& rule, std::string_view path);

struct FormatGroup {
  std::vector<LayerRule> targets;
  BaseSettings base;
};

struct CheckpointFormats {
  std::string method;               ///< "gptq"
  std::vector<FormatGroup> groups;  ///< the first that means a layer counts
  std::vector<LayerRule> kept;      ///< modules that are not converted
  bool keeps_output = true;         ///< the output layer
  bool blocks_alone = false;        ///< only layers of repeated blocks
  bool converts_experts = false;    ///< those that lie in one tensor for all experts, too
  bool experts_alone = false;       ///< no linear layer; `kept` names the module of all experts
  bool wide_biases = false;         ///< the experts' biases are float32
};

}  // namespace stowage
