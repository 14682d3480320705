// The functions behind the sub-commands, one a source of the same name.
#pragma once

#include "cli/command.hpp"

namespace stowage {

[[nodiscard]] Result<Answer> run_check(const Arguments& arguments);
[[nodiscard]] Result<Answer> run_batch(const Arguments& arguments);
[[nodiscard]] Result<Answer> run_plan_command(const Arguments& arguments);
[[nodiscard]] Result<Answer> run_validate(const Arguments& arguments);
[[nodiscard]] Result<Answer> run_export(const Arguments& arguments);
[[nodiscard]] Result<Answer> run_probe(const Arguments& arguments);
[[nodiscard]] Result<Answer> run_summary(const Arguments& arguments);
[[nodiscard]] Result<Answer> run_models(const Arguments& arguments);
[[nodiscard]] Result<Answer> run_gpus(const Arguments& arguments);
[[nodiscard]] Result<Answer> run_ops(const Arguments& arguments);
[[nodiscard]] Result<Answer> run_help(const Arguments& arguments);

}  // namespace stowage
