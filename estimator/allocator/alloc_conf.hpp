// PyTorch's syntax for the settings of its allocator: PYTORCH_ALLOC_CONF (before 2.9
// PYTORCH_CUDA_ALLOC_CONF), as a user would put it into the environment.
//
//   max_split_size_mb:128,garbage_collection_threshold:0.8
//   expandable_segments:True
//   roundup_power2_divisions:[256:1,512:2,1024:4,>:8]
//
// Read as PyTorch 2.15 reads it: white space counts for nothing, the last of two equal keys wins, a
// comma may end it. Where PyTorch takes what is half a number ("20mb") it is a mistake here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/allocator/allocator_settings.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct AllocConf {
  AllocatorSettings settings;
  /// Keys that were given, are PyTorch's, and change no device bytes of what is simulated: those of
  /// pinned host memory, of locks and of graph capture. In the order given, each once.
  std::vector<std::string> without_effect;
};

/// `name` is what the text is called in messages: "<option --alloc-conf>".
/// Errors: an unknown key (with a suggestion), a value of the wrong form or out of its bounds,
/// something out of place; each with its column. All mistakes are reported, up to a broken form.
[[nodiscard]] Result<AllocConf> parse_alloc_conf(std::string_view text,
                                                 std::string name = "PYTORCH_ALLOC_CONF");

}  // namespace stowage
