// How a step and its settings are told, in the words and the JSON that all commands share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/json_value.hpp"
#include "estimator/card/software_stack.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/step/choose_step.hpp"

namespace stowage {

/// "vgg16, batch 64, training with sgd, fp32"
[[nodiscard]] std::string describe_step(const ModelGraph& model, const LoweringSettings& lowering,
                                        std::optional<std::int64_t> batch,
                                        std::optional<std::int64_t> seq);
/// The JSON member `settings` that every command about a step prints.
[[nodiscard]] Json settings_json(const ModelGraph& model, const ChosenStep& chosen,
                                 std::int64_t batch, std::optional<std::int64_t> seq,
                                 std::string_view runtime);
/// The JSON member `software`.
[[nodiscard]] Json stack_json(const SoftwareStack& stack);
/// The JSON member `tensorflow`; null with other runtimes.
[[nodiscard]] Json tensorflow_json(const CheckSettings& settings);

}  // namespace stowage
