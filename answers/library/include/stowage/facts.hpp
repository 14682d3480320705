// What a model is made of; what the catalogues have.
#pragma once

#include <cstdint>
#include <optional>
#include <stowage/message.hpp>
#include <stowage/model.hpp>
#include <string>
#include <vector>

namespace stowage {

struct LayerFacts {
  std::string name, op;
  std::vector<std::int64_t> output;  ///< its shape at the batch
  std::int64_t parameters = 0;
};

struct ModelFacts {
  std::string name;
  std::int64_t parameters = 0, trainable_parameters = 0;
  std::int64_t parameter_bytes = 0, buffer_bytes = 0;
  std::int64_t peak_tensor_bytes = 0;  ///< of a step at the batch, tensors alone; 0 without a batch
  std::vector<LayerFacts> layers;
  Messages notes;
};

/// `batch`: absent: shapes are those of 1. Errors: the model cannot be found or read.
[[nodiscard]] Answered<ModelFacts> describe(const ModelSpec& model,
                                            std::optional<std::int64_t> batch = {});

/// The names in the catalogues, sorted. Errors: these are not found.
[[nodiscard]] Answered<std::vector<std::string>> model_names();
[[nodiscard]] Answered<std::vector<std::string>> gpu_names();

}  // namespace stowage
