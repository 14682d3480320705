// DeviceMemoryReader: reads a device's memory in use while a plan is executed, at the four moments
// of DeviceMemoryUse. A backend without a device of its own is asked once.
#pragma once

#include <optional>

#include "gpu_probe/run/memory_check.hpp"

namespace stowage {

class DeviceMemoryReader {
 public:
  /// The backend outlives this.
  explicit DeviceMemoryReader(Backend& backend) : backend_(backend) {}

  // To be called in this order. Errors: the backend's.
  [[nodiscard]] Result<void> before();
  /// To be called when all kernels have run, so that libraries that load late are loaded. Frees the
  /// arenas.
  [[nodiscard]] Result<void> loaded();
  /// Allocates the plan's arenas and frees them again. Nullopt: there is no device.
  [[nodiscard]] Result<std::optional<DeviceMemoryUse>> with_arenas_and_after(const Plan& plan);

 private:
  [[nodiscard]] Result<void> read(MemoryReading& reading);

  Backend& backend_;
  DeviceMemoryUse use_;
  bool is_read_ = false;
};

}  // namespace stowage
