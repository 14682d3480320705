// Certificate: what proves a plan's bounds, so that nobody has to believe them.
//
// A bound says that no plan of its scope, within the budget, costs less. Its proof is a branching
// over those plans and, at each leaf, prices of memory. At any prices p >= 0
//
//   min over placements of [ cost + sum of p(t) * memory(t) ]  -  sum of p(t) * budget
//
// is at most the cost of every placement within the budget, and the minimum is a minimum cut.
// Whoever has the step, the machine and the prices can compute it again (planner/bounds), and the
// least over the leaves is the bound. docs/plan-file.md has the format, docs/planner.md the
// mathematics.
//
// Storages and nodes are the step's, by number. Costs are seconds, or bytes for the bound on
// copies.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "estimator/base/bytes.hpp"

namespace stowage {

/// Which plans a bound is of: those that keep all this on the GPU, and to the plan's own pins.
struct BoundScope {
  bool compute_on_gpu = false;    ///< forward, loss and backward run there
  bool updates_on_gpu = false;    ///< so do updates
  bool keep_activations = false;  ///< what stays there between two nodes that have to run there
  bool keep_weights = false;
  bool keep_state = false;
  bool operator==(const BoundScope&) const = default;
};

struct MemoryPrice {
  std::int32_t step = 0;
  double price = 0;  ///< of a byte on the GPU at the step; positive
  bool operator==(const MemoryPrice&) const = default;
};

/// A limit of a step's memory, rounded (planner/solve/memory_row.hpp has the formula). Bytes and
/// room follow from the step and from what the branch has fixed.
struct RoundedLimit {
  std::int32_t step = 0;
  std::int64_t divisor = 1;           ///< at least 1
  std::vector<std::int32_t> counted;  ///< storages whose absence is counted, ascending
  bool operator==(const RoundedLimit&) const = default;
};

struct LimitPrice {
  std::int32_t limit = 0;  ///< rounded limits are numbered in the tree's order, from 0
  double price = 0;        ///< of a unit of its weights; positive
  bool operator==(const LimitPrice&) const = default;
};

/// What a branching decides: whether a node runs on the GPU or, with `after` >= 0, whether a
/// storage stays there from its touch at step `after` to its next one.
struct Fixing {
  std::int32_t subject = 0;  ///< a node or a storage
  std::int32_t after = -1;
  bool operator==(const Fixing&) const = default;
};

struct BranchLeaf {
  std::vector<MemoryPrice> steps;  ///< ascending
  std::vector<LimitPrice> limits;  ///< ascending; of limits at the leaf or above it
  bool operator==(const BranchLeaf&) const = default;
};

struct BranchNode {
  std::vector<RoundedLimit> limits;  ///< they hold here and below
  std::variant<BranchLeaf, Fixing> content;
  [[nodiscard]] const Fixing* fixing() const { return std::get_if<Fixing>(&content); }
  [[nodiscard]] const BranchLeaf* leaf() const { return std::get_if<BranchLeaf>(&content); }
  bool operator==(const BranchNode&) const = default;
};

/// In pre-order: behind a node that fixes something comes the tree of the plans that have it on the
/// GPU, then that of all others. So the leaves cover every plan.
using BranchTree = std::vector<BranchNode>;

/// Where `tree` ends that begins at `begin`; nullopt: it lacks a node.
[[nodiscard]] std::optional<std::size_t> end_of_tree(const BranchTree& tree, std::size_t begin = 0);

/// A bound on a sum of costs.
struct TreeProof {
  BoundScope scope;
  BranchTree tree;
  bool operator==(const TreeProof&) const = default;
};

/// A bound on the busiest lane: a weighted mean of the lanes, priced without branching.
struct LaneProof {
  BoundScope scope;
  double gpu = 0, cpu = 0, uploads = 0, downloads = 0;  ///< what a second of each lane counts
  std::vector<MemoryPrice> prices;                      ///< ascending
  bool operator==(const LaneProof&) const = default;
};

/// A bound on the step by what is away during one node (planner/solve/split_bound.hpp).
struct SplitProof {
  BoundScope scope;
  std::int32_t node = 0;
  double downloads = 0;  ///< before the node: the weight of downloads against that of compute
  double uploads = 0;    ///< after it
  double cpu = 0;        ///< the weight of the CPU's lane against all the rest
  bool operator==(const SplitProof&) const = default;
};

/// A node of several engines: whoever runs it on the GPU takes at least so much. All engines of a
/// node take the same time (docs/planner.md), so that the others say nothing.
struct NodeWorkspace {
  std::int32_t node = 0;
  Bytes least;
  bool operator==(const NodeWorkspace&) const = default;
};

struct Certificate {
  /// A place on the GPU takes a multiple of it: 1, or a divisor of the arena's granules.
  Bytes granule{1};
  std::vector<NodeWorkspace> workspaces;  ///< ascending nodes, positive sizes; of others 0
  std::optional<TreeProof> cost;          ///< of cost_lower_bound_seconds
  std::optional<TreeProof> transfers;     ///< of pcie_lower_bound_bytes
  std::variant<std::monostate, LaneProof, SplitProof> step;  ///< of step_lower_bound_seconds
  bool operator==(const Certificate&) const = default;
};

}  // namespace stowage
