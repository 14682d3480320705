// Reads `quantization_config` of a config.json: how the weights on disk are quantised, as
// transformers 5.24 reads it (utils/quantization_config.py, quantizers/) and, where serving has a
// paged cache, as vLLM keeps it on the card.
//
//   quant_method         layout                                  modules that stay
//   gptq                 bits, group_size; `dynamic` per layer   all outside the repeated blocks
//   awq                  version gemm, gemv or gemv_fast         modules_to_not_convert, the output
//   fp8                  weight_block_size, else a scale         modules_to_not_convert,
//   ignored_layers fbgemm_fp8           a scale a row modules_to_not_convert compressed-tensors
//   config_groups by their targets          ignore. transformers restores these
//                        weights before the first pass           (compressed-tensors 0.20,
//                                                                add_decompress_hook): there they
//                                                                are sized as restored
//   bitsandbytes         nf4, fp4, int8                          llm_int8_skip_modules
//   torchao              int4, int8, float8                      modules_to_not_convert
//   mxfp4                of gpt-oss's experts alone, a model type that is not read: refused
//
// Where a list is not given, the output layer stays. Embeddings, norms, routers and tied weights
// always do.
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
  /// before 5, "bf16" of fbgemm_fp8; empty: none of its own.
  std::string precision;
};

/// Errors, at their places: a method, a layout or a pattern that is not sized.
[[nodiscard]] QuantisedWeights read_quantised_weights(ConfigReader& config,
                                                      const WeightLoader& loader);

}  // namespace stowage
