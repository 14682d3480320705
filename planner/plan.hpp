// Plan: what is executed, in which order, at which addresses: the planner's product.
//
// A plan needs no planner to be read: it holds the description it was made from, the settings, the
// executed sequence, residency, transfers, arena offsets, totals and bounds. docs/plan-file.md is
// the format. Steps are NodeIds of the step graph that lowering the embedded description again
// gives; ranges are half-open in steps.
//
// Meaning, which the executor, the lane simulation and the validator all keep to:
//   - Nodes run one after the other in the sequence's order.
//   - A transfer may start when every node before `begin` has finished and, for an upload, every
//     download whose `end` <= this `begin` has finished too; it has finished before node `end`
//     starts. begin < end, except that a transfer may have end == number of nodes (done at the end).
//     Uploads keep their order among themselves, downloads likewise.
//   - A residence [begin, end) holds its bytes of the arena from the end of node begin - 1 to the
//     start of node `end`. An upload's residence covers its [begin, end); a download's too.
//   - Persistent storages with a residence from 0 are there, valid, when the step starts; the same
//     residence must hold the newest version when it ends. The same goes for the host's side.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/memory/arena.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/step_graph.hpp"
#include "planner/rates.hpp"
#include "planner/residency_problem.hpp"

namespace stowage {

/// Where the plan came from: enough to lower the model again and compare.
struct PlanInputs {
  std::string stowage_version;
  std::string model_name;
  std::string model_text;   ///< the description itself
  std::string model_hash;   ///< of the text (base/hash.hpp)
  std::string step_hash;    ///< of the sized step: node names, storages, bytes
  ModelOptions model_options;
  LoweringSettings lowering;
  std::int64_t batch = 0;   ///< of the whole step: micro_batches times the micro-batch
  std::string card;         ///< "GeForce RTX 3060", "generic 8 MiB", ...
  std::string host;
  Rates rates;
  Bytes available;          ///< of the card, for the arena; 0: no card was given
  Bytes budget;             ///< for the arena
  std::string workspace_origin;  ///< "cudnn 9.19.0", "rule", "none"
};

struct PlannedNode {
  std::string name;            ///< the node's, for readers and for the comparison
  Device device = Device::gpu;
  std::string engine;          ///< "" : the kernel has no choice
  Bytes workspace;
  Bytes workspace_offset;      ///< in the GPU arena; where workspace > 0
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
  Bytes gpu_peak;            ///< largest live sum of the plan on the GPU (workspaces, copies in flight)
  Bytes arena, arena_lower_bound;
  Bytes host_peak;           ///< pinned host arena
  Bytes h2d, d2h;            ///< a step
  Bytes pcie_lower_bound;    ///< no plan with these pins and compute on the GPU moves less
  double cost_seconds = 0;   ///< the additive objective
  double cost_lower_bound_seconds = 0;
  double all_gpu_cost_seconds = 0;
  double step_seconds = 0;   ///< simulated, with overlap
  double all_gpu_step_seconds = 0;
  bool proved_optimal = false;

  [[nodiscard]] double gap() const;           ///< (cost - bound) / cost
  [[nodiscard]] double overhead_gap() const;  ///< (cost - bound) / (cost - all-GPU cost); 0 without overhead
};

struct Plan {
  std::string name;  ///< "cheapest", "min-pcie", "micro-batch-4"
  PlanInputs inputs;
  std::vector<PlannedNode> nodes;        ///< by NodeId
  std::vector<PlannedStorage> storages;  ///< by StorageId
  std::vector<Residence> gpu;            ///< ordered by (begin, storage)
  std::vector<Residence> host;
  std::vector<Transfer> transfers;       ///< uploads and downloads, each in issue order
  PlanTotals totals;
};

}  // namespace stowage
