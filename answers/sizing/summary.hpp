// What a model is made of: its layers and parameters, and at a batch what its tensors take. Of
// weight files: what lies on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "answers/question/model_question.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/base/shape.hpp"
#include "estimator/base/tensor_layout.hpp"
#include "estimator/memory/footprint.hpp"
#include "estimator/recorded/missing_update.hpp"
#include "estimator/weights/stored_weights.hpp"

namespace stowage {

struct SummaryQuestion {
  ModelQuestion model;  ///< its source may also name weight files
  std::optional<std::int64_t> batch;
  std::optional<TensorLayout> layout;
  bool costs = false;  ///< also what each layer computes and keeps
};

struct SummaryLayer {
  std::string name, op;
  Shape output;                               ///< affine in the batch
  std::vector<std::int64_t> output_at_batch;  ///< at the batch, else at 1
  std::int64_t parameters = 0;
  double flops = 0;  ///< at the batch, else at 1; of the layer's forward pass; 0 without costs
  Bytes saved;       ///< for backward, as above
};

struct ModelSummary {
  std::string name;
  std::string source;  ///< where the network is from; empty: not said
  std::optional<std::int64_t> batch;
  std::vector<SummaryLayer> layers;
  std::int64_t parameters = 0, trainable_parameters = 0;  ///< values
  Bytes parameter_bytes, buffer_bytes;
  double flops = 0;  ///< of all layers
  Bytes saved;       ///< of all layers
  bool has_costs = false;
  std::optional<Footprint> memory;              ///< the step's peak, tensors alone; with a batch
  std::optional<MissingUpdate> missing_update;  ///< of a recorded step; with a batch
  Diagnostics notes;
};

struct WeightsSummary {
  std::string source;
  StoredWeights weights;
};

using SummaryAnswer = std::variant<ModelSummary, WeightsSummary>;

/// Errors: the model's; of a step's file, what was said against what it was made for; a batch at
/// which sizes leave 64 bits.
[[nodiscard]] Result<SummaryAnswer> answer(const SummaryQuestion& question);

}  // namespace stowage
