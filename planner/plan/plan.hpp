// Plan: what is executed, in which order, at which addresses: the planner's product.
//
// A plan needs no planner to be read: it holds the description it was made from, the settings, the
// executed sequence, residency, transfers, arena offsets, totals and bounds. docs/plan-file.md is
// the format. Steps are NodeIds of the step graph that lowering the embedded description again
// gives; ranges are half-open in steps.
//
// Meaning, which the executor, the lane simulation and the validator all keep to:
//   - Nodes run one after the other in the sequence's order, those on the CPU too.
//   - Boundary t lies between the end of node t - 1 and the start of node t. At it, in this order:
//     the downloads with `end` == t have finished; uploads with `begin` == t may start; the uploads
//     with `end` == t have finished.
//   - A transfer may start when every node before `begin` has finished and, for an upload, every
//     download whose `end` <= this `begin` has finished too; it has finished before node `end`
//     starts. begin <= end <= number of nodes: begin == end is a copy that nothing hides (an input
//     that node 0 reads is uploaded with begin == end == 0), end == number of nodes is one that is
//     done when the step is.
//   - Uploads keep their order among themselves, downloads likewise, and along each of the two
//     lists `begin` never decreases.
//   - A residence [begin, end), begin < end, holds its bytes of the arena from boundary `begin` to
//     boundary `end`, and may follow another at the same place. On the GPU an upload begins in its
//     residence, at that residence's `begin`, and ends in it or at its end; a download lies within
//     [begin, end] of its own. On the host a residence from which an upload reads lasts past the
//     upload: to at least min(end + 1, number of nodes), since a download that begins at the
//     upload's `end` waits for no upload.
//   - A storage's value comes to be on the GPU by a GPU node's write or by an upload, on the host
//   by
//     a CPU node's write or by a download; a write on one side makes the other side's copy stale.
//   - A persistent storage with a residence from 0, and no upload of it that begins at 0, is there,
//     valid, when the step starts; it has a residence up to the end at the same offset (one
//     residence [0, steps), or two: [0, a) and [b, steps)) and is valid there, with the newest
//     version, when the step ends. The same goes for the host's side. Inputs are on the host,
//     valid, from the start of their host residence, which is 0, and need not be there at the end.
//   - A node's temporaries have a residence of that one step on the node's side; its workspace, on
//     the GPU only, has workspace_offset for that step.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/arena/arena.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/step_graph.hpp"
#include "planner/problem/host.hpp"
#include "planner/problem/rates.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// Where the plan came from: enough to lower the model again and compare.
struct PlanInputs {
  std::string stowage_version;
  std::string model_name;
  std::string model_text;  ///< the description itself
  std::string model_hash;  ///< of the text (base/hash.hpp)
  std::string step_hash;   ///< of the sized step: node names, storages, bytes
  ModelOptions model_options;
  LoweringSettings lowering;
  std::int64_t batch = 0;  ///< of the whole step: micro_batches times the micro-batch
  Card card;               ///< as it was: no name of it is looked up again
  Host host;
  Rates rates;
  Bytes available;               ///< of the card, for the arena; 0: no card was given
  Bytes budget;                  ///< for the arena
  std::string workspace_origin;  ///< "cudnn 9.19.0", "rule", "none"
};

struct PlannedNode {
  std::string name;  ///< the node's, for readers and for the comparison
  Device device = Device::gpu;
  std::string engine;  ///< "" : the kernel has no choice
  Bytes workspace;
  Bytes workspace_offset;  ///< in the GPU arena; where workspace > 0
};

struct PlannedStorage {
  std::string name;
  StorageClass storage_class = StorageClass::activation;
  Bytes bytes;
};

struct Residence {
  StorageId storage;
  StepRange steps;
  Bytes offset;  ///< in its arena
};

enum class Direction : std::uint8_t { h2d, d2h };

struct Transfer {
  StorageId storage;
  Direction direction = Direction::h2d;
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

struct PlanTotals {
  Bytes gpu_peak;  ///< largest live sum of the plan on the GPU (workspaces, copies in flight)
  Bytes arena, arena_lower_bound;
  Bytes host_peak;          ///< pinned host arena
  Bytes h2d, d2h;           ///< a step
  Bytes pcie_lower_bound;   ///< no plan with these pins and compute on the GPU moves less
  double cost_seconds = 0;  ///< the additive objective
  double cost_lower_bound_seconds = 0;
  double all_gpu_cost_seconds = 0;
  double step_seconds = 0;  ///< simulated, with overlap
  double all_gpu_step_seconds = 0;
  bool proved_optimal = false;

  [[nodiscard]] double gap() const;  ///< (cost - bound) / cost
  [[nodiscard]] double overhead_gap()
      const;  ///< (cost - bound) / (cost - all-GPU cost); 0 without overhead
};

/// Which nodes the plan keeps on the GPU. Its bounds are of all plans with the same pins.
enum class Pinned : std::uint8_t {
  nothing,
  computation,  ///< forward, loss and backward; updates run where they like
  all_nodes,
};
[[nodiscard]] std::string_view to_string(Pinned pinned);

struct Plan {
  std::string name;  ///< a label for readers: "cheapest", "min-pcie", "micro-batch-4"
  Pinned pinned = Pinned::nothing;
  PlanInputs inputs;
  std::vector<PlannedNode> nodes;        ///< by NodeId
  std::vector<PlannedStorage> storages;  ///< by StorageId
  std::vector<Residence> gpu;            ///< ordered by (begin, storage)
  std::vector<Residence> host;           ///< in the pinned host arena; likewise
  std::vector<Transfer> transfers;  ///< ordered by begin; uploads and downloads each in issue order
  PlanTotals totals;
  std::vector<std::string> remarks;  ///< what its reader should know: "changes the training ..."
};

}  // namespace stowage
