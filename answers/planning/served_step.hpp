// What a question for a plan of serving means: prefill and decode as one step, and decode alone.
#pragma once

#include <cstdint>

#include "answers/question/step_question.hpp"
#include "answers/subject/asked_card.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/model/device_pin.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

/// A pass, as ServingPass has it.
struct PlannedPass {
  std::int64_t batch = 1, tokens = 1, past = 0;
};

struct ServedStep {
  StepDocument round;       ///< both passes, for these numbers alone (serving/served_round.hpp)
  StepDocument decode;      ///< the second alone
  ServingSettings serving;  ///< with the model's usual cache and the server's usual chunk
  PlannedPass prefill_pass, decode_pass;
  CheckSettings settings;
  std::vector<DevicePin> pins;  ///< the description's
};

/// Errors: as those of a check of serving; a cache that has no place of its own in both passes.
[[nodiscard]] Result<ServedStep> served_step(const StepQuestion& question,
                                             const ServingSettings& settings,
                                             const AskedCard& card);

}  // namespace stowage
