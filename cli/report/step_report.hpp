// How a step and its settings are shown, in the words and the JSON that all commands share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "answers/sizing/step_summary.hpp"
#include "cli/output/json_value.hpp"
#include "estimator/card/software_stack.hpp"
#include "estimator/runtime/check_settings.hpp"

namespace stowage {

/// "with sgd", "without an update", "with sgd, some parameters without an update"
[[nodiscard]] std::string update_text(const OptimizerSettings& optimizer,
                                      const std::optional<MissingUpdate>& missing);
/// Null where nothing is missing.
[[nodiscard]] Json missing_update_json(const std::optional<MissingUpdate>& missing);

/// "vgg16, batch 64, training with sgd, fp32"
[[nodiscard]] std::string describe_step(const StepSummary& step, std::optional<std::int64_t> batch);
/// ", 32 on each of 2 virtual GPUs"; "" of one.
[[nodiscard]] std::string describe_replicas(std::int64_t batch, const CheckSettings& settings);

/// The JSON member `settings` that every command about a step prints.
[[nodiscard]] Json settings_json(const StepSummary& step, std::int64_t batch,
                                 std::string_view runtime);
/// The JSON member `loop`. Null: the step does not train, or its training script is not known.
[[nodiscard]] Json loop_json(const StepSummary& step);
/// The JSON member `software`.
[[nodiscard]] Json stack_json(const SoftwareStack& stack);
/// Appends `software`, `tensorflow` and `theano`; the latter two are null with other runtimes.
void add_process(const CheckSettings& settings, Json::Object& json);

}  // namespace stowage
