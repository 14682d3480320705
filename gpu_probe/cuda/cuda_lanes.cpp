#include "gpu_probe/cuda/cuda_lanes.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "estimator/base/cure.hpp"
#include "gpu_probe/device/nvml.hpp"

namespace stowage {
namespace {

// Values of the driver API's enumerations, from its documentation (CUDA 12 and 13).
constexpr unsigned non_blocking_stream = 1;  // CU_STREAM_NON_BLOCKING
constexpr unsigned timed_event = 0;          // CU_EVENT_DEFAULT
constexpr unsigned at_least = 0;             // CU_STREAM_WAIT_VALUE_GEQ
constexpr int compute_major_attribute = 75;
constexpr int compute_minor_attribute = 76;

DevicePointer device_pointer(const std::byte* address) {
  return reinterpret_cast<DevicePointer>(address);
}
std::size_t size_of(Bytes bytes) { return static_cast<std::size_t>(bytes.count()); }

class CudaLanes final : public LaneDevice {
 public:
  CudaLanes(CudaDriver driver, std::string nvml)
      : driver_(std::move(driver)), nvml_(std::move(nvml)) {}
  ~CudaLanes() override;

  Result<void> open(int ordinal, const MakeGpuKernels& make);

  [[nodiscard]] std::string name() const override { return "cuda: " + name_; }
  [[nodiscard]] KernelDevice kernels() const override { return KernelDevice::cuda; }

  [[nodiscard]] Result<std::byte*> allocate(Bytes bytes) override;
  [[nodiscard]] Result<std::byte*> allocate_host(Bytes bytes, Bytes pinned) override;
  void free(std::byte* memory) noexcept override;
  void free_host(std::byte* memory) noexcept override;

  [[nodiscard]] Result<LaneEvent> record(Lane lane) override;
  [[nodiscard]] Result<void> wait(Lane lane, LaneEvent event) override;
  [[nodiscard]] Result<void> wait_for_signal(Lane lane, std::uint64_t count) override;
  [[nodiscard]] Result<void> copy(Lane lane, std::byte* to, const std::byte* from,
                                  Bytes bytes) override;
  [[nodiscard]] Result<void> fill(Lane lane, std::byte* to, std::byte value, Bytes bytes) override;
  [[nodiscard]] Result<void> launch(const KernelCall& call) override;

  [[nodiscard]] Result<void> wait_for(LaneEvent event) override;
  void signal(std::uint64_t count) noexcept override;
  [[nodiscard]] Result<void> synchronize() override;
  [[nodiscard]] Result<double> seconds_between(LaneEvent from, LaneEvent to) const override;
  [[nodiscard]] Result<void> forget_events() override;

  [[nodiscard]] Result<std::optional<MemoryReading>> memory() const override;
  [[nodiscard]] std::vector<std::string> remarks() const override { return kernels_->remarks(); }

 private:
  struct Block {
    std::byte* begin;
    Bytes bytes;
  };
  struct HostBlock {
    std::byte* begin;
    Bytes bytes;  ///< whole pages
    bool pinned;  ///< its first bytes are
  };

  [[nodiscard]] Result<void> done(int error, const char* call) const;
  [[nodiscard]] void* stream(Lane lane) const { return streams_[static_cast<std::size_t>(lane)]; }
  [[nodiscard]] void* event(LaneEvent event) const;
  /// Makes the context current in the calling thread: each thread has a current context of its own.
  [[nodiscard]] Result<void> make_current() const;
  [[nodiscard]] bool is_on_device(const std::byte* address) const;

  CudaDriver driver_;
  std::string nvml_;
  CudaDeviceNumber device_ = 0;
  bool has_context_ = false;
  void* context_ = nullptr;
  std::string name_;
  std::array<void*, lanes.size()> streams_{};
  std::vector<void*> events_;        // by LaneEvent; the first used_ are in use
  std::size_t used_ = 0;             // only the owner's thread reads it
  mutable std::mutex events_mutex_;  // guards events_, which wait_for() reads from another thread
  std::vector<Block> on_device_;
  std::vector<HostBlock> on_host_;
  void* signal_ = nullptr;  // pinned: a 64-bit count
  std::unique_ptr<GpuKernels> kernels_;
};

Result<void> CudaLanes::done(int error, const char* call) const {
  if (error == 0) return {};
  const char* text = nullptr;
  driver_->error_text(error, &text);
  return failure(
      fmt::format("{} fails with error {} ({})", call, error, text == nullptr ? "unknown" : text));
}

Result<void> CudaLanes::make_current() const {
  return done(driver_->set_context(context_), "cuCtxSetCurrent");
}

// Initialises the driver, finds the device with its name and compute capability, retains its
// primary context and makes it current, creates the streams and the signal's memory, and then lets
// `make` make the kernels. What was created before a failure is freed by the destructor.
Result<void> CudaLanes::open(int ordinal, const MakeGpuKernels& make) {
  std::array<char, 256> name{};
  int major = 0, minor = 0;
  const auto first_failure = [&]() -> Result<void> {
    if (auto ok = done(driver_->init(0), "cuInit"); !ok) return ok;
    if (auto ok = done(driver_->device(&device_, ordinal), "cuDeviceGet"); !ok) return ok;
    if (auto ok = done(driver_->device_name(name.data(), static_cast<int>(name.size()), device_),
                       "cuDeviceGetName");
        !ok) {
      return ok;
    }
    for (const auto& [attribute, value] :
         {std::pair(compute_major_attribute, &major), std::pair(compute_minor_attribute, &minor)}) {
      auto ok = done(driver_->device_attribute(value, attribute, device_), "cuDeviceGetAttribute");
      if (!ok) return ok;
    }
    if (auto ok = done(driver_->retain_context(&context_, device_), "cuDevicePrimaryCtxRetain");
        !ok) {
      return ok;
    }
    has_context_ = true;
    if (auto ok = make_current(); !ok) return ok;
    for (void*& stream : streams_) {
      auto ok = done(driver_->create_stream(&stream, non_blocking_stream), "cuStreamCreate");
      if (!ok) return ok;
    }
    if (auto ok = done(driver_->allocate_pinned(&signal_, sizeof(std::uint64_t)), "cuMemAllocHost");
        !ok) {
      return ok;
    }
    signal(0);
    return {};
  };
  if (auto opened = first_failure(); !opened) return opened;
  name_ = name.data();
  auto kernels = make({driver_, device_, name_, major, minor});
  if (!kernels) return tl::unexpected(std::move(kernels.error()));
  kernels_ = std::move(*kernels);
  return {};
}

CudaLanes::~CudaLanes() {
  if (!has_context_) return;
  // After an error these calls fail as well, and nobody needs to know.
  static_cast<void>(driver_->set_context(context_));
  static_cast<void>(driver_->wait());
  kernels_.reset();
  for (void* const event : events_) driver_->destroy_event(event);
  for (void* const stream : streams_) {
    if (stream != nullptr) driver_->destroy_stream(stream);
  }
  for (const Block& block : on_device_) driver_->free(device_pointer(block.begin));
  while (!on_host_.empty()) free_host(on_host_.back().begin);
  if (signal_ != nullptr) driver_->free_pinned(signal_);
  driver_->release_context(device_);
}

Result<std::byte*> CudaLanes::allocate(Bytes bytes) {
  DevicePointer pointer = 0;
  // CUDA refuses to allocate no bytes.
  const Bytes wanted = std::max(bytes, Bytes(1));
  if (auto ok = done(driver_->allocate(&pointer, size_of(wanted)), "cuMemAlloc"); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  on_device_.push_back({std::bit_cast<std::byte*>(pointer), wanted});
  return on_device_.back().begin;
}

Result<std::byte*> CudaLanes::allocate_host(Bytes bytes, Bytes pinned) {
  const Bytes page(sysconf(_SC_PAGESIZE));
  const Bytes size = round_up(std::max(bytes, Bytes(1)), page);
  void* const memory = mmap(nullptr, size_of(size), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return failure(
        fmt::format("no {} of host memory: {}", format_bytes(bytes), std::strerror(errno)));
  }
  if (pinned > Bytes(0)) {
    if (auto ok =
            done(driver_->pin(memory, size_of(round_up(pinned, page)), 0), "cuMemHostRegister");
        !ok) {
      munmap(memory, size_of(size));
      return tl::unexpected(std::move(ok.error()));
    }
  }
  on_host_.push_back({static_cast<std::byte*>(memory), size, pinned > Bytes(0)});
  return on_host_.back().begin;
}

void CudaLanes::free(std::byte* memory) noexcept {
  const auto found = std::ranges::find(on_device_, memory, &Block::begin);
  if (found == on_device_.end()) return;
  driver_->free(device_pointer(memory));
  on_device_.erase(found);
}

void CudaLanes::free_host(std::byte* memory) noexcept {
  const auto found = std::ranges::find(on_host_, memory, &HostBlock::begin);
  if (found == on_host_.end()) return;
  if (found->pinned) driver_->unpin(memory);
  munmap(memory, size_of(found->bytes));
  on_host_.erase(found);
}

bool CudaLanes::is_on_device(const std::byte* address) const {
  return std::ranges::any_of(on_device_, [&](const Block& block) {
    return address >= block.begin && address < block.begin + block.bytes.count();
  });
}

void* CudaLanes::event(LaneEvent event) const {
  const std::lock_guard lock(events_mutex_);
  return events_[static_cast<std::size_t>(event.id)];
}

Result<LaneEvent> CudaLanes::record(Lane lane) {
  if (used_ == events_.size()) {
    void* created = nullptr;
    if (auto ok = done(driver_->create_event(&created, timed_event), "cuEventCreate"); !ok) {
      return tl::unexpected(std::move(ok.error()));
    }
    const std::lock_guard lock(events_mutex_);
    events_.push_back(created);
  }
  const LaneEvent recorded{static_cast<std::int64_t>(used_)};
  if (auto ok = done(driver_->record_event(event(recorded), stream(lane)), "cuEventRecord"); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  ++used_;
  return recorded;
}

Result<void> CudaLanes::wait(Lane lane, LaneEvent after) {
  return done(driver_->stream_waits_for_event(stream(lane), event(after), 0), "cuStreamWaitEvent");
}

Result<void> CudaLanes::wait_for_signal(Lane lane, std::uint64_t count) {
  const auto address = reinterpret_cast<DevicePointer>(signal_);
  return done(driver_->stream_waits_for_value(stream(lane), address, count, at_least),
              "cuStreamWaitValue64");
}

Result<void> CudaLanes::copy(Lane lane, std::byte* to, const std::byte* from, Bytes bytes) {
  if (bytes == Bytes(0)) return {};
  if (is_on_device(to)) {
    return done(
        driver_->queue_copy_to_device(device_pointer(to), from, size_of(bytes), stream(lane)),
        "cuMemcpyHtoDAsync");
  }
  return done(driver_->queue_copy_to_host(to, device_pointer(from), size_of(bytes), stream(lane)),
              "cuMemcpyDtoHAsync");
}

Result<void> CudaLanes::fill(Lane lane, std::byte* to, std::byte value, Bytes bytes) {
  if (bytes == Bytes(0)) return {};
  return done(driver_->queue_fill(device_pointer(to), std::to_integer<unsigned char>(value),
                                  size_of(bytes), stream(lane)),
              "cuMemsetD8Async");
}

Result<void> CudaLanes::launch(const KernelCall& call) {
  return kernels_->launch(call, stream(Lane::compute));
}

Result<void> CudaLanes::wait_for(LaneEvent reached) {
  if (auto current = make_current(); !current) return current;
  return done(driver_->wait_for_event(event(reached)), "cuEventSynchronize");
}

void CudaLanes::signal(std::uint64_t count) noexcept {
  std::atomic_ref(*static_cast<std::uint64_t*>(signal_)).store(count, std::memory_order_release);
}

Result<void> CudaLanes::synchronize() { return done(driver_->wait(), "cuCtxSynchronize"); }

Result<double> CudaLanes::seconds_between(LaneEvent from, LaneEvent to) const {
  float milliseconds = 0;
  const auto ok = done(driver_->milliseconds_between(&milliseconds, event(from), event(to)),
                       "cuEventElapsedTime");
  if (!ok) return tl::unexpected(ok.error());
  return static_cast<double>(milliseconds) / 1000;
}

Result<void> CudaLanes::forget_events() {
  used_ = 0;
  signal(0);
  return {};
}

Result<std::optional<MemoryReading>> CudaLanes::memory() const {
  std::size_t free = 0, total = 0;
  if (auto ok = done(driver_->memory(&free, &total), "cuMemGetInfo"); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  std::array<char, 32> bus{};
  auto ok = done(driver_->bus_of_device(bus.data(), static_cast<int>(bus.size()), device_),
                 "cuDeviceGetPCIBusId");
  if (!ok) return tl::unexpected(std::move(ok.error()));
  return MemoryReading{.free = Bytes(static_cast<std::int64_t>(free)),
                       .total = Bytes(static_cast<std::int64_t>(total)),
                       .nvml_used = used_by_nvml(nvml_, bus.data())};
}

}  // namespace

Result<std::unique_ptr<LaneDevice>> open_cuda_lanes(const std::string& library, int ordinal,
                                                    const MakeGpuKernels& make, std::string nvml) {
  CudaDriver driver(library);
  if (!driver.is_there()) {
    return failure(fmt::format("there is no CUDA driver: {}", driver.absence()),
                   hint_of(Cure::host_execution));
  }
  for (const std::string* lacking :
       {&driver.lacking_query(), &driver.lacking_call(), &driver.lacking_lane_call()}) {
    if (!lacking->empty()) {
      return failure(fmt::format("the CUDA driver is too old: it lacks {}", *lacking));
    }
  }
  auto opened = std::make_unique<CudaLanes>(std::move(driver), std::move(nvml));
  if (auto ok = opened->open(ordinal, make); !ok) return tl::unexpected(std::move(ok.error()));
  return opened;
}

}  // namespace stowage
