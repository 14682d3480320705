#include "tests/gpu_probe/lanes/threaded_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <thread>

#include "estimator/step/kernel_table.hpp"
#include "gpu_probe/backend/owned_call.hpp"

namespace stowage::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::array<const char*, 3> lane_names{"compute", "h2d", "d2h"};

std::size_t size_of(Bytes bytes) { return static_cast<std::size_t>(bytes.count()); }
std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }
Actor actor_of(Lane lane) { return static_cast<Actor>(lane); }

Bytes bytes_of(const TensorArgument& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t size : tensor.shape) elements *= size;
  return Bytes(elements * element_size(tensor.type));
}

/// Records the call's accesses. Precondition: the diary's mutex is held.
void note_accesses(RaceBook& book, Actor actor, const KernelCall& call) {
  const std::string what(to_string(call.kernel));
  for (const TensorArgument& tensor : call.reads) {
    book.access(actor, tensor.data, bytes_of(tensor).count(), false, what);
  }
  for (const TensorArgument& tensor : call.writes) {
    book.access(actor, tensor.data, bytes_of(tensor).count(), true, what);
  }
  if (call.workspace != nullptr) {
    book.access(actor, call.workspace, call.workspace_bytes.count(), true, what);
  }
}

/// A thread that runs one job after the other, sometimes with a delay.
class LaneThread {
 public:
  LaneThread(std::uint64_t seed, int longest_delay)
      : random_(seed), longest_delay_(longest_delay), thread_([this] { work(); }) {}
  LaneThread(const LaneThread&) = delete;
  LaneThread& operator=(const LaneThread&) = delete;
  ~LaneThread() {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void push(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    changed_.notify_all();
  }
  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return jobs_.empty(); });
  }
  [[nodiscard]] bool is_idle() {
    const std::lock_guard lock(mutex_);
    return jobs_.empty();
  }

 private:
  void work() {
    const auto kernels = host_kernels();
    if (kernels) (*kernels)->set_threads(host_kernel_threads);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stops_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      const std::function<void()>& job = jobs_.front();
      lock.unlock();
      if (longest_delay_ > 0 && random_() % 8 == 0) {
        std::this_thread::sleep_for(
            std::chrono::microseconds(random_() % static_cast<unsigned>(longest_delay_)));
      }
      job();
      lock.lock();
      jobs_.pop_front();
      changed_.notify_all();
    }
  }

  std::mt19937_64 random_;
  int longest_delay_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stops_ = false;
  std::thread thread_;
};

class ThreadedLanes final : public LaneDevice {
 public:
  ThreadedLanes(DeviceSettings settings, std::shared_ptr<DeviceDiary> diary)
      : settings_(std::move(settings)), diary_(std::move(diary)) {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      threads_[i] = std::make_unique<LaneThread>(settings_.seed * 3 + i, settings_.longest_delay);
    }
  }
  ThreadedLanes(const ThreadedLanes&) = delete;
  ThreadedLanes& operator=(const ThreadedLanes&) = delete;
  ~ThreadedLanes() override {
    for (auto& thread : threads_) thread.reset();
    const std::lock_guard lock(diary_->mutex);
    diary_->blocks = std::ssize(blocks_);
    for (const auto& [memory, bytes] : blocks_) std::free(memory);
  }

  [[nodiscard]] std::string name() const override { return "threads"; }
  [[nodiscard]] KernelDevice kernels() const override { return KernelDevice::host; }

  [[nodiscard]] Result<std::byte*> allocate(Bytes bytes) override {
    return made("allocate", bytes);
  }
  [[nodiscard]] Result<std::byte*> allocate_host(Bytes bytes, Bytes /*pinned*/) override {
    return made("allocate_host", bytes);
  }
  void free(std::byte* memory) noexcept override { gone(memory); }
  void free_host(std::byte* memory) noexcept override { gone(memory); }

  [[nodiscard]] Result<LaneEvent> record(Lane lane) override {
    if (auto ok = may("record"); !ok) return tl::unexpected(ok.error());
    const LaneEvent recorded{next_event_++};
    push(lane, [this, lane, recorded] {
      const std::lock_guard lock(diary_->mutex);
      reached_[recorded.id] = {Clock::now(), diary_->book.clock(actor_of(lane))};
      changed_.notify_all();
    });
    return recorded;
  }
  [[nodiscard]] Result<void> wait(Lane lane, LaneEvent event) override {
    if (auto ok = may("wait"); !ok) return ok;
    const bool lost = next_wait_is_lost();
    push(lane, [this, lane, event, lost] {
      std::unique_lock lock(diary_->mutex);
      if (!lost) changed_.wait(lock, [&] { return reached_.contains(event.id) || dead_; });
      if (lost) {
        note_lost(lane, "an event",
                  !reached_.contains(event.id) || is_news(lane, reached_[event.id].clock));
      } else if (reached_.contains(event.id)) {
        diary_->book.acquire(actor_of(lane), reached_[event.id].clock);
      }
    });
    return {};
  }
  [[nodiscard]] Result<void> wait_for_signal(Lane lane, std::uint64_t count) override {
    if (auto ok = may("wait_for_signal"); !ok) return ok;
    const bool lost = next_wait_is_lost();
    push(lane, [this, lane, count, lost] {
      std::unique_lock lock(diary_->mutex);
      if (!lost) changed_.wait(lock, [&] { return signal_ >= count || dead_; });
      if (lost) {
        note_lost(lane, "the CPU", signal_ < count || is_news(lane, signal_clocks_[count]));
      } else if (signal_ >= count) {
        diary_->book.acquire(actor_of(lane), signal_clocks_[count]);
      }
    });
    return {};
  }

  [[nodiscard]] Result<void> copy(Lane lane, std::byte* to, const std::byte* from,
                                  Bytes bytes) override {
    if (auto ok = may("copy"); !ok) return ok;
    push(lane, [this, lane, to, from, bytes] {
      {
        const std::lock_guard lock(diary_->mutex);
        if (dead_) return;
        ++diary_->copies;
        const std::string what =
            fmt::format("a copy of {} bytes on {}", bytes.count(), lane_names[index_of(lane)]);
        diary_->book.access(actor_of(lane), from, bytes.count(), false, what);
        diary_->book.access(actor_of(lane), to, bytes.count(), true, what);
      }
      std::memcpy(to, from, size_of(bytes));
    });
    return {};
  }
  [[nodiscard]] Result<void> fill(Lane lane, std::byte* to, std::byte value, Bytes bytes) override {
    if (auto ok = may("fill"); !ok) return ok;
    push(lane, [this, lane, to, value, bytes] {
      {
        const std::lock_guard lock(diary_->mutex);
        if (dead_) return;
        diary_->book.access(actor_of(lane), to, bytes.count(), true,
                            fmt::format("a fill of {} bytes", bytes.count()));
      }
      std::memset(to, std::to_integer<int>(value), size_of(bytes));
    });
    return {};
  }
  [[nodiscard]] Result<void> launch(const KernelCall& call) override {
    if (auto ok = may("launch"); !ok) return ok;
    push(Lane::compute, [this, kept = std::make_shared<OwnedKernelCall>(call)] {
      {
        const std::lock_guard lock(diary_->mutex);
        if (dead_) return;
        ++diary_->kernels;
        note_accesses(diary_->book, Actor::compute, kept->get());
      }
      const auto done = settings_.run(kept->get());
      if (done) return;
      const std::lock_guard lock(diary_->mutex);
      if (failure_.empty()) failure_ = done.error();
    });
    return {};
  }

  [[nodiscard]] Result<void> wait_for(LaneEvent event) override {
    if (auto ok = may("wait_for"); !ok) return ok;
    std::unique_lock lock(diary_->mutex);
    changed_.wait(lock, [&] { return reached_.contains(event.id); });
    const bool is_host = std::this_thread::get_id() == owner_;
    diary_->book.acquire(is_host ? Actor::host : Actor::cpu, reached_[event.id].clock);
    return {};
  }
  void signal(std::uint64_t count) noexcept override {
    const std::lock_guard lock(diary_->mutex);
    signal_ = std::max(signal_, count);
    signal_clocks_[count] = diary_->book.clock(Actor::cpu);
    changed_.notify_all();
  }
  [[nodiscard]] Result<void> synchronize() override {
    for (const auto& thread : threads_) thread->wait_until_idle();
    {
      const std::lock_guard lock(diary_->mutex);
      for (const Lane lane : lanes) {
        diary_->book.acquire(Actor::host, VectorClock(diary_->book.clock(actor_of(lane))));
      }
    }
    return may("synchronize");
  }

  [[nodiscard]] Result<double> seconds_between(LaneEvent from, LaneEvent to) const override {
    if (auto ok = may("seconds_between"); !ok) return tl::unexpected(ok.error());
    const std::lock_guard lock(diary_->mutex);
    return std::chrono::duration<double>(reached_.at(to.id).time - reached_.at(from.id).time)
        .count();
  }
  [[nodiscard]] Result<void> forget_events() override {
    if (auto ok = may("forget_events"); !ok) return ok;
    const std::lock_guard lock(diary_->mutex);
    if (!is_idle()) diary_->misuses.emplace_back("events are forgotten while lanes run");
    reached_.clear();
    signal_clocks_.clear();
    signal_ = 0;
    return {};
  }

 private:
  struct Reached {
    Clock::time_point time;
    VectorClock clock;
  };

  [[nodiscard]] bool is_idle() const {
    return std::ranges::all_of(threads_, [](const auto& thread) { return thread->is_idle(); });
  }

  /// The error of the call that is being made.
  [[nodiscard]] Result<void> may(const char* call) const {
    const std::lock_guard lock(diary_->mutex);
    if (!failure_.empty()) return tl::unexpected(failure_);
    const long number = ++diary_->calls;
    const long failing = settings_.failing_call;
    if (failing == 0 || (settings_.fails_on ? number < failing : number != failing)) return {};
    if (diary_->failed_call.empty()) diary_->failed_call = call;
    if (settings_.fails_on && call == std::string_view("wait_for")) {
      // On a lost device nobody waits any more.
      dead_ = true;
      changed_.notify_all();
    }
    return failure(fmt::format("{} fails with error 719", call));
  }

  Result<std::byte*> made(const char* call, Bytes bytes) {
    if (auto ok = may(call); !ok) return tl::unexpected(ok.error());
    const std::size_t size = (size_of(bytes) / 256 + 1) * 256;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(256, size));
    blocks_.emplace(memory, size);
    return memory;
  }
  void gone(std::byte* memory) noexcept {
    const std::lock_guard lock(diary_->mutex);
    const auto found = blocks_.find(memory);
    if (found == blocks_.end()) {
      diary_->misuses.emplace_back("what is not there is given back");
      return;
    }
    if (!is_idle()) diary_->misuses.emplace_back("memory is given back while lanes run");
    diary_->book.forget(memory, static_cast<std::int64_t>(found->second));
    std::free(memory);
    blocks_.erase(found);
  }

  /// Queues a job, which comes after everything that the host has done and waited for.
  void push(Lane lane, std::function<void()> job) {
    VectorClock clock;
    {
      const std::lock_guard lock(diary_->mutex);
      clock = diary_->book.clock(Actor::host);
    }
    threads_[index_of(lane)]->push([this, lane, clock, job = std::move(job)] {
      {
        const std::lock_guard lock(diary_->mutex);
        diary_->book.acquire(actor_of(lane), clock);
      }
      job();
    });
  }

  bool next_wait_is_lost() {
    const std::lock_guard lock(diary_->mutex);
    return ++diary_->waits == settings_.lost_wait;
  }
  /// Precondition: the diary's mutex is held; also for the next function.
  [[nodiscard]] bool is_news(Lane lane, const VectorClock& clock) const {
    RaceBook asked;
    asked.acquire(actor_of(lane), diary_->book.clock(actor_of(lane)));
    return asked.acquire(actor_of(lane), clock);
  }
  void note_lost(Lane lane, const char* awaited, bool needed) {
    diary_->lost_wait = fmt::format("{} for {}", lane_names[index_of(lane)], awaited);
    diary_->lost_was_needed = needed;
  }

  DeviceSettings settings_;
  std::shared_ptr<DeviceDiary> diary_;
  std::thread::id owner_ = std::this_thread::get_id();
  std::map<std::byte*, std::size_t> blocks_;
  std::int64_t next_event_ = 0;
  // Under the diary's mutex:
  mutable std::condition_variable changed_;
  std::map<std::int64_t, Reached> reached_;  // by event
  std::map<std::uint64_t, VectorClock> signal_clocks_;
  std::uint64_t signal_ = 0;
  Diagnostics failure_;                                 // of a kernel; all later calls fail
  mutable bool dead_ = false;                           // lanes neither wait nor work any more
  std::array<std::unique_ptr<LaneThread>, 3> threads_;  // the last member
};

}  // namespace

ThreadedDevice threaded_device(const DeviceSettings& settings) {
  ThreadedDevice made;
  made.diary = std::make_shared<DeviceDiary>();
  made.device = std::make_unique<ThreadedLanes>(settings, made.diary);
  made.run_on_cpu = [diary = made.diary, run = settings.run](const KernelCall& call) {
    {
      const std::lock_guard lock(diary->mutex);
      note_accesses(diary->book, Actor::cpu, call);
    }
    return run(call);
  };
  return made;
}

}  // namespace stowage::test
