// Network: the input of a family's writer (configuration and settings) and its output (a
// description's text).
//
// A family's writer reads its keys from `config` and writes blocks and layers into `text`, with the
// names of transformers' modules ("model.layers.3.self_attn.q_proj"). Mistakes go to the config's
// list. After a mistake the text is discarded, so a writer may continue with any value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "estimator/huggingface/config_reader.hpp"
#include "estimator/huggingface/description_text.hpp"
#include "estimator/huggingface/library_version.hpp"

namespace stowage {

/// The head on top of the network, from the ending of the class name in `architectures`.
enum class Head : std::uint8_t {
  none,  ///< "LlamaModel": hidden states, no loss
  causal_lm,
  masked_lm,
  sequence_classification,
  token_classification,
  question_answering,
  conditional_generation,
  image_classification,
};
[[nodiscard]] std::string_view to_string(Head head);

/// The attention function of transformers that runs.
enum class AttentionFunction : std::uint8_t { sdpa, eager };

struct Network {
  ConfigReader& config;
  DescriptionText& text;
  Head head = Head::none;
  AttentionFunction attention = AttentionFunction::sdpa;
  LibraryVersion version = newest_known_version;
  std::int64_t labels = 2;
  /// CLIP: the number of image and text pairs in a step. Its logits have an entry for each text and
  /// image.
  std::optional<std::int64_t> pairs = std::nullopt;
  bool has_loss = true;  ///< false: no loss was asked for; a causal head has no labels then
};

}  // namespace stowage
