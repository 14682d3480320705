// The executor: runs a plan's step, node by node and copy by copy, on a backend.
//
// At boundary t, between steps t - 1 and t: the compute lane waits for the CPU's nodes whose
// windows end at t; residences on the host change; downloads that begin at t are issued; the
// compute lane waits for the downloads that end at t; residences on the GPU change; uploads that
// begin at t are issued; the compute lane waits for the uploads that end at t; the CPU's nodes
// whose windows begin at t are issued. Then node t runs, if it is the GPU's.
//
// Whatever is not there is NaN (0xFF bytes): both arenas to begin with, a place when its residence
// ends, a copy that a write on the other side makes stale, temporaries and workspaces before their
// node. So a plan that reads what is not there gives wrong numbers, quite apart from the book that
// the executor keeps (residency_book.hpp). In padded places every canary is looked at after every
// node. A run for its times has none of that between its first node and its last: the arenas are
// poisoned before it, and results are read after it.
//
// Several steps run one after the other on the same arenas. What persists is not written again: the
// next step finds it where the plan says that this one leaves it, and all else is NaN.
//
// A backend that fails ends the execution with an error: it is no finding about the plan.
//
// Deterministic but for the seconds. Not thread-safe: one execution a backend at a time.
#pragma once

#include <string>
#include <vector>

#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/run/arena_places.hpp"
#include "gpu_probe/run/step_results.hpp"
#include "gpu_probe/run/step_times.hpp"

namespace stowage {

struct ExecutionOptions {
  bool padded = false;  ///< else the plan's own offsets
  CopyTiming timing;
  /// Nothing runs in between but the step's own kernels and copies. Not together with padded; of
  /// the results only those that are there at the step's end are read.
  bool clean = false;
  /// How many, on the same inputs; with padded places one, since what persists may lie in one of
  /// them at a step's end and in another at its start.
  std::int64_t steps = 1;
  /// false: go on for as long as there are addresses, to see what the numbers say.
  bool stop_at_violation = true;
};

struct Execution {
  /// What the plan did wrong, in order: by the book, by the arenas' bounds.
  std::vector<std::string> violations;
  std::vector<std::string> overruns;  ///< spoilt canaries: a kernel's fault, or a copy's
  bool completed = false;             ///< the last step's last node has run
  StepResults results;                ///< of what ran of the last step that was begun
  std::vector<StepResults> earlier;   ///< of the steps before that: their losses
  Bytes gpu_peak;                     ///< largest sum of residences and workspace on the GPU
  Bytes gpu_high_water;               ///< how far into the GPU arena anything was read or written
  Bytes host_high_water;
  CopyCount h2d, d2h;            ///< of all steps
  std::vector<StepTimes> times;  ///< by step; where it completed
};

/// Precondition: check_structure(plan) passed. Errors: the backend's, with what the executor was
/// about to do: "node 'relu_1.forward': ...".
[[nodiscard]] Result<Execution> execute(const Plan& plan, Backend& backend,
                                        const ExecutionOptions& options);

}  // namespace stowage
