// Which model, and which step of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stowage/installation.hpp>
#include <string>

namespace stowage {

/// A model, and what is said beside its description.
struct ModelSpec {
  /// A name of the catalogue ("resnet50"), or a file: a description in YAML, a step's file, ONNX,
  /// Keras' JSON, transformers' config.json or a folder with one; told apart by content.
  std::string source;
  std::optional<std::int64_t> seq;  ///< tokens of a sequence; absent: the description's
  std::string precision;            ///< "bf16", "amp-fp16", "mixed-bf16"; empty: the description's
  std::map<std::string, std::string> values;  ///< of the model's own arguments: "classes" = "10"
  std::string loss;  ///< of a file that has none: a catalogue row; empty: the file's own
  /// Fine-tuning, each as the command line takes it; empty: none.
  std::string lora, base, checkpoint;
};

/// A step of it, and the process that runs the step.
struct StepSpec {
  ModelSpec model;
  bool inference = false;          ///< forward alone; else training, where the model has a loss
  std::string optimizer;           ///< "adamw", "sgd"; empty: the description's
  std::int64_t accumulation = 0;   ///< micro-batches before an update; 0: the description's
  std::string runtime;             ///< "pytorch", "tensorflow", "theano", "stowage", "ideal"; or ""
  int gpus = 1;                    ///< that train the model together
  int zero = 0;                    ///< DeepSpeed's stage, 0 to 3
  std::string pytorch_version;     ///< "2.8"; empty: the newest that the CUDA release has
  std::string cuda_version;        ///< "12.1"; empty: the card's usual one
  std::int64_t in_use_bytes = -1;  ///< by others on the card; -1: what is measured, or none
  std::int64_t reserve_bytes = 0;  ///< that must stay free
  /// Workspaces are cuDNN's own answers for the card where cuDNN is found, else a documented
  /// rule's; false: the rule's in any case, and cuDNN is not loaded.
  bool ask_cudnn = true;
  bool keep_cudnn_answers = true;  ///< in the user's cache, from run to run
};

/// A card: of the catalogue, a card's file, or a generic one.
struct GpuSpec {
  std::string name;  ///< "rtx3090", "here": this machine's; empty: a generic card
  std::int64_t memory_bytes =
      0;  ///< CUDA's total; 0: the card's own. Of a generic card at least it
};

}  // namespace stowage
