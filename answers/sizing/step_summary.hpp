// StepSummary: what an answer says of the step that it is about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "answers/sizing/training_loop.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/recorded/missing_update.hpp"

namespace stowage {

struct StepSummary {
  std::string model;
  LoweringSettings lowering;
  Precision precision = Precision::fp32;
  std::int64_t accumulation = 1;
  std::int64_t seq = 0;                              ///< 0: the model has no symbol `seq`
  std::optional<MissingUpdate> missing_update = {};  ///< of a recorded step
  std::optional<TrainingLoop> loop = {};
};
[[nodiscard]] StepSummary summarise_step(const StepDocument& document);

}  // namespace stowage
