// Reads the keys of `train:` for the step, besides its optimizer: precision, accumulation,
// zero_grad, augment, prefetch, layout.
#pragma once

#include <span>
#include <string_view>

#include "estimator/model/model_description.hpp"
#include "estimator/model/written_value.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

[[nodiscard]] std::span<const std::string_view> step_setting_keys();

/// Reads one of these keys into `train`. Reports an invalid value and leaves `train` unchanged.
void read_step_setting(std::string_view key, const YamlNode& value, const ModelDescription& model,
                       TrainSettings& train, Mistakes& mistakes);

}  // namespace stowage
