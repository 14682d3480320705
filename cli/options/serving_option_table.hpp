// The records of the options of serving: a part of option_table().
#pragma once

#include <vector>

#include "cli/options/option.hpp"

namespace stowage {

[[nodiscard]] std::vector<OptionSpec> serving_options();

}  // namespace stowage
