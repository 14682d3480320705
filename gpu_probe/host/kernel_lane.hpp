// KernelLane: a thread that runs host kernels one after the other, beside its owner's.
//
// Kernels use as many threads here as anywhere (host_kernel_threads), so that a result is the same
// bits on either lane. After a kernel that fails the lane runs nothing more.
//
// Thread-safe towards its own thread alone: one owner calls it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu_probe/backend/backend.hpp"

namespace stowage {

class KernelLane {
 public:
  /// `now`: seconds on the owner's clock, called from the lane's thread. Returns when that thread
  /// is ready.
  explicit KernelLane(std::function<double()> now);
  KernelLane(const KernelLane&) = delete;
  KernelLane& operator=(const KernelLane&) = delete;
  /// Waits for the kernel that is running; those behind it do not run.
  ~KernelLane();

  /// Keeps a copy of what the call points to.
  void push(Ticket ticket, const KernelCall& call);
  /// Whether the kernel was pushed here, and no call has returned it.
  [[nodiscard]] bool has(Ticket ticket) const;

  struct Finished {
    Ticket ticket;
    TimeSpan span;
  };
  /// Returns once the ticket's kernel and all before it have run: those, but for what an earlier
  /// call returned. Errors: the first kernel's that failed.
  [[nodiscard]] Result<std::vector<Finished>> wait_for(Ticket ticket);
  /// The same for all that were pushed.
  [[nodiscard]] Result<std::vector<Finished>> wait_for_all();

 private:
  struct Job {
    Ticket ticket;
    KernelCall call;
    std::vector<TensorArgument> reads, writes;
    Attributes attributes;
  };
  void work();
  Result<std::vector<Finished>> wait(std::int64_t last);

  std::function<double()> now_;
  std::deque<Ticket> pending_;  // pushed and not returned; the owner's
  std::mutex mutex_;            // of all that follows
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::vector<Finished> finished_;
  std::int64_t last_finished_ = -1;
  Diagnostics failure_;
  bool is_ready_ = false, stops_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace stowage
