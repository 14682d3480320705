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

std::vector<LogicalDevice> logical_devices(const std::vector<ProcessReplay>& replicas,
                                           const std::vector<Bytes>& limits) {
  std::vector<LogicalDevice> devices;
  for (std::size_t i = 0; i < limits.size() && i < replicas.size(); ++i) {
    const ProcessReplay& replica = replicas[i];
    devices.push_back(
        {fmt::format("GPU:{}", i), limits[i], replica.reserved, replica.most_allocated()});
  }
  return devices;
}

std::vector<LogicalDevice> RuntimeRun::logical_devices() const {
  return stowage::logical_devices(replicas, pool_limits);
}

std::vector<LogicalDevice> RuntimeRun::pools_on_card() const {
  return failed_pools ? *failed_pools : logical_devices();
}

}  // namespace stowage
