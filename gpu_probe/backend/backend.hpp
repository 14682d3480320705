// Backend: a machine that executes plans. There are two: `host` runs all kernels on the CPU
// (oneDNN, OpenBLAS and our own), with an arena of the planned size in the GPU's place; `cuda` runs
// them on a GPU (cuDNN, cuBLAS and our own) with two copy streams.
//
// A backend owns the two arenas and runs single kernels and copies. The executor (executor.hpp)
// decides their order. Work is queued on lanes: the compute lane, the CPU's lane, and a lane for
// each direction of copies. Each lane runs its work in the order in which it was queued. A Ticket
// stands for one piece of work.
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

/// A kernel call with its addresses. Arguments are in the order of the kernel's signature; an
/// argument that is updated in place has the same address among reads and writes.
struct KernelCall {
  Kernel kernel = Kernel::copy;
  Device device = Device::gpu;  ///< cpu: a host kernel, with host addresses
  const Attributes* attributes = nullptr;
  std::span<const TensorArgument> reads;
  std::span<const TensorArgument> writes;
  std::string engine;  ///< the engine that the plan names; "": none
  bool tf32 = false;   ///< convolutions and recurrent layers of float32 may multiply in TF32
  std::byte* workspace = nullptr;
  Bytes workspace_bytes;
};

/// One kernel or copy that was queued. Ids grow along each lane.
struct Ticket {
  std::int64_t id = -1;
};

/// When a piece of work ran, in seconds on the backend's own clock.
struct TimeSpan {
  double begin = 0, end = 0;
  [[nodiscard]] double seconds() const { return end - begin; }
};

/// When an emulated copy takes place, within what its tickets allow. A plan must be right for every
/// choice, since nobody can foresee what a device's own lanes do.
struct CopyTiming {
  bool late_uploads = false;  ///< false: at the call; true: when compute waits for it
  bool late_downloads = false;
};

struct ArenaSizes {
  Bytes gpu, host;
  Bytes pinned;  ///< at the beginning of the host's arena: all that copies use
};

/// Copies over the link, counted where the bytes are copied.
struct CopyCount {
  std::int64_t copies = 0;
  Bytes bytes;
};

/// A device's memory at one moment, as used by all processes together.
struct MemoryReading {
  Bytes free, total;               ///< as the driver says
  std::optional<Bytes> nvml_used;  ///< as NVML says; none: it cannot be asked
};

/// Every call that can fail returns a Result. Its message names the call that failed in the
/// backend's own words ("cuLaunchKernel fails with error 700"). After an error the state of the
/// lanes is unknown; allocate() starts afresh.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string name() const = 0;  ///< "host", "cuda: NVIDIA H200"

  /// The kernels that run the nodes placed on the GPU. The host's kernels run the others.
  [[nodiscard]] virtual KernelDevice gpu_kernels() const = 0;

  /// Allocates both arenas and frees the old ones. Their contents are uninitialised.
  [[nodiscard]] virtual Result<void> allocate(const ArenaSizes& sizes) = 0;
  /// Stops the lanes and frees both arenas. Afterwards only allocate() may be called.
  virtual void release() noexcept = 0;
  [[nodiscard]] virtual std::byte* gpu_base() = 0;  ///< a device address on cuda
  [[nodiscard]] virtual std::byte* host_base() = 0;

  /// Queues a kernel. A kernel of the GPU goes to the compute lane. A kernel of the CPU goes to the
  /// CPU's lane: it runs after all kernels queued there and after all work that the compute lane
  /// has been given so far. The call and all that it points to are copied, but not the tensors'
  /// bytes. Errors name the kernel in the library's own words; an error of a kernel of the CPU may
  /// come with a later call.
  [[nodiscard]] virtual Result<Ticket> run(const KernelCall& call) = 0;
  /// Queues a copy on the lane of its direction. It begins when all of `after` are done.
  [[nodiscard]] virtual Result<Ticket> copy(Direction direction, std::byte* gpu, std::byte* host,
                                            Bytes bytes, std::span<const Ticket> after) = 0;
  /// Work queued on the compute lane from now on runs when these tickets (copies, kernels of the
  /// CPU) are done.
  [[nodiscard]] virtual Result<void> compute_waits_for(std::span<const Ticket> tickets) = 0;
  /// Waits until these are done, so that the caller may use their results in the host's arena.
  [[nodiscard]] virtual Result<void> host_waits_for(std::span<const Ticket> tickets) = 0;
  /// Waits until all work that was queued is done.
  [[nodiscard]] virtual Result<void> synchronize() = 0;
  /// When the ticket's kernel or copy ran: seconds since allocate(), by the backend's own events.
  /// Precondition: synchronize() has been called after it.
  [[nodiscard]] virtual Result<TimeSpan> ran(Ticket ticket) const = 0;
  /// Forgets all tickets so far: the caller does not use them any more. Precondition: synchronize()
  /// has been called after them.
  [[nodiscard]] virtual Result<void> forget_tickets() = 0;
  /// The copies of a direction since allocate().
  [[nodiscard]] virtual CopyCount copied(Direction direction) const = 0;
  /// For backends that emulate copies; others ignore it.
  virtual void set_copy_timing(CopyTiming timing) = 0;

  /// Direct access to the GPU's arena, to set values, to poison and to compare. It takes place
  /// after all work that the compute lane has been given so far and before any work that a lane is
  /// given later, and does not count as a copy. On return the source may be used again, and the
  /// destination holds the bytes.
  [[nodiscard]] virtual Result<void> write_gpu(std::byte* gpu, const std::byte* source,
                                               Bytes bytes) = 0;
  [[nodiscard]] virtual Result<void> read_gpu(std::byte* destination, const std::byte* gpu,
                                              Bytes bytes) = 0;
  [[nodiscard]] virtual Result<void> fill_gpu(std::byte* gpu, std::byte value, Bytes bytes) = 0;

  /// nullopt: the backend has no device with memory of its own.
  [[nodiscard]] virtual Result<std::optional<MemoryReading>> memory() const { return std::nullopt; }
  /// How kernels ran otherwise than the plan says, such as on another engine. Each text is there
  /// once.
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
};

}  // namespace stowage
