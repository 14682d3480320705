// The writers of other programs' configurations, a source each: a step, or a served model, as the
// text of a file.
//
// Every key was read in the program's own source, of the version that docs/engines.md names.
// tests/engines/check_exports.py has the files read by the programs' own classes.
#pragma once

#include "answers/exporting/engine_step.hpp"
#include "answers/sizing/serving.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// DeepSpeed's ds_config, JSON. Errors: FSDP.
[[nodiscard]] Result<EngineFile> deepspeed_file(const EngineStep& step);
/// The same as a tree, for programs that hold it in a file of their own.
[[nodiscard]] SettingsTree deepspeed_tree(const EngineStep& step);

}  // namespace stowage
