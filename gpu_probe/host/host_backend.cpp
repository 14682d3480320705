#include "gpu_probe/host/host_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <iterator>
#include <optional>

#include "gpu_probe/host/guarded_memory.hpp"
#include "gpu_probe/host/host_kernels.hpp"
#include "gpu_probe/host/kernel_lane.hpp"

namespace stowage {
namespace {

constexpr int poison_byte = 0xFF;  // NaN in every floating-point format

std::size_t size(Bytes bytes) { return static_cast<std::size_t>(bytes.count()); }

class HostBackend final : public Backend {
 public:
  [[nodiscard]] std::string name() const override { return "host"; }
  [[nodiscard]] KernelDevice gpu_kernels() const override { return KernelDevice::host; }

  [[nodiscard]] Result<void> allocate(const ArenaSizes& sizes) override {
    auto gpu = GuardedMemory::of(sizes.gpu), host = GuardedMemory::of(sizes.host);
    if (!gpu) return tl::unexpected(gpu.error());
    if (!host) return tl::unexpected(host.error());
    cpu_.reset();  // its kernels use the old arenas
    gpu_ = std::move(*gpu);
    host_ = std::move(*host);
    lanes_ = {};
    first_ += std::ssize(spans_);
    spans_.clear();
    start_ = Clock::now();
    return {};
  }
  void release() noexcept override {
    cpu_.reset();  // its kernels use the arenas
    gpu_ = GuardedMemory();
    host_ = GuardedMemory();
    lanes_ = {};
  }
  [[nodiscard]] std::byte* gpu_base() override { return gpu_.base(); }
  [[nodiscard]] std::byte* host_base() override { return host_.base(); }

  [[nodiscard]] Result<Ticket> run(const KernelCall& call) override {
    if (call.workspace != nullptr) {
      std::memset(call.workspace, poison_byte, size(call.workspace_bytes));
    }
    const Ticket ticket = next_ticket();
    if (call.device == Device::cpu) {
      if (cpu_ == nullptr) cpu_ = std::make_unique<KernelLane>([this] { return now(); });
      cpu_->push(ticket, call);
      return ticket;
    }
    const double begin = now();
    if (const auto done = run_host_kernel(call); !done) return tl::unexpected(done.error());
    span(ticket) = TimeSpan{begin, now()};
    return ticket;
  }

  [[nodiscard]] Result<Ticket> copy(Direction direction, std::byte* gpu, std::byte* host,
                                    Bytes bytes, std::span<const Ticket> after) override {
    const Ticket ticket = next_ticket();
    const bool upload = direction == Direction::h2d;
    lane(direction).waiting.push_back({.ticket = ticket,
                                       .to = upload ? gpu : host,
                                       .from = upload ? host : gpu,
                                       .bytes = bytes,
                                       .after = {after.begin(), after.end()}});
    if (upload ? timing_.late_uploads : timing_.late_downloads) return ticket;
    if (auto done = finish(ticket); !done) return tl::unexpected(std::move(done.error()));
    return ticket;
  }

  [[nodiscard]] Result<void> compute_waits_for(std::span<const Ticket> tickets) override {
    for (const Ticket ticket : tickets) {
      if (auto done = finish(ticket); !done) return done;
    }
    return {};
  }

  [[nodiscard]] Result<void> host_waits_for(std::span<const Ticket> tickets) override {
    return compute_waits_for(tickets);
  }

  [[nodiscard]] Result<void> synchronize() override {
    for (Lane& lane : lanes_) {
      while (!lane.waiting.empty()) {
        if (auto done = finish(lane.waiting.back().ticket); !done) return done;
      }
    }
    if (cpu_ == nullptr) return {};
    return note(cpu_->wait_for_all());
  }

  [[nodiscard]] CopyCount copied(Direction direction) const override {
    return lanes_[static_cast<std::size_t>(direction)].count;
  }
  void set_copy_timing(CopyTiming timing) override { timing_ = timing; }

  [[nodiscard]] Result<TimeSpan> ran(Ticket ticket) const override {
    const std::int64_t index = ticket.id - first_;
    if (index >= 0 && index < std::ssize(spans_)) {
      if (const auto& span = spans_[static_cast<std::size_t>(index)]) return *span;
    }
    return failure(fmt::format("ticket {} has not run", ticket.id));
  }
  [[nodiscard]] Result<void> forget_tickets() override {
    first_ += std::ssize(spans_);
    spans_.clear();
    return {};
  }

  [[nodiscard]] Result<void> write_gpu(std::byte* gpu, const std::byte* source,
                                       Bytes bytes) override {
    std::memcpy(gpu, source, size(bytes));
    return {};
  }
  [[nodiscard]] Result<void> read_gpu(std::byte* destination, const std::byte* gpu,
                                      Bytes bytes) override {
    std::memcpy(destination, gpu, size(bytes));
    return {};
  }
  [[nodiscard]] Result<void> fill_gpu(std::byte* gpu, std::byte value, Bytes bytes) override {
    std::memset(gpu, std::to_integer<int>(value), size(bytes));
    return {};
  }

 private:
  struct Copy {
    Ticket ticket;
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    Bytes bytes;
    std::vector<Ticket> after;
  };
  struct Lane {
    std::deque<Copy> waiting;  // in issue order
    CopyCount count;
  };

  using Clock = std::chrono::steady_clock;

  [[nodiscard]] double now() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  Ticket next_ticket() {
    spans_.emplace_back();
    return {first_ + std::ssize(spans_) - 1};
  }
  std::optional<TimeSpan>& span(Ticket ticket) {
    return spans_[static_cast<std::size_t>(ticket.id - first_)];
  }

  Lane& lane(Direction direction) { return lanes_[static_cast<std::size_t>(direction)]; }

  Result<void> note(Result<std::vector<KernelLane::Finished>> finished) {
    if (!finished) return tl::unexpected(std::move(finished.error()));
    for (const KernelLane::Finished& kernel : *finished) span(kernel.ticket) = kernel.span;
    return {};
  }

  /// Waits for the ticket: for a kernel of the CPU's lane; runs a copy that has not run yet, after
  /// the copies before it on its lane and the tickets that it waits for.
  Result<void> finish(Ticket ticket) {
    if (cpu_ != nullptr && cpu_->has(ticket)) return note(cpu_->wait_for(ticket));
    for (Lane& lane : lanes_) {
      const auto has_it = [&] {
        return std::any_of(lane.waiting.begin(), lane.waiting.end(),
                           [&](const Copy& copy) { return copy.ticket.id == ticket.id; });
      };
      while (has_it()) {
        const Copy copy = std::move(lane.waiting.front());
        lane.waiting.pop_front();
        for (const Ticket earlier : copy.after) {
          if (auto done = finish(earlier); !done) return done;
        }
        const double begin = now();
        std::memcpy(copy.to, copy.from, size(copy.bytes));
        span(copy.ticket) = TimeSpan{begin, now()};
        ++lane.count.copies;
        lane.count.bytes += copy.bytes;
      }
    }
    return {};
  }

  GuardedMemory gpu_, host_;
  std::array<Lane, 2> lanes_;
  CopyTiming timing_;
  Clock::time_point start_;
  std::int64_t first_ = 0;                      // the first ticket that is not forgotten
  std::vector<std::optional<TimeSpan>> spans_;  // by ticket, from first_ on; none: it has not run
  std::unique_ptr<KernelLane> cpu_;             // the last member: its thread uses the arenas
};

}  // namespace

Result<std::unique_ptr<Backend>> open_host_backend() {
  if (const auto kernels = host_kernels(); !kernels) return tl::unexpected(kernels.error());
  return std::make_unique<HostBackend>();
}

}  // namespace stowage
