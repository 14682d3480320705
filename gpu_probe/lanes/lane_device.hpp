// LaneDevice: what LanedBackend needs of a device, and all that it knows of one. CUDA's driver is
// one (gpu_probe/cuda); tests put threads with delays in its place, so that the backend's own logic
// is tried where no GPU is.
//
// A lane is a CUDA stream: what is queued on it runs in its order, beside the other lanes. Calls
// return as soon as the work is queued, but for those that say that they wait. An event is a point
// of a lane, with a time.
//
// Errors name the call in the device's own words ("cuMemAlloc fails with error 2 (out of memory)").
// After one the lanes are in no known state; free() and free_host() may still be called.
//
// Called from one thread, but for wait_for() and signal(), which the CPU's lane calls from its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu_probe/backend/backend.hpp"

namespace stowage {

enum class Lane : std::uint8_t { compute, h2d, d2h };
inline constexpr std::array lanes{Lane::compute, Lane::h2d, Lane::d2h};

/// Ids grow in the order of record().
struct LaneEvent {
  std::int64_t id = -1;
};

class LaneDevice {
 public:
  LaneDevice() = default;
  LaneDevice(const LaneDevice&) = delete;
  LaneDevice& operator=(const LaneDevice&) = delete;
  virtual ~LaneDevice() = default;

  [[nodiscard]] virtual std::string name() const = 0;  ///< "cuda: NVIDIA H200"
  [[nodiscard]] virtual KernelDevice kernels() const = 0;

  /// Memory of the device, and of the host, whose first `pinned` bytes copies may use. Contents are
  /// uninitialised; addresses are multiples of 256. Of no bytes: an address all the same.
  [[nodiscard]] virtual Result<std::byte*> allocate(Bytes bytes) = 0;
  [[nodiscard]] virtual Result<std::byte*> allocate_host(Bytes bytes, Bytes pinned) = 0;
  /// Precondition: nothing that is queued uses it.
  virtual void free(std::byte* memory) noexcept = 0;
  virtual void free_host(std::byte* memory) noexcept = 0;

  /// A point behind all that the lane has been given so far.
  [[nodiscard]] virtual Result<LaneEvent> record(Lane lane) = 0;
  /// What the lane is given from now on runs after the event.
  [[nodiscard]] virtual Result<void> wait(Lane lane, LaneEvent event) = 0;
  /// What the lane is given from now on runs once signal() has been called with `count` or more.
  [[nodiscard]] virtual Result<void> wait_for_signal(Lane lane, std::uint64_t count) = 0;

  /// Either address may be the device's, the other is pinned.
  [[nodiscard]] virtual Result<void> copy(Lane lane, std::byte* to, const std::byte* from,
                                          Bytes bytes) = 0;
  [[nodiscard]] virtual Result<void> fill(Lane lane, std::byte* to, std::byte value,
                                          Bytes bytes) = 0;
  /// On the compute lane. What the call points to is copied, but for the tensors' bytes.
  [[nodiscard]] virtual Result<void> launch(const KernelCall& call) = 0;

  /// Waits until the event has been reached. Thread-safe.
  [[nodiscard]] virtual Result<void> wait_for(LaneEvent event) = 0;
  /// Counts never fall. Thread-safe.
  virtual void signal(std::uint64_t count) noexcept = 0;
  /// Waits for all lanes.
  [[nodiscard]] virtual Result<void> synchronize() = 0;

  /// Seconds from one event to another; negative where it came first. Precondition: both have been
  /// reached.
  [[nodiscard]] virtual Result<double> seconds_between(LaneEvent from, LaneEvent to) const = 0;
  /// All events so far are of no more use; signal() counts from 0 again. Precondition: the lanes
  /// are idle.
  [[nodiscard]] virtual Result<void> forget_events() = 0;

  // As Backend's.
  [[nodiscard]] virtual Result<std::optional<MemoryReading>> memory() const { return std::nullopt; }
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
};

}  // namespace stowage
