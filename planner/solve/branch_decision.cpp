#include "planner/solve/branch_decision.hpp"

#include <algorithm>

#include "planner/problem/versions.hpp"

namespace stowage {

namespace {

std::size_t slot(std::int32_t index) { return static_cast<std::size_t>(index); }

bool is_decided(const Restrictions& restrictions, const Decision& wanted) {
  if (wanted.gap < 0) return restrictions.device[slot(wanted.index)] != Pin::free;
  return restrictions.gap[slot(wanted.index)][slot(wanted.gap)] != GapPin::free;
}

/// The shares of the mixture in which a gap is resident, or an operation is on the GPU.
class Mixture {
 public:
  explicit Mixture(const BranchState& branch) : branch_(branch) {
    for (std::size_t i = 0; i < branch.dual.weight.size(); ++i) {
      if (branch.dual.weight[i] <= 1e-6) continue;
      columns_.push_back(i);
      total_ += branch.dual.weight[i];
    }
  }

  [[nodiscard]] double total() const { return total_; }

  template <typename On>
  [[nodiscard]] double share(const On& on) const {
    double sum = 0;
    for (const std::size_t i : columns_) {
      if (on(branch_.columns[i].placement)) sum += branch_.dual.weight[i];
    }
    return sum;
  }

 private:
  const BranchState& branch_;
  std::vector<std::size_t> columns_;
  double total_ = 0;
};

/// The largest choice that the mixture takes only in part or, with `differing`, otherwise than the
/// best placement.
std::optional<Decision> largest_mixed(const BranchState& branch, bool differing) {
  const Mixture mixture(branch);
  const ResidencyProblem& problem = branch.problem;
  std::optional<Decision> largest;
  double most = 0;
  const auto consider = [&](double on, bool best_on, double bytes, Decision decision) {
    const double off = mixture.total() - on;
    const double apart = differing ? (best_on ? off : on) : std::min(on, off);
    if (apart < 1e-3 || bytes * apart <= most || is_decided(branch.restrictions, decision)) return;
    most = bytes * apart;
    largest = decision;
  };
  std::size_t place = 0;
  for (std::size_t index = 0; index < problem.items.size(); ++index) {
    const auto bytes = static_cast<double>(problem.items[index].bytes.count());
    const auto gaps = static_cast<std::size_t>(gap_count(problem.items[index]));
    for (std::size_t gap = 0; gap < gaps; ++gap, ++place) {
      const double on = mixture.share(
          [&](const PackedPlacement& placement) { return placement.resident(place); });
      consider(on, branch.best.resident[index][gap], bytes,
               {static_cast<std::int32_t>(index), static_cast<std::int32_t>(gap)});
    }
  }
  for (std::size_t v = 0; v < problem.operations.size() && !largest; ++v) {
    const double on =
        mixture.share([&](const PackedPlacement& placement) { return placement.on_gpu(v); });
    consider(on, branch.best.device[v] == Device::gpu, 1, {static_cast<std::int32_t>(v), -1});
  }
  return largest;
}

/// The gap that the prices of steps and rows weigh most.
std::optional<Decision> largest_priced(const BranchState& branch) {
  const ResidencyProblem& problem = branch.problem;
  const Multipliers& prices = branch.dual.prices;
  const std::size_t steps = problem.operations.size();
  const PriceSums<double> sums(prices.steps, steps);
  std::vector<std::vector<double>> weight;
  weight.reserve(problem.items.size());
  for (const Item& item : problem.items) {
    std::vector<double>& of_gaps = weight.emplace_back();
    for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
      const GapSteps inside = steps_inside(item, gap, static_cast<std::int32_t>(steps));
      of_gaps.push_back(static_cast<double>(item.bytes.count()) * sums.in(inside));
    }
  }
  for (std::size_t r = 0; r < prices.rows.size(); ++r) {
    for (const MemoryTerm& term : branch.rows[r]->terms) {
      if (!term.gap) continue;
      weight[slot(term.item)][slot(term.index)] +=
          static_cast<double>(prices.rows[r]) * static_cast<double>(term.weight);
    }
  }
  std::optional<Decision> largest;
  double most = 0;
  for (std::size_t index = 0; index < weight.size(); ++index) {
    for (std::size_t gap = 0; gap < weight[index].size(); ++gap) {
      const Decision decision{static_cast<std::int32_t>(index), static_cast<std::int32_t>(gap)};
      if (weight[index][gap] <= most || is_decided(branch.restrictions, decision)) continue;
      most = weight[index][gap];
      largest = decision;
    }
  }
  return largest;
}

}  // namespace

std::optional<Decision> decision_between(const BranchState& branch) {
  for (const bool differing : {false, true}) {
    if (const auto decision = largest_mixed(branch, differing)) return decision;
  }
  return largest_priced(branch);
}

}  // namespace stowage
