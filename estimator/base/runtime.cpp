#include "estimator/base/runtime.hpp"

#include <algorithm>

namespace stowage {

std::optional<Runtime> find_runtime(std::string_view name) {
  const auto found = std::ranges::find(runtime_table, name, &RuntimeTraits::name);
  return found == runtime_table.end() ? std::nullopt : std::optional(found->runtime);
}

Runtime planned_in_place_of(Runtime runtime) {
  if (is_planned(runtime)) return runtime;
  const auto found = std::ranges::find_if(runtime_table, [&](const RuntimeTraits& row) {
    return row.is_planned && row.kernels == kernel_set_of(runtime);
  });
  return found == runtime_table.end() ? runtime : found->runtime;
}

}  // namespace stowage
