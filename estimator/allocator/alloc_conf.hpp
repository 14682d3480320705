// PyTorch's syntax for the settings of its allocator: PYTORCH_ALLOC_CONF (before 2.9
// PYTORCH_CUDA_ALLOC_CONF), as a user would put it into the environment.
//
//   max_split_size_mb:128,garbage_collection_threshold:0.8
//   expandable_segments:True
//   roundup_power2_divisions:[256:1,512:2,1024:4,>:8]
//
// Read as PyTorch 2.15 reads it: white space is ignored, the last of two equal keys wins, and a
// trailing comma is allowed. Unlike in PyTorch, a number with trailing letters ("20mb") is an
// error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/allocator/allocator_settings.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct AllocConf {
  AllocatorSettings settings;
  /// Given keys that PyTorch knows but that do not change the simulated device memory: settings of
  /// pinned host memory, locks and graph capture. In the order given, each once.
  std::vector<std::string> without_effect;
};

/// `name`: what messages call the text: "<option --alloc-conf>".
/// Errors, each with its column: an unknown key (with a suggestion), a value of the wrong form or
/// out of bounds, an unexpected token. Reports all mistakes up to the first syntax error.
[[nodiscard]] Result<AllocConf> parse_alloc_conf(std::string_view text,
                                                 std::string name = "PYTORCH_ALLOC_CONF");

}  // namespace stowage
