#include "gpu_probe/host/kernel_lane.hpp"

#include <algorithm>
#include <utility>

#include "gpu_probe/host/host_kernels.hpp"

namespace stowage {

KernelLane::KernelLane(std::function<double()> now)
    : now_(std::move(now)), thread_([this] { work(); }) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_ready_; });
}

KernelLane::~KernelLane() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void KernelLane::push(Ticket ticket, const KernelCall& call) {
  pending_.push_back(ticket);
  {
    const std::lock_guard lock(mutex_);
    Job& job =
        waiting_.emplace_back(Job{ticket,
                                  call,
                                  {call.reads.begin(), call.reads.end()},
                                  {call.writes.begin(), call.writes.end()},
                                  call.attributes != nullptr ? *call.attributes : Attributes{}});
    job.call.reads = job.reads;
    job.call.writes = job.writes;
    job.call.attributes = &job.attributes;
  }
  changed_.notify_all();
}

bool KernelLane::has(Ticket ticket) const {
  return std::ranges::find(pending_, ticket.id, &Ticket::id) != pending_.end();
}

Result<std::vector<KernelLane::Finished>> KernelLane::wait_for(Ticket ticket) {
  return wait(ticket.id);
}
Result<std::vector<KernelLane::Finished>> KernelLane::wait_for_all() {
  return wait(pending_.empty() ? -1 : pending_.back().id);
}

Result<std::vector<KernelLane::Finished>> KernelLane::wait(std::int64_t last) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return last_finished_ >= last || !failure_.empty(); });
  if (!failure_.empty()) return tl::unexpected(failure_);
  while (!pending_.empty() && pending_.front().id <= last_finished_) pending_.pop_front();
  return std::exchange(finished_, {});
}

void KernelLane::work() {
  // The number of threads is one of each thread's own settings.
  const auto kernels = host_kernels();
  if (kernels) (*kernels)->set_threads(host_kernel_threads);
  std::unique_lock lock(mutex_);
  is_ready_ = true;
  changed_.notify_all();
  while (true) {
    changed_.wait(lock, [&] { return stops_ || (!waiting_.empty() && failure_.empty()); });
    if (stops_) return;
    // A deque's elements stay where they are while others are pushed behind them.
    const Job& job = waiting_.front();
    lock.unlock();
    const double begin = now_();
    const Result<void> done = run_host_kernel(job.call);
    const TimeSpan span{begin, now_()};
    lock.lock();
    if (done) {
      finished_.push_back({job.ticket, span});
      last_finished_ = job.ticket.id;
    } else {
      failure_ = done.error();
    }
    waiting_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace stowage
