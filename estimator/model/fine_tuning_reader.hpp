// Reads the keys of `train:` for fine-tuning: lora, base, checkpoint, layer_dtype, chunked_loss,
// offload_activations, optimizer_in_backward.
//
// The value of each is a text as on the command line, or a mapping of the same settings, in which
// names are a list: {r: 16, targets: [q_proj, v_proj]}.
#pragma once

#include <span>
#include <string_view>

#include "estimator/model/fine_tuning.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

[[nodiscard]] std::span<const std::string_view> fine_tuning_keys();

/// Reads one of these keys into `settings`. Reports an invalid value at its place and leaves
/// `settings` unchanged. For `checkpoint` and `offload_activations`, `true` means `all` and `false`
/// means nothing.
void read_fine_tuning_key(std::string_view key, const YamlNode& value, FineTuning& settings,
                          Mistakes& mistakes);

}  // namespace stowage
