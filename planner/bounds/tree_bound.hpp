// tree_bound: what a branching with prices proves, computed leaf by leaf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/bounds/bound_problem.hpp"
#include "planner/certificate/certificate.hpp"

namespace stowage {

/// So much may be spent on one bound: nodes of the tree times the problem's size, and looks at arcs
/// over all its cuts.
inline constexpr std::size_t most_tree_work = 200'000'000;
inline constexpr std::int64_t most_cut_work = 4'000'000'000;

struct FixedChoice {
  Fixing fixing;
  bool on_gpu = false;
};

struct TreeBound {
  std::string problem;  ///< why there is no bound; "": there is one
  double least = 0;     ///< over the leaves: no placement within the limit costs less;
                        ///< infinite: there is none
  std::int32_t leaves = 0;
  std::int32_t leaf = 0;                ///< counted from 1: the one with the least bound
  std::vector<FixedChoice> fixed = {};  ///< at that leaf
};

/// Whether all costs and sizes are such that they can be added up; "" or why not.
[[nodiscard]] std::string uncountable(const BoundProblem& problem);

/// Trusts nothing in the tree: what does not fit the problem comes back as its `problem`.
/// Precondition: uncountable() is "".
[[nodiscard]] TreeBound tree_bound(const BoundProblem& problem, const BranchTree& tree);

}  // namespace stowage
