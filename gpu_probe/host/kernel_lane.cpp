#include "gpu_probe/host/kernel_lane.hpp"

#include <algorithm>
#include <utility>

namespace stowage {

KernelLane::KernelLane(std::function<double()> now, RunKernel run)
    : now_(std::move(now)), run_(std::move(run)), thread_([this] { work(); }) {
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

void KernelLane::push(Ticket ticket, const KernelCall& call, Hooks hooks) {
  pending_.push_back(ticket);
  {
    const std::lock_guard lock(mutex_);
    waiting_.emplace_back(ticket, call, std::move(hooks));
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

Result<KernelLane::Finished> KernelLane::done(const Job& job) const {
  if (job.hooks.before) {
    if (auto passed = job.hooks.before(); !passed) return tl::unexpected(std::move(passed.error()));
  }
  const double begin = now_();
  if (auto ran = run_(job.call.get()); !ran) return tl::unexpected(std::move(ran.error()));
  return Finished{job.ticket, {begin, now_()}};
}

void KernelLane::work() {
  // Each thread has its own setting of the number of threads.
  const auto kernels = host_kernels();
  if (kernels) (*kernels)->set_threads(host_kernel_threads);
  std::unique_lock lock(mutex_);
  is_ready_ = true;
  changed_.notify_all();
  while (true) {
    changed_.wait(lock, [&] { return stops_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    // The address of a deque's element does not change when others are pushed behind it.
    const Job& job = waiting_.front();
    const bool runs = !stops_ && failure_.empty();
    lock.unlock();
    const Result<Finished> finished = runs ? done(job) : Finished{};
    if (job.hooks.after) job.hooks.after();
    lock.lock();
    if (!finished) {
      failure_ = finished.error();
    } else if (runs) {
      finished_.push_back(*finished);
      last_finished_ = job.ticket.id;
    }
    waiting_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace stowage
