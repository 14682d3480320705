// The options that say how several GPUs share a model out: part of the option table, and read here.
#pragma once

#include <vector>

#include "cli/options/arguments.hpp"
#include "cli/options/option.hpp"
#include "estimator/step/data_parallel.hpp"

namespace stowage {

[[nodiscard]] const std::vector<OptionSpec>& sharding_options();

/// --gpus, --zero, --fsdp and --offload. Errors: a setting that there is not, or a value out of its
/// range, with what there is instead; --fsdp without a number of GPUs.
[[nodiscard]] Result<DataParallel> read_sharding(const Arguments& arguments);

}  // namespace stowage
