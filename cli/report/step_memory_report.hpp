// What a step's tensors take at a batch, where no card and no runtime is named.
#pragma once

#include <cstdint>
#include <memory>

#include "cli/output/json_value.hpp"
#include "cli/output/report.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/memory/footprint.hpp"

namespace stowage {

/// Who is live at the step's peak: tensors alone, exact, without workspaces.
/// Errors: as size_storages'.
[[nodiscard]] Result<Footprint> tensor_footprint(std::shared_ptr<const StepGraph> step,
                                                 std::int64_t batch);

/// {batch, mode, optimizer, peak_tensor_bytes, at, footprint}
[[nodiscard]] Json memory_json(const Footprint& footprint, std::int64_t batch);
void say_memory(const Footprint& footprint, std::int64_t batch, Report& out);

}  // namespace stowage
