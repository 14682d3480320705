// Backend: where a plan is executed. One interface, two machines: `host` (oneDNN and OpenBLAS, the
// "GPU" being an arena of the planned size) and `cuda` (cuDNN, cuBLAS, two copy streams).
//
// A backend owns the two arenas and runs single kernels and copies; the executor (executor.hpp)
// owns the order. Lanes: compute, the CPU's, h2d and d2h; a Ticket names a point of a lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "estimator/base/attributes.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/base/data_type.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/step/kernel.hpp"
#include "estimator/step/kernel_table.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

/// A contiguous tensor in one of the arenas.
struct TensorArgument {
  std::byte* data = nullptr;
  DataType type = DataType::float32;
  std::vector<std::int64_t> shape;
};

/// A kernel call with its addresses; arguments in the order of the kernel's signature. In-place
/// arguments have the same address on both sides.
struct KernelCall {
  Kernel kernel = Kernel::copy;
  Device device = Device::gpu;  ///< cpu: the host kernels, on host addresses
  const Attributes* attributes = nullptr;
  std::span<const TensorArgument> reads;
  std::span<const TensorArgument> writes;
  std::string engine;  ///< which engine the plan chose; "" : none to choose
  bool tf32 = false;   ///< convolutions and recurrent layers of float32 may multiply in TF32
  std::byte* workspace = nullptr;
  Bytes workspace_bytes;
};

/// Ids grow along each lane.
struct Ticket {
  std::int64_t id = -1;
};

/// When a piece of work ran, in seconds on the backend's own clock.
struct TimeSpan {
  double begin = 0, end = 0;
  [[nodiscard]] double seconds() const { return end - begin; }
};

/// When an emulated copy takes place within what its tickets allow. A plan must be right for every
/// choice; a device's own lanes make one that nobody can foresee.
struct CopyTiming {
  bool late_uploads = false;  ///< false: at the call; true: when the compute lane waits for it
  bool late_downloads = false;
};

struct ArenaSizes {
  Bytes gpu, host;
  Bytes pinned;  ///< at the front of the host's: where copies go
};

/// What has crossed the link, counted where the bytes are copied.
struct CopyCount {
  std::int64_t copies = 0;
  Bytes bytes;
};

/// A device's memory at one moment, of all processes together.
struct MemoryReading {
  Bytes free, total;               ///< as the driver says
  std::optional<Bytes> nvml_used;  ///< as NVML says; none: it cannot be asked
};

/// Every call that can fail returns a Result, whose message names the call that failed in the
/// backend's own words ("cuLaunchKernel fails with error 700"). After an error the lanes are in no
/// known state; allocate() starts afresh.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string name() const = 0;  ///< "host", "cuda: NVIDIA H200"

  /// Whose kernels run the nodes that are placed on the GPU; the others run on the host's.
  [[nodiscard]] virtual KernelDevice gpu_kernels() const = 0;

  /// Allocates both arenas, in place of those that there are. Their contents are uninitialised.
  [[nodiscard]] virtual Result<void> allocate(const ArenaSizes& sizes) = 0;
  /// Ends what is under way and gives both arenas back; before anything else comes allocate().
  virtual void release() noexcept = 0;
  [[nodiscard]] virtual std::byte* gpu_base() = 0;  ///< a device address on cuda
  [[nodiscard]] virtual std::byte* host_base() = 0;

  /// Queues a kernel of the GPU on the compute lane; one of the CPU on the CPU's, behind those that
  /// are there and all that the compute lane has to do and to wait for so far. What the call points
  /// to is copied. Errors name the kernel and the library's own words; those of a kernel of the CPU
  /// may come with a later call.
  [[nodiscard]] virtual Result<Ticket> run(const KernelCall& call) = 0;
  /// Queues a copy on its lane after `after` (all of them).
  [[nodiscard]] virtual Result<Ticket> copy(Direction direction, std::byte* gpu, std::byte* host,
                                            Bytes bytes, std::span<const Ticket> after) = 0;
  /// The compute lane goes on only when these are done: copies, and kernels of the CPU.
  [[nodiscard]] virtual Result<void> compute_waits_for(std::span<const Ticket> tickets) = 0;
  /// Returns when these are done, so that the caller may use what they left in the host's arena.
  [[nodiscard]] virtual Result<void> host_waits_for(std::span<const Ticket> tickets) = 0;
  /// Returns when all that was queued is done.
  [[nodiscard]] virtual Result<void> synchronize() = 0;
  /// When the ticket's kernel or copy ran, since allocate(), by the backend's own events.
  /// Precondition: synchronize() has returned since.
  [[nodiscard]] virtual Result<TimeSpan> ran(Ticket ticket) const = 0;
  /// No ticket so far is asked about any more. Precondition: synchronize() has returned since.
  [[nodiscard]] virtual Result<void> forget_tickets() = 0;
  /// Since allocate().
  [[nodiscard]] virtual CopyCount copied(Direction direction) const = 0;
  /// Ignored where the lanes are real.
  virtual void set_copy_timing(CopyTiming timing) = 0;

  /// Access for setting up, poisoning and comparing, behind what the compute lane has been given
  /// and before what any lane is given from now on; never counted as transfers. The source may be
  /// used again, and the destination holds the bytes, on return.
  [[nodiscard]] virtual Result<void> write_gpu(std::byte* gpu, const std::byte* source,
                                               Bytes bytes) = 0;
  [[nodiscard]] virtual Result<void> read_gpu(std::byte* destination, const std::byte* gpu,
                                              Bytes bytes) = 0;
  [[nodiscard]] virtual Result<void> fill_gpu(std::byte* gpu, std::byte value, Bytes bytes) = 0;

  /// nullopt: there is no device with a memory of its own.
  [[nodiscard]] virtual Result<std::optional<MemoryReading>> memory() const { return std::nullopt; }
  /// What the kernels did otherwise than the plan says, such as another engine; each once.
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
};

}  // namespace stowage
