// AttentionChoice: the attention function of transformers that runs. The command line decides, else
// the file, else the default of the version for the model type.
#pragma once

#include <string>

#include "estimator/huggingface/config_reader.hpp"
#include "estimator/huggingface/families.hpp"
#include "estimator/import/imported_model.hpp"

namespace stowage {

struct AttentionChoice {
  AttentionFunction function = AttentionFunction::sdpa;
  /// The argument `attention` is "paged": a server's own function over blocks of a cache runs
  /// instead of transformers', fused for every family (vLLM caps scores within it). Attention with
  /// sinks is described in products, which a paged cache replaces.
  bool is_paged = false;
  std::string words;  ///< for a note: "'sdpa'", "'flash_attention_2', sized as 'sdpa'"
};

/// Errors: a function that cannot be sized, or that transformers does not have for the type. If the
/// file names it, the error has its place.
[[nodiscard]] Result<AttentionChoice> chosen_attention(ConfigReader& config, const Family& family,
                                                       const LibraryVersion& version,
                                                       const ImportOptions& options);

}  // namespace stowage
