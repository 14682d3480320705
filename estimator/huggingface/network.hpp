// Network: what a family's writer is given, and what it fills.
//
// A family's writer reads its keys from `config` and writes blocks and layers into `text`, with the
// names that transformers' modules have ("model.layers.3.self_attn.q_proj"). Mistakes go to the
// config's list; after one the text is thrown away, so a writer may go on with any value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "estimator/huggingface/config_reader.hpp"
#include "estimator/huggingface/description_text.hpp"
#include "estimator/huggingface/library_version.hpp"

namespace stowage {

/// What stands on the network, by the ending of the class in `architectures`.
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

/// Which of transformers' attention functions runs.
enum class AttentionFunction : std::uint8_t { sdpa, eager };

struct Network {
  ConfigReader& config;
  DescriptionText& text;
  Head head = Head::none;
  AttentionFunction attention = AttentionFunction::sdpa;
  LibraryVersion version = newest_known_version;
  std::int64_t labels = 2;
  /// Of CLIP: the pairs of a step whose logits, each text beside each image, are sized.
  std::optional<std::int64_t> pairs = std::nullopt;
  bool has_loss = true;  ///< false: the user wants none; a causal head takes no labels then
};

}  // namespace stowage
