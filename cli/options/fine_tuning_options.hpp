// The options that say how a model is fine-tuned: part of the option table, and read here.
#pragma once

#include <vector>

#include "cli/options/arguments.hpp"
#include "cli/options/option.hpp"
#include "estimator/model/fine_tuning.hpp"

namespace stowage {

[[nodiscard]] const std::vector<OptionSpec>& fine_tuning_options();

/// What of them was given. Errors: as read_fine_tuning's, each with its option's name.
[[nodiscard]] Result<FineTuningTexts> read_fine_tuning_options(const Arguments& arguments);

}  // namespace stowage
