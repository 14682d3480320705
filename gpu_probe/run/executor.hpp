// The executor: runs a plan's step on a backend, node by node and copy by copy.
//
// At boundary t, between steps t - 1 and t, in this order: the compute lane waits for the CPU's
// nodes whose windows end at t; residences on the host change; downloads that begin at t are
// issued; the compute lane waits for the downloads that end at t; residences on the GPU change;
// uploads that begin at t are issued; the compute lane waits for the uploads that end at t; the
// CPU's nodes whose windows begin at t are issued. Then node t runs, if it is the GPU's.
//
// A place without a value holds NaN (0xFF bytes): both arenas at the start, a place when its
// residence ends, a copy that a write on the other side makes stale, temporaries and workspaces
// before their node. So a plan that reads what is not there computes wrong numbers, even if the
// executor's book (residency_book.hpp) did not notice. With padded places every canary is checked
// after every node. A clean run, for the times, does none of this between its first and its last
// node: the arenas are poisoned before it, and results are read after it.
//
// Several steps run one after the other on the same arenas. Persistent storages are not written
// again: the next step finds them where the plan says that this step leaves them. Everything else
// is NaN again.
//
// An error of the backend ends the execution with that error: it says nothing about the plan.
//
// Deterministic except for the times. Not thread-safe: a backend runs one execution at a time.
#pragma once

#include <string>
#include <vector>

#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/run/arena_places.hpp"
#include "gpu_probe/run/step_results.hpp"
#include "gpu_probe/run/step_times.hpp"

namespace stowage {

struct ExecutionOptions {
  bool padded = false;  ///< false: exact places, at the plan's own offsets
  CopyTiming timing;
  /// Runs nothing but the step's own kernels and copies. Not together with `padded`. Only the
  /// results that exist at the step's end are read.
  bool clean = false;
  /// The number of steps, on the same inputs. With padded places only one: a persistent storage may
  /// lie in one place at a step's end and in another at its start.
  std::int64_t steps = 1;
  /// false: goes on as long as there are addresses, to see what the results are.
  bool stop_at_violation = true;
};

struct Execution {
  /// What the plan did wrong, in order: against the book, or outside of the arenas.
  std::vector<std::string> violations;
  std::vector<std::string> overruns;  ///< canaries that a kernel or a copy has overwritten
  bool completed = false;             ///< the last node of the last step has run
  StepResults results;                ///< of the last step that was begun, as far as it ran
  std::vector<StepResults> earlier;   ///< the losses of the steps before it
  Bytes gpu_peak;                     ///< largest sum of residences and workspace on the GPU
  Bytes gpu_high_water;               ///< how far into the GPU arena anything was read or written
  Bytes host_high_water;
  CopyCount h2d, d2h;            ///< of all steps
  std::vector<StepTimes> times;  ///< by step, of steps that completed
};

/// Precondition: check_structure(plan) passed. Errors: the backend's, with what the executor was
/// doing: "node 'relu_1.forward': ...".
[[nodiscard]] Result<Execution> execute(const Plan& plan, Backend& backend,
                                        const ExecutionOptions& options);

}  // namespace stowage
