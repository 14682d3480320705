// Plan: what is executed, in which order, at which addresses: the planner's product.
//
// A plan needs no planner and no lowering to be read: it holds the step itself, sized, the machine,
// residency, transfers, arena offsets, totals and bounds, and the description that the step was
// lowered from, if there was one. docs/plan-file.md is the format. Steps are NodeIds of the step's
// graph; ranges are half-open in steps.
//
// The meaning of a plan, which the executor, the lane simulation and the validator all keep to. It
// is defined for one GPU and its host (two_sides.hpp); an upload goes to the GPU's memory, a
// download comes from it:
//   - The GPU's nodes run one after the other in the sequence's order: node i in step i.
//   - The CPU's nodes run beside them, one after the other. Each has a window [begin, end) of steps
//     that its own step lies in: it is issued at boundary `begin`, and awaited at boundary `end`.
//     They run in the order of their `begin`s, those of one boundary in the sequence's order. A
//     window of the node's own step alone means that the GPU waits for the node.
//   - Boundary t lies between steps t - 1 and t. At it, in this order: the CPU's nodes with `end`
//     == t have finished; downloads with `begin` == t may start; the downloads with `end` == t have
//     finished; uploads with `begin` == t may start; the uploads with `end` == t have finished; the
//     CPU's nodes with `begin` == t may start, and so may node t if it is the GPU's.
//   - Whatever starts at boundary t waits for the GPU's nodes before t and for the CPU's nodes
//     whose `end` <= t. A node also waits for every copy whose `end` <= t, an upload for every
//     download whose `end` <= t. A transfer has begin <= end <= number of nodes: begin == end is a
//     copy that nothing hides (an input that node 0 reads is uploaded with begin == end == 0), end
//     == number of nodes is a copy that is done when the step is.
//   - The numbers are those of the sequence. Of two nodes that touch a storage, one of which writes
//     it, the later one starts when the earlier one has finished. Where both are the CPU's, the
//     earlier one is issued first; else the window of the one has no step in common with the window
//     of the other (for a GPU's node: its step). From a window's begin to its end no download
//     carries what the node reads or writes, and no upload carries what it writes.
//   - Uploads keep their order among themselves, downloads likewise, and along each of the two
//     lists `begin` never decreases.
//   - A residence [begin, end), begin < end, holds its bytes of the arena from boundary `begin` to
//     boundary `end`, and may follow another at the same place. On the GPU an upload begins in its
//     residence, at that residence's `begin`, and ends in it or at its end; a download lies within
//     [begin, end] of its own. On the host a residence from which an upload reads lasts past the
//     upload: to at least min(end + 1, number of nodes), since a download that begins at the
//     upload's `end` waits for no upload. What a node on the CPU reads, writes and works in has
//     residences there through its window.
//   - A GPU node's write or an upload puts a storage's value on the GPU; a CPU node's write or a
//     download puts it on the host. A write on one side makes the copy on the other side stale.
//   - A persistent storage with a residence from 0, and no upload of it that begins at 0, is there,
//     valid, when the step starts. It has a residence up to the end at the same offset (one
//     residence [0, steps), or two: [0, a) and [b, steps)) and is valid there, with the newest
//     version, when the step ends. The same holds on the host. Inputs are on the host, valid, from
//     the start of their host residence, which is 0, and need not be there at the end.
//   - A node's temporaries have a residence on the node's side, of that one step or of its window;
//     its workspace, on the GPU only, has workspace_offset for that step.
//   - The host's side is pinned and pageable memory together. A storage that any transfer of the
//     plan carries has its residences there in pinned memory, any other in either, but not in both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/batch.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/base/step_range.hpp"
#include "estimator/card/card.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/serving/serving_settings.hpp"
#include "estimator/step/step_graph.hpp"
#include "planner/certificate/certificate.hpp"
#include "planner/plan/machine.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/host.hpp"
#include "planner/problem/levers.hpp"
#include "planner/problem/step_pins.hpp"

namespace stowage {

/// Where the plan came from, and what it was made for.
struct PlanInputs {
  std::string stowage_version;
  std::string model_name;
  std::string model_text;  ///< the description itself; "": the plan was made from a step
  std::string model_hash;  ///< of the text (base/hash.hpp)
  ModelOptions model_options;
  std::string step_hash;                   ///< of the sized step (document/step_hash.hpp)
  std::optional<ServingSettings> serving;  ///< there: the step is a round of it (served_round.hpp)
  Card card;  ///< the whole description: its name is not looked up again
  Host host;
  Bytes available;   ///< of the card, for the arena; 0: no card was given
  GpuBudget budget;  ///< for the arena
};

/// The plan for the step's node with the same id.
struct PlannedNode {
  ProcessorId processor;
  std::string engine;  ///< "": the kernel has no choice of engines
  Bytes workspace;
  Bytes workspace_offset;  ///< in the GPU arena; where workspace > 0
  /// When a node of the CPU runs: issued at boundary `begin`, awaited at `end`; empty: its own
  /// step.
  StepRange window = {};
};

struct Residence {
  StorageId storage;
  StepRange steps;
  Bytes offset;  ///< in its memory's arena
};

struct Transfer {
  StorageId storage;
  LinkId link;
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

struct PlanTotals {
  Bytes gpu_peak;  ///< largest live sum on the GPU, with workspaces and copies in flight
  Bytes arena, arena_lower_bound;
  Bytes host_peak;          ///< pinned host arena
  Bytes pageable_peak;      ///< arena on the host of storages that no copy carries
  Bytes h2d, d2h;           ///< a step
  Bytes pcie_lower_bound;   ///< no plan with these pins that computes on the GPU moves less
  double cost_seconds = 0;  ///< the additive objective
  double cost_lower_bound_seconds = 0;
  double all_gpu_cost_seconds = 0;  ///< with memory for everything, under the plan's pins
  double step_seconds = 0;          ///< simulated, with overlap
  double all_gpu_step_seconds = 0;
  /// No plan within the budget with these pins has a shorter step; nullopt: not known.
  std::optional<double> step_lower_bound_seconds;
  bool proved_optimal = false;

  /// Whether the cost is at its lower bound, but for optimality_tolerance.
  [[nodiscard]] bool cost_is_least() const;
  /// (cost - bound) / cost.
  [[nodiscard]] double gap() const;
  /// (cost - bound) / (cost - all-GPU cost); 0 without overhead.
  [[nodiscard]] double overhead_gap() const;
  /// (step - bound) / step; nullopt without a bound.
  [[nodiscard]] std::optional<double> step_gap() const;
};

/// The nodes that the plan keeps on the GPU, except those that Plan::pins keeps elsewhere. Its
/// bounds are of all plans with the same pins.
enum class Pinned : std::uint8_t {
  nothing,
  computation,  ///< forward, loss and backward; updates may run on either side
  all_nodes,
};
[[nodiscard]] std::string_view to_string(Pinned pinned);

/// What the search for the plan minimised: PlanTotals::proved_optimal is about it.
enum class Minimised : std::uint8_t {
  seconds,  ///< the cost of nodes and copies
  bytes,    ///< what copies carry over PCIe
};
[[nodiscard]] std::string_view to_string(Minimised minimised);

struct Plan {
  std::string name;  ///< a label for readers: "cheapest", "min-pcie", "micro-batch-4"
  Pinned pinned = Pinned::nothing;
  Minimised minimised = Minimised::seconds;
  Levers levers;  ///< the means it may use; its bounds are of plans with no other means
  StepPins pins;  ///< the user's pins, and nodes without a GPU kernel
  PlanInputs inputs;
  /// What the step's file holds beside the graph: parameters, layers. Its graph is that of `step`.
  StepDocument document;
  SizedStep step;  ///< its `engines` are not kept: each node has its choice
  Machine machine = gpu_and_host({});
  std::vector<PlannedNode> nodes;  ///< by NodeId of the step
  /// By MemoryId; in each memory ordered by (begin, storage).
  std::vector<std::vector<Residence>> residences{3};
  std::vector<Transfer> transfers;  ///< ordered by begin; those of a link in issue order
  PlanTotals totals;
  std::optional<Certificate> certificate;  ///< proof of the bounds; none: they are unproved
  std::vector<std::string> remarks;        ///< for its reader: "changes the training ..."

  [[nodiscard]] std::vector<Residence>& in(MemoryId memory) { return residences[memory.index()]; }
  [[nodiscard]] const std::vector<Residence>& in(MemoryId memory) const {
    return residences[memory.index()];
  }
  // Lookups in the step. Precondition: the id is one of its ids.
  [[nodiscard]] Bytes bytes(StorageId storage) const { return step.bytes(storage); }
  [[nodiscard]] const Storage& storage(StorageId id) const { return step.graph->storage(id); }
  [[nodiscard]] const KernelNode& kernel(NodeId id) const { return step.graph->node(id); }
};

/// The batch of the whole step: all micro-batches together.
[[nodiscard]] WholeBatch whole_batch(const Plan& plan);
/// The steps that a node runs in: its window, or its own step.
[[nodiscard]] StepRange window_of(const Plan& plan, NodeId node);
/// The source of the nodes' engine names.
[[nodiscard]] WorkspaceOrigin workspace_origin(const Plan& plan);

}  // namespace stowage
