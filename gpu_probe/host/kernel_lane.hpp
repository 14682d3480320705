// KernelLane: a thread that runs host kernels one after the other, beside its owner's thread.
//
// Kernels use the same number of threads here as elsewhere (host_kernel_threads), so that they give
// the same bits. After a kernel that fails the lane runs no more kernels, but it still calls
// Hooks::after for each, so that nobody waits for ever.
//
// Not thread-safe: one owner calls it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/backend/owned_call.hpp"
#include "gpu_probe/host/host_kernels.hpp"

namespace stowage {

/// Runs a kernel to its end on host addresses.
using RunKernel = std::function<Result<void>(const KernelCall&)>;

class KernelLane {
 public:
  /// `now`: seconds on the owner's clock. The lane's thread calls it and `run`. Returns when that
  /// thread is ready.
  explicit KernelLane(std::function<double()> now, RunKernel run = run_host_kernel);
  KernelLane(const KernelLane&) = delete;
  KernelLane& operator=(const KernelLane&) = delete;
  /// Waits for the kernel that is running. Kernels behind it do not run.
  ~KernelLane();

  /// What the lane's thread calls before and after a kernel; null: nothing.
  struct Hooks {
    std::function<Result<void>()> before;  ///< if it fails, the kernel counts as failed
    std::function<void()> after;           ///< called for each kernel, also if it did not run
  };
  /// Queues a kernel. Copies the call with its attributes and lists of arguments.
  void push(Ticket ticket, const KernelCall& call, Hooks hooks = {});
  /// Whether the kernel was pushed, and wait_for() has not returned it yet.
  [[nodiscard]] bool has(Ticket ticket) const;

  struct Finished {
    Ticket ticket;
    TimeSpan span;
  };
  /// Waits until the ticket's kernel and all before it have run. Returns those that no earlier call
  /// has returned. Errors: of the first kernel that failed.
  [[nodiscard]] Result<std::vector<Finished>> wait_for(Ticket ticket);
  /// As wait_for(), for all kernels that were pushed.
  [[nodiscard]] Result<std::vector<Finished>> wait_for_all();

 private:
  struct Job {
    Job(Ticket of, const KernelCall& what, Hooks around)
        : ticket(of), call(what), hooks(std::move(around)) {}
    Ticket ticket;
    OwnedKernelCall call;
    Hooks hooks;
  };
  void work();
  [[nodiscard]] Result<Finished> done(const Job& job) const;
  Result<std::vector<Finished>> wait(std::int64_t last);

  std::function<double()> now_;
  RunKernel run_;
  std::deque<Ticket> pending_;  // pushed and not returned; only the owner uses it
  std::mutex mutex_;            // guards all that follows
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::vector<Finished> finished_;
  std::int64_t last_finished_ = -1;
  Diagnostics failure_;
  bool is_ready_ = false, stops_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace stowage
