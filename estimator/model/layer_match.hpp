// Matches layers' paths against the names and patterns of fine-tuning settings.
#pragma once

#include <string_view>

namespace stowage {

/// Whether a layer is a target in peft's sense: `target` is the path, or its last parts ("q_proj"
/// or "self_attn.q_proj" for "layers.0.self_attn.q_proj"), or a pattern with '*' or '?' that
/// matches the whole path (fits_pattern).
[[nodiscard]] bool is_target(std::string_view path, std::string_view target);

/// As is_target, or `target` is a scope that contains the path: "layers.3" for
/// "layers.3.mlp.up_proj".
[[nodiscard]] bool is_target_or_below(std::string_view path, std::string_view target);

/// The last part of a path: "q_proj" for "layers.0.self_attn.q_proj".
[[nodiscard]] std::string_view last_part(std::string_view path);

}  // namespace stowage
