// The keys of `train:` that say how a model is fine-tuned: lora, base, checkpoint, layer_dtype,
// chunked_loss, offload_activations, optimizer_in_backward.
//
// Each takes the text that the command line takes, or a mapping of the same settings, in which
// names are a list: {r: 16, targets: [q_proj, v_proj]}.
#pragma once

#include <span>
#include <string_view>

#include "estimator/model/fine_tuning.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

[[nodiscard]] std::span<const std::string_view> fine_tuning_keys();

/// Reads one of these keys into `settings`. A value that does not suit is reported at its place and
/// leaves them as they were. `true` of `checkpoint` and `offload_activations` means `all`; `false`
/// says nothing.
void read_fine_tuning_key(std::string_view key, const YamlNode& value, FineTuning& settings,
                          Mistakes& mistakes);

}  // namespace stowage
