#include "estimator/runtime/runtime_run.hpp"

#include <fmt/format.h>

namespace stowage {

ReservedBytes RuntimeRun::reserved() const {
  ReservedBytes sum;
  for (const ProcessReplay& replica : replicas) {
    sum.loaded += replica.loaded.reserved;
    sum.first_step += replica.first_step.reserved;
    sum.most += replica.reserved;
  }
  return sum;
}

std::vector<LogicalDevice> RuntimeRun::logical_devices() const {
  std::vector<LogicalDevice> devices;
  for (std::size_t i = 0; i < pool_limits.size(); ++i) {
    const ProcessReplay& replica = replicas[i];
    devices.push_back(
        {fmt::format("GPU:{}", i), pool_limits[i], replica.reserved, replica.most_allocated()});
  }
  return devices;
}

}  // namespace stowage
