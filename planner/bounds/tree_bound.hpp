// tree_bound: the bound that a branching with prices proves, computed leaf by leaf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/bounds/bound_problem.hpp"
#include "planner/certificate/certificate.hpp"

namespace stowage {

/// Limits of the work on one bound: nodes of the tree times the size of the problem, and looks at
/// arcs over all its cuts.
inline constexpr std::size_t most_tree_work = 200'000'000;
inline constexpr std::int64_t most_cut_work = 4'000'000'000;

struct FixedChoice {
  Fixing fixing;
  bool on_gpu = false;
};

struct TreeBound {
  std::string problem;  ///< why there is no bound; "": there is one
  /// The least bound of any leaf: no placement within the limit costs less. Infinite: no placement.
  double least = 0;
  std::int32_t leaves = 0;
  std::int32_t leaf = 0;                ///< the leaf with the least bound, counted from 1
  std::vector<FixedChoice> fixed = {};  ///< the decisions above that leaf
};

/// Why the sum of all costs or of all sizes would overflow; "": it would not.
[[nodiscard]] std::string overflow_reason(const BoundProblem& problem);

/// Trusts nothing in the tree: what does not fit the problem is reported in TreeBound::problem.
/// Precondition: overflow_reason() is "".
[[nodiscard]] TreeBound tree_bound(const BoundProblem& problem, const BranchTree& tree);

}  // namespace stowage
