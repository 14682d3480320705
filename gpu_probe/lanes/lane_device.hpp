// LaneDevice: a device with lanes, as LanedBackend uses it. CUDA's driver is one (gpu_probe/cuda).
// Tests put threads with delays in its place, so that the backend is tested without a GPU.
//
// A lane is a CUDA stream: the work that is queued on it runs in its order, beside the other lanes.
// Calls return as soon as their work is queued, unless they say that they wait. An event is a point
// of a lane, with a time.
//
// Errors name the call in the device's own words ("cuMemAlloc fails with error 2 (out of memory)").
// After an error the state of the lanes is unknown; free() and free_host() may still be called.
//
// All functions are called from one thread, except wait_for() and signal(), which the CPU's lane
// calls from its own thread.
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

  /// Memory of the device, and memory of the host, whose first `pinned` bytes are for copies.
  /// Contents are uninitialised. Addresses are multiples of 256. Zero bytes have an address too.
  [[nodiscard]] virtual Result<std::byte*> allocate(Bytes bytes) = 0;
  [[nodiscard]] virtual Result<std::byte*> allocate_host(Bytes bytes, Bytes pinned) = 0;
  /// Precondition: no work that is queued uses the memory.
  virtual void free(std::byte* memory) noexcept = 0;
  virtual void free_host(std::byte* memory) noexcept = 0;

  /// An event behind all work that the lane has been given so far.
  [[nodiscard]] virtual Result<LaneEvent> record(Lane lane) = 0;
  /// Work that the lane is given from now on runs after the event.
  [[nodiscard]] virtual Result<void> wait(Lane lane, LaneEvent event) = 0;
  /// Work that the lane is given from now on runs when signal() has been called with `count` or
  /// more.
  [[nodiscard]] virtual Result<void> wait_for_signal(Lane lane, std::uint64_t count) = 0;

  /// One of the addresses is the device's; the other is pinned.
  [[nodiscard]] virtual Result<void> copy(Lane lane, std::byte* to, const std::byte* from,
                                          Bytes bytes) = 0;
  [[nodiscard]] virtual Result<void> fill(Lane lane, std::byte* to, std::byte value,
                                          Bytes bytes) = 0;
  /// Queues a kernel on the compute lane. Copies the call and all that it points to, but not the
  /// tensors' bytes.
  [[nodiscard]] virtual Result<void> launch(const KernelCall& call) = 0;

  /// Waits until the event has been reached. Thread-safe.
  [[nodiscard]] virtual Result<void> wait_for(LaneEvent event) = 0;
  /// Sets the signal's count, which never gets smaller. Thread-safe.
  virtual void signal(std::uint64_t count) noexcept = 0;
  /// Waits for all lanes.
  [[nodiscard]] virtual Result<void> synchronize() = 0;

  /// Seconds from one event to another; negative if the other came first. Precondition: both have
  /// been reached.
  [[nodiscard]] virtual Result<double> seconds_between(LaneEvent from, LaneEvent to) const = 0;
  /// Forgets all events so far; signal() counts from 0 again. Precondition: the lanes are idle.
  [[nodiscard]] virtual Result<void> forget_events() = 0;

  // As the functions of Backend.
  [[nodiscard]] virtual Result<std::optional<MemoryReading>> memory() const { return std::nullopt; }
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
};

}  // namespace stowage
