// The records of the options: parts of option_table(), by what they are about. Options of
// fine-tuning, of serving and of several GPUs have headers of their own.
#pragma once

#include <vector>

#include "cli/options/option.hpp"

namespace stowage {

[[nodiscard]] std::vector<OptionSpec> model_options();  ///< the model and its step
[[nodiscard]] std::vector<OptionSpec> card_options();   ///< the card, the runtime, their software
[[nodiscard]] std::vector<OptionSpec> plan_options();   ///< plans, their validation, output

}  // namespace stowage
