#include "gpu_probe/lanes/laned_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

namespace stowage {
namespace {

constexpr Bytes staging_bytes = 4_MiB;

/// The kernel or copy that a ticket stands for.
struct Work {
  std::optional<Lane> lane;      ///< none: the CPU's lane
  LaneEvent begin, end;          ///< on a lane of the device
  std::uint64_t signal = 0;      ///< on the CPU's lane: the count once the kernel is done
  std::optional<TimeSpan> span;  ///< on the CPU's lane, once it is known
};

class LanedBackend final : public Backend {
 public:
  LanedBackend(std::unique_ptr<LaneDevice> device, RunKernel run_on_cpu)
      : device_(std::move(device)), run_on_cpu_(std::move(run_on_cpu)) {}
  LanedBackend(const LanedBackend&) = delete;
  LanedBackend& operator=(const LanedBackend&) = delete;
  ~LanedBackend() override { give_back(); }

  [[nodiscard]] std::string name() const override { return device_->name(); }
  [[nodiscard]] KernelDevice gpu_kernels() const override { return device_->kernels(); }

  [[nodiscard]] Result<void> allocate(const ArenaSizes& sizes) override;
  void release() noexcept override { give_back(); }
  [[nodiscard]] std::byte* gpu_base() override { return gpu_; }
  [[nodiscard]] std::byte* host_base() override { return host_; }

  [[nodiscard]] Result<Ticket> run(const KernelCall& call) override;
  [[nodiscard]] Result<Ticket> copy(Direction direction, std::byte* gpu, std::byte* host,
                                    Bytes bytes, std::span<const Ticket> after) override;
  [[nodiscard]] Result<void> compute_waits_for(std::span<const Ticket> tickets) override;
  [[nodiscard]] Result<void> host_waits_for(std::span<const Ticket> tickets) override;
  [[nodiscard]] Result<void> synchronize() override;
  [[nodiscard]] Result<TimeSpan> ran(Ticket ticket) const override;
  [[nodiscard]] Result<void> forget_tickets() override;
  [[nodiscard]] CopyCount copied(Direction direction) const override {
    return counts_[static_cast<std::size_t>(direction)];
  }
  void set_copy_timing(CopyTiming /*timing*/) override {}

  [[nodiscard]] Result<void> write_gpu(std::byte* gpu, const std::byte* source,
                                       Bytes bytes) override;
  [[nodiscard]] Result<void> read_gpu(std::byte* destination, const std::byte* gpu,
                                      Bytes bytes) override;
  [[nodiscard]] Result<void> fill_gpu(std::byte* gpu, std::byte value, Bytes bytes) override;

  [[nodiscard]] Result<std::optional<MemoryReading>> memory() const override {
    return device_->memory();
  }
  [[nodiscard]] std::vector<std::string> remarks() const override { return device_->remarks(); }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] double now() const {
    return std::chrono::duration<double>(Clock::now() - start_time_).count();
  }
  /// Stops the lanes, whatever has failed, and frees the arenas.
  void give_back() noexcept;
  [[nodiscard]] Result<void> start_clock();
  Ticket add(const Work& work) {
    works_.push_back(work);
    return {first_ + std::ssize(works_) - 1};
  }
  [[nodiscard]] const Work& work(Ticket ticket) const {
    return works_[static_cast<std::size_t>(ticket.id - first_)];
  }
  [[nodiscard]] Result<Ticket> run_on_lane(const KernelCall& call);
  [[nodiscard]] Result<Ticket> run_on_cpu(const KernelCall& call);
  [[nodiscard]] Result<void> lane_waits_for(Lane lane, std::span<const Ticket> tickets);
  [[nodiscard]] Result<void> note(Result<std::vector<KernelLane::Finished>> finished);
  /// Queues a copy between the GPU and the staging memory, and waits for it.
  [[nodiscard]] Result<void> copy_staged(std::byte* to, const std::byte* from, Bytes bytes);

  std::unique_ptr<LaneDevice> device_;
  RunKernel run_on_cpu_;
  std::byte* gpu_ = nullptr;
  std::byte* host_ = nullptr;
  std::byte* staging_ = nullptr;  // pinned
  std::int64_t first_ = 0;        // the first ticket that is not forgotten
  std::deque<Work> works_;        // by ticket, from first_ on
  std::array<CopyCount, 2> counts_;
  std::uint64_t pushed_ = 0;  // kernels of the CPU's lane since the device forgot its events
  bool filled_ = false;       // fill_gpu() was called after last_fill_
  LaneEvent last_fill_;       // on the compute lane, behind fill_gpu(); none: copies need not wait
  LaneEvent start_;
  Clock::time_point start_time_;     // of start_
  std::unique_ptr<KernelLane> cpu_;  // the last member: its thread uses the others
};

void LanedBackend::give_back() noexcept {
  cpu_.reset();
  // If this fails the device is lost, and its memory may be freed.
  static_cast<void>(device_->synchronize());
  if (gpu_ != nullptr) device_->free(gpu_);
  if (host_ != nullptr) device_->free_host(host_);
  if (staging_ != nullptr) device_->free_host(staging_);
  gpu_ = host_ = staging_ = nullptr;
}

Result<void> LanedBackend::allocate(const ArenaSizes& sizes) {
  give_back();
  first_ += std::ssize(works_);
  works_.clear();
  counts_ = {};
  const auto keep = [](std::byte*& place, const Result<std::byte*>& memory) -> Result<void> {
    if (!memory) return tl::unexpected(memory.error());
    place = *memory;
    return {};
  };
  if (auto ok = keep(gpu_, device_->allocate(sizes.gpu)); !ok) return ok;
  if (auto ok = keep(host_, device_->allocate_host(sizes.host, sizes.pinned)); !ok) return ok;
  if (auto ok = keep(staging_, device_->allocate_host(staging_bytes, staging_bytes)); !ok)
    return ok;
  return start_clock();
}

Result<void> LanedBackend::start_clock() {
  if (auto forgotten = device_->forget_events(); !forgotten) return forgotten;
  pushed_ = 0;
  filled_ = false;
  last_fill_ = {};
  const auto start = device_->record(Lane::compute);
  if (!start) return tl::unexpected(start.error());
  start_ = *start;
  auto reached = device_->wait_for(start_);
  start_time_ = Clock::now();
  return reached;
}

Result<Ticket> LanedBackend::run(const KernelCall& call) {
  return call.device == Device::cpu ? run_on_cpu(call) : run_on_lane(call);
}

Result<Ticket> LanedBackend::run_on_lane(const KernelCall& call) {
  const auto begin = device_->record(Lane::compute);
  if (!begin) return tl::unexpected(begin.error());
  if (auto ok = device_->launch(call); !ok) return tl::unexpected(std::move(ok.error()));
  const auto end = device_->record(Lane::compute);
  if (!end) return tl::unexpected(end.error());
  return add({.lane = Lane::compute, .begin = *begin, .end = *end});
}

Result<Ticket> LanedBackend::run_on_cpu(const KernelCall& call) {
  const auto behind = device_->record(Lane::compute);
  if (!behind) return tl::unexpected(behind.error());
  if (cpu_ == nullptr) {
    cpu_ = std::make_unique<KernelLane>([this] { return now(); }, run_on_cpu_);
  }
  const std::uint64_t count = ++pushed_;
  const Ticket ticket = add({.signal = count});
  cpu_->push(
      ticket, call,
      {.before = [device = device_.get(), event = *behind] { return device->wait_for(event); },
       .after = [device = device_.get(), count] { device->signal(count); }});
  return ticket;
}

Result<void> LanedBackend::lane_waits_for(Lane lane, std::span<const Ticket> tickets) {
  for (const Ticket ticket : tickets) {
    const Work& other = work(ticket);
    if (other.lane == lane) continue;
    auto waits =
        other.lane ? device_->wait(lane, other.end) : device_->wait_for_signal(lane, other.signal);
    if (!waits) return waits;
  }
  return {};
}

Result<Ticket> LanedBackend::copy(Direction direction, std::byte* gpu, std::byte* host, Bytes bytes,
                                  std::span<const Ticket> after) {
  const bool upload = direction == Direction::h2d;
  const Lane lane = upload ? Lane::h2d : Lane::d2h;
  if (std::exchange(filled_, false)) {
    const auto event = device_->record(Lane::compute);
    if (!event) return tl::unexpected(event.error());
    last_fill_ = *event;
  }
  if (last_fill_.id >= 0) {
    if (auto ok = device_->wait(lane, last_fill_); !ok) return tl::unexpected(ok.error());
  }
  if (auto ok = lane_waits_for(lane, after); !ok) return tl::unexpected(std::move(ok.error()));
  const auto begin = device_->record(lane);
  if (!begin) return tl::unexpected(begin.error());
  auto queued =
      upload ? device_->copy(lane, gpu, host, bytes) : device_->copy(lane, host, gpu, bytes);
  if (!queued) return tl::unexpected(std::move(queued.error()));
  const auto end = device_->record(lane);
  if (!end) return tl::unexpected(end.error());
  CopyCount& count = counts_[static_cast<std::size_t>(direction)];
  ++count.copies;
  count.bytes += bytes;
  return add({.lane = lane, .begin = *begin, .end = *end});
}

Result<void> LanedBackend::compute_waits_for(std::span<const Ticket> tickets) {
  return lane_waits_for(Lane::compute, tickets);
}

Result<void> LanedBackend::note(Result<std::vector<KernelLane::Finished>> finished) {
  if (!finished) return tl::unexpected(std::move(finished.error()));
  for (const KernelLane::Finished& kernel : *finished) {
    works_[static_cast<std::size_t>(kernel.ticket.id - first_)].span = kernel.span;
  }
  return {};
}

Result<void> LanedBackend::host_waits_for(std::span<const Ticket> tickets) {
  for (const Ticket ticket : tickets) {
    const Work& other = work(ticket);
    auto waited = other.lane ? device_->wait_for(other.end) : note(cpu_->wait_for(ticket));
    if (!waited) return waited;
  }
  return {};
}

Result<void> LanedBackend::synchronize() {
  if (auto done = device_->synchronize(); !done) return done;
  if (cpu_ == nullptr) return {};
  return note(cpu_->wait_for_all());
}

Result<TimeSpan> LanedBackend::ran(Ticket ticket) const {
  if (ticket.id < first_ || ticket.id >= first_ + std::ssize(works_)) {
    return failure(fmt::format("ticket {} has not run", ticket.id));
  }
  const Work& of = work(ticket);
  if (of.span) return *of.span;
  if (!of.lane) return failure(fmt::format("ticket {} has not run", ticket.id));
  // CUDA gives seconds as single-precision milliseconds, which are most exact between neighbouring
  // events.
  const auto begin = device_->seconds_between(start_, of.begin);
  if (!begin) return tl::unexpected(begin.error());
  const auto took = device_->seconds_between(of.begin, of.end);
  if (!took) return tl::unexpected(took.error());
  return TimeSpan{*begin, *begin + *took};
}

Result<void> LanedBackend::forget_tickets() {
  first_ += std::ssize(works_);
  works_.clear();
  return start_clock();
}

Result<void> LanedBackend::copy_staged(std::byte* to, const std::byte* from, Bytes bytes) {
  if (auto ok = device_->copy(Lane::compute, to, from, bytes); !ok) return ok;
  const auto copied = device_->record(Lane::compute);
  if (!copied) return tl::unexpected(copied.error());
  return device_->wait_for(*copied);
}

Result<void> LanedBackend::write_gpu(std::byte* gpu, const std::byte* source, Bytes bytes) {
  for (Bytes done; done < bytes; done += staging_bytes) {
    const Bytes part = std::min(staging_bytes, bytes - done);
    std::memcpy(staging_, source + done.count(), static_cast<std::size_t>(part.count()));
    if (auto ok = copy_staged(gpu + done.count(), staging_, part); !ok) return ok;
  }
  return {};
}

Result<void> LanedBackend::read_gpu(std::byte* destination, const std::byte* gpu, Bytes bytes) {
  for (Bytes done; done < bytes; done += staging_bytes) {
    const Bytes part = std::min(staging_bytes, bytes - done);
    if (auto ok = copy_staged(staging_, gpu + done.count(), part); !ok) return ok;
    std::memcpy(destination + done.count(), staging_, static_cast<std::size_t>(part.count()));
  }
  return {};
}

Result<void> LanedBackend::fill_gpu(std::byte* gpu, std::byte value, Bytes bytes) {
  filled_ = true;
  return device_->fill(Lane::compute, gpu, value, bytes);
}

}  // namespace

std::unique_ptr<Backend> laned_backend(std::unique_ptr<LaneDevice> device, RunKernel run_on_cpu) {
  return std::make_unique<LanedBackend>(std::move(device), std::move(run_on_cpu));
}

}  // namespace stowage
