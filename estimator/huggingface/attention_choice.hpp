// Which attention function of transformers runs: what the command line asks for, else what the file
// states, else what the version takes for the model type.
#pragma once

#include <string>

#include "estimator/huggingface/config_reader.hpp"
#include "estimator/huggingface/families.hpp"
#include "estimator/import/imported_model.hpp"

namespace stowage {

struct AttentionChoice {
  AttentionFunction function = AttentionFunction::sdpa;
  /// The argument `attention` says "paged": a server's own function over blocks of a cache, fused
  /// for every family (vLLM caps scores within it), in place of transformers'.
  bool is_paged = false;
  std::string words;  ///< for a note: "'sdpa'", "'flash_attention_2', sized as 'sdpa'"
};

/// Errors: a function that is not sized, or that transformers does not have for the type. One that
/// the file states is reported at its place.
[[nodiscard]] Result<AttentionChoice> chosen_attention(ConfigReader& config, const Family& family,
                                                       const LibraryVersion& version,
                                                       const ImportOptions& options);

}  // namespace stowage
