// QuantisationReader: what the readers of quantization_config share: its values with their places,
// and its lists of modules as rules.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/huggingface/config_reader.hpp"
#include "estimator/huggingface/quantised_weights.hpp"

namespace stowage {

class QuantisationReader {
 public:
  QuantisationReader(const YamlNode& node, const ConfigReader& whole, const WeightLoader& loader,
                     Mistakes& mistakes)
      : config_(node, whole.type(), "quantization_config.", mistakes), loader_(loader) {}

  [[nodiscard]] ConfigReader& config() { return config_; }
  [[nodiscard]] const WeightLoader& loader() const { return loader_; }
  /// The value is there, and neither null nor false.
  [[nodiscard]] bool is_set(std::string_view key);
  /// The text under the first of the keys that is there; empty: none.
  [[nodiscard]] std::string text(std::string_view key, std::string_view other = {});
  /// Values of a group: 0 for -1, which means whole rows.
  [[nodiscard]] std::int64_t group_size(std::string_view key, std::int64_t usual);
  /// Adds the modules of a list; without one there, the output layer stays.
  void keep(CheckpointFormats& stored, std::string_view key, LayerRule::Kind kind);
  /// The rule of a text of a list. A text that is no pattern is an error at `mark`.
  [[nodiscard]] LayerRule rule(LayerRule::Kind kind, std::string_view text, const Mark& mark);
  /// An error about a key: `message`, and that it is not sized.
  void refuse(std::string_view key, const std::string& message, std::string hint = {});

 private:
  ConfigReader config_;
  WeightLoader loader_;
};

/// Every linear layer in one format.
[[nodiscard]] FormatGroup group_of_all(BaseSettings base);
[[nodiscard]] BaseSettings packed_base(PackedLayout layout);

// The readers of three methods, which have files of their own.
void read_compressed_tensors(QuantisationReader& reader, CheckpointFormats& stored);
void read_torchao(QuantisationReader& reader, CheckpointFormats& stored);
void read_gptq(QuantisationReader& reader, CheckpointFormats& stored);

}  // namespace stowage
