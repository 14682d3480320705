// Certificate: the proof of a plan's bounds, so that anybody can check them.
//
// A bound says that no plan of its scope, within the budget, costs less. Its proof is a branching
// over those plans and, at each leaf, prices of memory. At any prices p >= 0
//
//   min over placements of [ cost + sum of p(t) * memory(t) ]  -  sum of p(t) * budget
//
// is at most the cost of every placement within the budget, and the minimum is a minimum cut. A
// checker that has the step, the machine and the prices computes it again (planner/bounds), and the
// least value over the leaves is the bound. docs/plan-file.md has the format, docs/planner.md the
// mathematics.
//
// Storages and nodes are numbers of the step. Costs are seconds; for the bound on copies they are
// bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "estimator/base/bytes.hpp"

namespace stowage {

/// A cost that is above its lower bound by no more than this share of itself is proved to be the
/// least. Bounds are sums of small units, each rounded down, so that they may be below by this
/// much.
inline constexpr double optimality_tolerance = 1e-9;

/// The plans that a bound is about: those that keep to all of this and to the pins of the plan.
struct BoundScope {
  bool compute_on_gpu = false;  ///< forward, loss and backward run there
  bool updates_on_gpu = false;  ///< updates run there too
  /// Activations stay there between two nodes that have to run there; weights and state likewise.
  bool keep_activations = false;
  /// Of the activations, all but those that autograd alone keeps between forward and backward.
  bool keep_unsaved = false;
  bool keep_weights = false;
  bool keep_state = false;
  bool operator==(const BoundScope&) const = default;
};

struct MemoryPrice {
  std::int32_t step = 0;
  double price = 0;  ///< a byte on the GPU at the step; positive
  bool operator==(const MemoryPrice&) const = default;
};

/// Storages from `first` to `last`, both among them.
struct StorageRange {
  std::int32_t first = 0;
  std::int32_t last = 0;
  bool operator==(const StorageRange&) const = default;
};

/// The same numbers as ranges that neither overlap nor touch. Precondition: ascending.
[[nodiscard]] std::vector<StorageRange> ranges_of(const std::vector<std::int32_t>& numbers);

/// A rounded limit of a step's memory (planner/solve/memory_row.hpp has the formula). Sizes and the
/// memory that is left follow from the step and from what the branch has fixed.
struct RoundedLimit {
  std::int32_t step = 0;
  std::int64_t divisor = 1;  ///< at least 1
  /// Storages whose absence is counted: ascending ranges that do not overlap. A plan's file has
  /// them as ranges too, so that reading them takes no more memory than the file.
  std::vector<StorageRange> counted;
  [[nodiscard]] bool counts(std::int32_t storage) const;
  bool operator==(const RoundedLimit&) const = default;
};

struct LimitPrice {
  std::int32_t limit = 0;  ///< rounded limits are numbered in the tree's order, from 0
  double price = 0;        ///< for a unit of the limit's weights; positive
  bool operator==(const LimitPrice&) const = default;
};

/// One decision of a branching: whether a node runs on the GPU or, with `after` >= 0, whether a
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
  std::vector<RoundedLimit> limits;  ///< they hold in this tree
  std::variant<BranchLeaf, Fixing> content;
  [[nodiscard]] const Fixing* fixing() const { return std::get_if<Fixing>(&content); }
  [[nodiscard]] const BranchLeaf* leaf() const { return std::get_if<BranchLeaf>(&content); }
  bool operator==(const BranchNode&) const = default;
};

/// Nodes in pre-order: a node that fixes something is followed by the tree of the plans that have
/// it on the GPU, then by the tree of all other plans. So the leaves cover every plan.
using BranchTree = std::vector<BranchNode>;

/// The index behind the tree that begins at `begin`; nullopt: nodes are missing.
[[nodiscard]] std::optional<std::size_t> end_of_tree(const BranchTree& tree, std::size_t begin = 0);

/// Proof of a bound on a sum of costs.
struct TreeProof {
  BoundScope scope;
  BranchTree tree;
  bool operator==(const TreeProof&) const = default;
};

/// Proof of a bound on the busiest lane: a weighted mean of the lanes, priced without branching.
struct LaneProof {
  BoundScope scope;
  double gpu = 0, cpu = 0, uploads = 0, downloads = 0;  ///< the weights of the lanes
  std::vector<MemoryPrice> prices;                      ///< ascending
  bool operator==(const LaneProof&) const = default;
};

/// Proof of a bound on the step by what is away from the GPU during one node
/// (planner/solve/split_bound.hpp).
struct SplitProof {
  BoundScope scope;
  std::int32_t node = 0;
  double downloads = 0;  ///< before the node: the weight of downloads against that of compute
  double uploads = 0;    ///< after it
  double cpu = 0;        ///< the weight of the CPU's lane against all the rest
  bool operator==(const SplitProof&) const = default;
};

/// The least workspace of a node with a choice of engines. All engines of a node take the same time
/// (docs/planner.md), so the other ones add nothing to a bound.
struct NodeWorkspace {
  std::int32_t node = 0;
  Bytes least;
  bool operator==(const NodeWorkspace&) const = default;
};

struct Certificate {
  /// Sizes on the GPU are multiples of it: 1, or a divisor of the arena's granule.
  Bytes granule{1};
  std::vector<NodeWorkspace> workspaces;  ///< ascending nodes, positive sizes; other nodes: 0
  std::optional<TreeProof> cost;          ///< of cost_lower_bound_seconds
  std::optional<TreeProof> transfers;     ///< of pcie_lower_bound_bytes
  std::variant<std::monostate, LaneProof, SplitProof> step;  ///< of step_lower_bound_seconds
  bool operator==(const Certificate&) const = default;
};

}  // namespace stowage
