// Layers by name, as fine-tuning says them.
#pragma once

#include <string_view>

namespace stowage {

/// A target as peft takes it: the path itself, or its last parts from a dot on ("q_proj" and
/// "self_attn.q_proj" of "layers.0.self_attn.q_proj"); with '*' or '?' a pattern of the whole path
/// (fits_pattern).
[[nodiscard]] bool is_target(std::string_view path, std::string_view target);

/// A target, or a scope that the path lies in: "layers.3" of "layers.3.mlp.up_proj".
[[nodiscard]] bool is_target_or_below(std::string_view path, std::string_view target);

/// "q_proj" of "layers.0.self_attn.q_proj".
[[nodiscard]] std::string_view last_part(std::string_view path);

}  // namespace stowage
