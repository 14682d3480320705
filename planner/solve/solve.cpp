#include "planner/solve/solve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "estimator/base/live_sum.hpp"
#include "planner/solve/below_floor.hpp"
#include "planner/solve/branch_and_bound.hpp"
#include "planner/solve/lagrangian.hpp"
#include "planner/solve/placement_search.hpp"
#include "planner/solve/search_tree.hpp"
#include "planner/solve/tighten.hpp"

namespace stowage {

namespace {

// Limits of effort, in moves looked at and in cuts. All of it takes at most about half a second on
// a thousand storages.
constexpr std::int64_t search_effort = 50'000;
constexpr int root_cuts = 60;
constexpr int hosted_root_cuts = 30;   // with the host's limits, of a large problem
constexpr double large = 2e3;          // storages and operations
constexpr int branch_cuts = 100;       // at least; more where a cut is small
constexpr double branch_effort = 1e6;  // storages and operations, over all cuts
constexpr std::size_t improved_starts = 3;
constexpr double hosted_starts = 2e4;  // storages and operations, over all starts that are repaired

std::vector<Bytes> limits_of(const ResidencyProblem& problem, const SolveOptions& options) {
  std::vector<Bytes> limits = options.budget.step_limits(problem.operations.size());
  if (options.limits.empty()) return limits;
  const std::vector<Bytes> floors = memory_floors(problem);
  for (std::size_t t = 0; t < limits.size(); ++t) {
    limits[t] = std::max(std::min(limits[t], options.limits[t]), floors[t]);
  }
  return limits;
}

class Solver {
 public:
  Solver(const ResidencyProblem& problem, const SolveOptions& options)
      : problem_(problem),
        options_(options),
        model_(make_cut_model(problem, limits_of(problem, options), options.host)),
        index_(model_),
        work_(options.work != nullptr ? *options.work : unlimited_) {}

  Solution run() {
    // The placement with the least memory fits, since the budget is not below the floor: there is
    // always an answer.
    take(nothing_resident(model_));
    PricedCut unlimited = cheapest_placement(model_, restrictions_of(problem_), {});
    work_.spend(work_of_cut(model_));
    solution_.cuts = 1;
    solution_.all_gpu_cost_seconds = unlimited.value_seconds;
    solution_.cost_lower_bound_seconds = bound_ = unlimited.bound_seconds;
    solution_.proof = single_leaf({});
    offer(unlimited.least, {}, 0);
    offer(filled_in_order(model_, index_, work_), {}, 0);
    if (!enough(bound_)) bound_and_search();
    const double cost = solution_.evaluation.cost_seconds;
    solution_.cost_lower_bound_seconds = std::min(solution_.cost_lower_bound_seconds, cost);
    solution_.proved_optimal =
        cost - solution_.cost_lower_bound_seconds <= optimality_tolerance * cost;
    for (Candidate& candidate : aside_) {
      solution_.others.push_back(std::move(candidate.placement));
    }
    return std::move(solution_);
  }

 private:
  struct Candidate {
    double cost_seconds = 0;
    Placement placement;
  };

  double overhead() const {
    return std::max(0.0, solution_.evaluation.cost_seconds - solution_.all_gpu_cost_seconds);
  }

  bool enough(double bound) const {
    const double cost = solution_.evaluation.cost_seconds;
    return solution_.beyond_host == Bytes() &&
           cost - bound <= std::max(options_.target_gap * overhead(), optimality_tolerance * cost);
  }

  bool fits(const Evaluation& evaluation) const {
    for (std::size_t t = 0; t < evaluation.memory.size(); ++t) {
      if (evaluation.memory[t] > model_.limits[t]) return false;
    }
    return true;
  }

  double size_of_problem() const {
    return static_cast<double>(problem_.operations.size() + problem_.items.size());
  }

  // A bound within the host's limits does not hold for plans beyond them, and has no proof here.
  void raise_bound(double bound, BranchTree proof) {
    bound_ = std::max(bound_, bound);
    if (model_.host.any() || bound <= solution_.cost_lower_bound_seconds) return;
    solution_.cost_lower_bound_seconds = bound;
    solution_.proof = std::move(proof);
  }

  [[nodiscard]] Bytes beyond_host(const Placement& placement) const {
    if (!model_.host.any()) return {};
    const HostUse use = host_use(problem_, placement);
    const auto beyond = [](const std::vector<Bytes>& by_step, Bytes limit) {
      return std::max(peak(by_step).bytes - limit, Bytes());
    };
    return beyond(use.pinned, model_.host.pinned) + beyond(use.all, model_.host.all);
  }

  // A placement becomes the answer if it is consistent, fits and is cheaper; whoever made it, that
  // is checked. A placement that the host holds is better than one that it does not hold.
  void take(Placement placement) {
    Evaluation evaluation = evaluate(problem_, placement);
    if (!evaluation.consistent || !fits(evaluation)) {
      throw std::logic_error(fmt::format("the planner made a placement that {}",
                                         evaluation.consistent
                                             ? "exceeds the budget"
                                             : "is not one: " + evaluation.inconsistency));
    }
    const bool first = !solution_.evaluation.consistent;
    const Bytes beyond = beyond_host(placement);
    if (!first && std::pair(beyond, evaluation.cost_seconds) >=
                      std::pair(solution_.beyond_host, solution_.evaluation.cost_seconds)) {
      if (beyond > Bytes()) return;
      return keep_aside(std::move(placement), evaluation.cost_seconds);
    }
    if (!first && solution_.beyond_host == Bytes()) {
      keep_aside(std::exchange(solution_.placement, {}), solution_.evaluation.cost_seconds);
    }
    solution_.placement = std::move(placement);
    solution_.evaluation = std::move(evaluation);
    solution_.beyond_host = beyond;
  }

  void keep_aside(Placement placement, double cost) {
    if (options_.most_others == 0 || placement == solution_.placement) return;
    const auto after = std::ranges::upper_bound(aside_, cost, {}, &Candidate::cost_seconds);
    if (std::ranges::any_of(aside_.begin(), after, [&](const Candidate& known) {
          return known.cost_seconds == cost && known.placement == placement;
        })) {
      return;
    }
    aside_.insert(after, {cost, std::move(placement)});
    if (aside_.size() > options_.most_others) aside_.pop_back();
  }

  // Repairs, fills and improves a start that need not fit, and takes the result; nothing where it
  // cannot be made to fit.
  std::optional<Placement> offer(const Placement& start, const Multipliers& prices,
                                 std::int64_t effort) {
    PlacementSearch search(model_, index_, start, prices.steps, effort, work_);
    search.price_host(prices.host);
    (void)search.repair();
    search.price_host({});
    if (search.state().excess() > 0) return std::nullopt;
    search.fill();
    if (!search.state().fits()) {
      // Of placements that the host does not hold, the one that needs least is an answer, too.
      take(search.state().placement());
      return std::nullopt;
    }
    if (effort > 0) search.improve();
    search.settle_engines();
    Placement placement = search.state().placement();
    take(placement);
    return placement;
  }

  void bound_and_search() {
    std::vector<PlacementColumn> columns;
    columns.push_back(column_of(problem_, solution_.placement));
    Restrictions restrictions = restrictions_of(problem_);
    if (!tighten(model_, restrictions)) throw std::logic_error("the budget is below the floor");
    const double tolerance = 0.1 * options_.target_gap * overhead();
    const Dual dual = maximise_dual(
        model_, restrictions, {}, columns,
        {upper_bound_seconds(), tolerance,
         model_.host.any() && size_of_problem() > large ? hosted_root_cuts : root_cuts, work_});
    solution_.cuts += dual.cuts;
    solution_.active_steps = static_cast<int>(dual.prices.steps.size());
    raise_bound(dual.bound_seconds, single_leaf(in_seconds(model_, dual.prices.steps)));
    search_from(columns, dual);
    if (!options_.branches || enough(bound_) || work_.is_over()) return;

    BranchOptions branch{.work = work_};
    branch.most_cuts = std::max(branch_cuts, static_cast<int>(branch_effort / size_of_problem()));
    branch.tolerance = tolerance;
    branch.upper_bound = [this] { return upper_bound_seconds(); };
    branch.best = [this]() -> const Placement& { return solution_.placement; };
    branch.offer = [this](const Placement& placement, const Prices& prices) {
      offer(placement, {prices}, 0);
    };
    branch.enough = [this](double bound) { return enough(bound); };
    BranchResult result = branch_and_bound(model_, index_, restrictions, dual, columns, branch);
    solution_.cuts += result.cuts;
    raise_bound(result.bound_seconds, std::move(result.tree));
  }

  // Repairs and fills every placement of the dual, then improves the best ones by moves.
  void search_from(const std::vector<PlacementColumn>& columns, const Dual& dual) {
    std::vector<std::pair<double, PackedPlacement>> starts;
    const auto add = [&](const Placement& start) {
      const auto found = offer(start, dual.prices, 0);
      if (found) starts.emplace_back(evaluate(problem_, *found).cost_seconds, *found);
    };
    for (const Placement& start : options_.starts) {
      add(start);
      if (work_.is_over()) return;
    }
    for (const std::size_t i : worth_repairing(columns, dual.prices)) {
      add(columns[i].placement.unpacked(problem_));
      if (work_.is_over() || (model_.host.any() && enough(bound_))) return;
    }
    std::stable_sort(starts.begin(), starts.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    for (std::size_t i = 0; i < std::min(starts.size(), improved_starts); ++i) {
      if (enough(bound_) || work_.is_over()) return;
      offer(starts[i].second.unpacked(problem_), dual.prices,
            search_effort / static_cast<std::int64_t>((model_.host.any() ? 2 : 1) * (i + 1)));
    }
  }

  // The cost that a placement has to be below. If the host does not hold the answer, any cost is.
  [[nodiscard]] double upper_bound_seconds() const {
    if (solution_.beyond_host == Bytes()) return solution_.evaluation.cost_seconds;
    return static_cast<double>(model_.cost_cap) * model_.unit();
  }

  // The columns to repair: all, or, with the host's limits, where a repair takes long, those with
  // the least priced cost.
  [[nodiscard]] std::vector<std::size_t> worth_repairing(
      const std::vector<PlacementColumn>& columns, const Multipliers& prices) const {
    std::vector<std::size_t> all(columns.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const double most = std::clamp(hosted_starts / size_of_problem(), 8.0, 60.0);
    if (!model_.host.any() || static_cast<double>(all.size()) <= most) return all;
    std::vector<double> cost;
    cost.reserve(columns.size());
    for (const PlacementColumn& column : columns) cost.push_back(priced(column, prices));
    std::ranges::stable_sort(all, {}, [&](std::size_t i) { return cost[i]; });
    all.resize(static_cast<std::size_t>(most));
    return all;
  }

  [[nodiscard]] double priced(const PlacementColumn& column, const Multipliers& prices) const {
    const HostUse use = host_use(problem_, column.placement.unpacked(problem_));
    double amount = 0;
    const auto add = [&](std::int64_t price, double bytes) {
      amount += static_cast<double>(price) * bytes;
    };
    const auto at = [](const StepPrice& p) { return static_cast<std::size_t>(p.step); };
    for (const StepPrice& p : prices.steps) add(p.price, column.memory[at(p)]);
    for (const StepPrice& p : prices.host.pinned) {
      add(p.price, static_cast<double>(use.pinned[at(p)].count()));
    }
    for (const StepPrice& p : prices.host.all) {
      add(p.price, static_cast<double>(use.all[at(p)].count()));
    }
    return column.cost_seconds + amount * model_.price_unit();
  }

  const ResidencyProblem& problem_;
  const SolveOptions& options_;
  CutModel model_;
  PlacementIndex index_;
  WorkBudget unlimited_;
  WorkBudget& work_;
  Solution solution_;
  double bound_ = 0;              // within the host's limits, too
  std::vector<Candidate> aside_;  // by cost
};

}  // namespace

Result<Solution> solve(const ResidencyProblem& problem, const SolveOptions& options) {
  std::string wrong = ill_formed(problem);
  if (!wrong.empty()) return failure(std::move(wrong));
  const Floor floor = memory_floor(problem);
  if (!options.budget.fits(floor.bytes)) {
    return failure(below_floor(problem, options.budget, floor));
  }
  return Solver(problem, options).run();
}

}  // namespace stowage
