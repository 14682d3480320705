// KernelLane: a thread that runs host kernels one after the other, beside its owner's.
//
// Kernels use as many threads here as anywhere (host_kernel_threads), so that a result is the same
// bits on either lane. After a kernel that fails the lane runs nothing more; what others wait for
// is told to them all the same (Gates::after).
//
// Thread-safe towards its own thread alone: one owner calls it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/backend/kept_call.hpp"
#include "gpu_probe/host/host_kernels.hpp"

namespace stowage {

/// Runs a kernel to its end on host addresses.
using RunKernel = std::function<Result<void>(const KernelCall&)>;

class KernelLane {
 public:
  /// `now`: seconds on the owner's clock, called from the lane's thread, as `run` is. Returns when
  /// that thread is ready.
  explicit KernelLane(std::function<double()> now, RunKernel run = run_host_kernel);
  KernelLane(const KernelLane&) = delete;
  KernelLane& operator=(const KernelLane&) = delete;
  /// Waits for the kernel that is running; those behind it do not run.
  ~KernelLane();

  /// What the lane's thread does around a kernel; null: nothing.
  struct Gates {
    std::function<Result<void>()> before;  ///< where it fails, the kernel has failed
    std::function<void()> after;           ///< once for each kernel pushed, whether it ran or not
  };
  /// Keeps a copy of what the call points to.
  void push(Ticket ticket, const KernelCall& call, Gates gates = {});
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
    Job(Ticket of, const KernelCall& what, Gates around)
        : ticket(of), call(what), gates(std::move(around)) {}
    Ticket ticket;
    KeptCall call;
    Gates gates;
  };
  void work();
  [[nodiscard]] Result<Finished> done(const Job& job) const;
  Result<std::vector<Finished>> wait(std::int64_t last);

  std::function<double()> now_;
  RunKernel run_;
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
