// Cure: what a caller could ask for instead, where a request is refused.
//
// Whoever computes names the cure, in words that hold for every caller, in a hint. How a user asks
// for it is known to whoever reads the requests: the command line puts its options in the place of
// these words (cli/options/setting_names.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stowage {

enum class Cure : std::uint8_t {
  smaller_batch,
  larger_batch,
  number_of_gpus,      ///< say how many there are
  inference,           ///< forward alone
  pytorch_kernels,     ///< PyTorch's kernel set
  stowage_kernels,     ///< our own kernel set
  contiguous_layout,   ///< NCHW
  no_rule_of_thumb,    ///< leave it out
  described_card,      ///< a card that is known, or described
  tensors_alone,       ///< a total instead of a card, and no runtime on it
  own_total,           ///< the user's own total in place of the catalogue's
  host_execution,      ///< a plan is executed on the CPU
  cuda_libraries,      ///< where cuDNN, cuBLAS and NVRTC lie
  sequence_length,     ///< of a model whose file leaves it open
  dimension_size,      ///< as above, of any other dimension
  one_attention_call,  ///< of a config.json that states an older transformers
  adapters,            ///< of the settings that follow
  quantised_base,      ///< of the format that follows
  another_loss,        ///< of a file that has none
  results_apart,       ///< of layers that are taken to overwrite their input
  growing_cache,       ///< transformers' dynamic cache, in place of a static one
  cache_as_computed,   ///< leave out the format that a cache stores
  quantised_cache,     ///< transformers' quantised cache
  library_version,     ///< of transformers, in place of the one that a config.json states
  layer_size,          ///< of a layer that is counted by its output, where the file lacks it
  tensorflow_runtime,  ///< of a model of Keras
  count_unknown,       ///< operators of no row by the sizes of their outputs; the last: cure_count
};

inline constexpr int cure_count = static_cast<int>(Cure::count_unknown) + 1;

/// "give a smaller batch". No cure's words stand in another's.
[[nodiscard]] std::string_view in_words(Cure cure);
[[nodiscard]] inline std::string hint_of(Cure cure) { return std::string(in_words(cure)); }
/// "use another optimizer, or use PyTorch's kernels"
[[nodiscard]] std::string hint_of(std::string_view hint, Cure other);

}  // namespace stowage
