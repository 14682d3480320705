// Reads `quantization_config` of a config.json: how the weights on disk are quantised, as
// transformers 5.24 reads it (utils/quantization_config.py, quantizers/) and, where serving has a
// paged cache, as vLLM keeps it on the card.
//
//   quant_method         what of it is read, and the list of modules that stay
//   gptq                 bits, group_size, dynamic; all outside the repeated blocks stay
//   awq                  version, group_size; modules_to_not_convert, and the output
//   fp8                  weight_block_size, scale_fmt; modules_to_not_convert or ignored_layers
//   fbgemm_fp8           modules_to_not_convert
//   compressed-tensors   config_groups by their targets; ignore
//   bitsandbytes         load_in_8bit, load_in_4bit; llm_int8_skip_modules
//   torchao              quant_type; modules_to_not_convert
//   mxfp4                of gpt-oss' experts alone; modules_to_not_convert, dequantize
//
// Where no list is given, the output layer stays. Embeddings, norms, routers and tied weights
// always do. transformers restores compressed-tensors' weights before the first pass
// (compressed-tensors 0.20, add_decompress_hook): there they are sized as restored.
#pragma once

#include <memory>
#include <string>

#include "estimator/huggingface/config_reader.hpp"
#include "estimator/huggingface/library_version.hpp"
#include "estimator/model/checkpoint_formats.hpp"

namespace stowage {

/// What loads the weights.
struct WeightLoader {
  LibraryVersion version;
  bool is_paged = false;  ///< a server with a paged cache
};

struct QuantisedWeights {
  /// Null: the file does not say, or what loads it restores the weights.
  std::shared_ptr<const CheckpointFormats> stored;
  /// The format that the method asks for where from_pretrained is given none: "fp16" in versions
  /// before 5, "bf16" of fbgemm_fp8 and mxfp4; empty: none of its own.
  std::string precision;
};

/// Errors, at their places: a method, a layout or a pattern that is not sized.
[[nodiscard]] QuantisedWeights read_quantised_weights(ConfigReader& config,
                                                      const WeightLoader& loader);

}  // namespace stowage
