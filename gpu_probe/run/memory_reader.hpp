// Reads a device's memory while a plan is executed, at the four moments of DeviceMemoryUse. A
// backend without a device of its own is asked once.
#pragma once

#include <optional>

#include "gpu_probe/run/memory_check.hpp"

namespace stowage {

class DeviceMemoryReader {
 public:
  /// The backend outlives this.
  explicit DeviceMemoryReader(Backend& backend) : backend_(backend) {}

  // In this order. Errors: the backend's.
  [[nodiscard]] Result<void> before();
  /// Once everything has run, so that what is loaded late is there. Gives the arenas back.
  [[nodiscard]] Result<void> loaded();
  /// Allocates the plan's arenas and gives them back; nullopt: there is no device.
  [[nodiscard]] Result<std::optional<DeviceMemoryUse>> with_arenas_and_after(const Plan& plan);

 private:
  [[nodiscard]] Result<void> read(MemoryReading& reading);

  Backend& backend_;
  DeviceMemoryUse use_;
  bool is_read_ = false;
};

}  // namespace stowage
