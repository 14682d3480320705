#include "estimator/base/cure.hpp"

#include <fmt/format.h>

namespace stowage {

std::string_view in_words(Cure cure) {
  switch (cure) {
    case Cure::smaller_batch:
      return "give a smaller batch";
    case Cure::larger_batch:
      return "give a larger batch";
    case Cure::number_of_gpus:
      return "say how many there are";
    case Cure::inference:
      return "run the model forward alone";
    case Cure::pytorch_kernels:
      return "use PyTorch's kernels";
    case Cure::stowage_kernels:
      return "use Stowage's own kernels";
    case Cure::contiguous_layout:
      return "use contiguous tensors";
    case Cure::no_rule_of_thumb:
      return "leave out the rule of thumb";
    case Cure::described_card:
      return "take a card of the catalogue, or describe it in a file";
    case Cure::tensors_alone:
      return "size the tensors alone, for a total of";
    case Cure::own_total:
      return "give your own card's total";
    case Cure::host_execution:
      return "execute it on the CPU";
    case Cure::cuda_libraries:
      return "install NVIDIA's libraries, as PyTorch's packages do, or say where they lie";
    case Cure::sequence_length:
      return "give the sequence a length";
    case Cure::dimension_size:
      return "give the dimension a size";
    case Cure::one_attention_call:
      return "read a config.json of an older transformers with attention in one call";
    case Cure::adapters:
      return "train adapters of";
    case Cure::quantised_base:
      return "take its linear layers as a frozen base of";
    case Cure::another_loss:
      return "name another loss, or none";
    case Cure::results_apart:
      return "let every layer make a result of its own";
    case Cure::growing_cache:
      return "take a cache that grows by each token";
    case Cure::cache_as_computed:
      return "keep keys and values as the model computes them";
    case Cure::quantised_cache:
      return "take transformers' quantised cache";
    case Cure::library_version:
      return "run it as another version of transformers does";
    case Cure::layer_size:
      return "state the size of the layer's output, without the batch";
    case Cure::tensorflow_runtime:
      return "size it as TensorFlow runs it";
    case Cure::count_unknown:
      return "have unknown operators counted by their outputs";
  }
  return "";
}

std::string hint_of(std::string_view hint, Cure other) {
  return fmt::format("{}, or {}", hint, in_words(other));
}

}  // namespace stowage
