// How a step and its settings are told, in the words and the JSON that all commands share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/output/json_value.hpp"
#include "estimator/card/software_stack.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/runtime/check_settings.hpp"

namespace stowage {

/// What is told of a step.
struct ToldStep {
  std::string model;
  LoweringSettings lowering;
  Precision precision = Precision::fp32;
  std::int64_t accumulation = 1;
  std::int64_t seq = 0;  ///< 0: the model has no symbol `seq`
};
[[nodiscard]] ToldStep told_step(const StepDocument& document);

/// "FSDP, not resharded after forward, reduced in bfloat16"
[[nodiscard]] std::string fsdp_text(const FullyShard& fsdp);
/// "vgg16, batch 64, training with sgd, fp32"
[[nodiscard]] std::string describe_step(const ToldStep& step, std::optional<std::int64_t> batch);
/// The JSON member `settings` that every command about a step prints.
[[nodiscard]] Json settings_json(const ToldStep& step, std::int64_t batch,
                                 std::string_view runtime);
/// The JSON member `software`.
[[nodiscard]] Json stack_json(const SoftwareStack& stack);
/// The JSON member `tensorflow`; null with other runtimes.
[[nodiscard]] Json tensorflow_json(const CheckSettings& settings);
/// The JSON member `theano`; null with other runtimes.
[[nodiscard]] Json theano_json(const CheckSettings& settings);

}  // namespace stowage
