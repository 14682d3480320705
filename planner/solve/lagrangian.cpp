#include "planner/solve/lagrangian.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/solve/small_lp.hpp"

namespace stowage {

namespace {

// One maximisation: the master program over the active steps, and the best bound so far.
class DualSearch {
 public:
  DualSearch(const CutModel& model, const Restrictions& restrictions,
             std::vector<PlacementColumn>& columns, const DualOptions& options)
      : model_(model), restrictions_(restrictions), columns_(columns), options_(options) {
    result_.bound_seconds = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (keeps_to(columns_[i].placement, restrictions_)) usable_.push_back(i);
    }
  }

  Dual run(const Prices& start) {
    for (const StepPrice& p : start) activate(p.step);
    Prices prices = start;
    bool full = true;
    while (result_.cuts < options_.most_cuts && !(result_.cuts > 0 && options_.stop())) {
      if (!cut_at(prices)) break;
      const double above = solve_master();
      if (result_.bound_seconds >= above - options_.tolerance ||
          result_.bound_seconds >= options_.upper_bound) {
        break;
      }
      // A full step that gained nothing swung too far: half a step follows it (after Wentges 1997).
      const bool swung = full && result_.prices != prices;
      full = !swung;
      Prices next = towards(master_price_, swung ? 0.5 : 1.0);
      if (next == prices) break;
      prices = std::move(next);
    }
    if (!result_.contradictory) solve_master();
    result_.weight.assign(columns_.size(), 0);
    for (std::size_t i = 0; i < usable_.size() && i < weight_.size(); ++i) {
      result_.weight[usable_[i]] = weight_[i];
    }
    return std::move(result_);
  }

 private:
  double limit(std::size_t step) const { return static_cast<double>(model_.limits[step].count()); }

  void activate(std::int32_t step) {
    if (std::find(active_.begin(), active_.end(), step) == active_.end()) active_.push_back(step);
  }

  bool cut_at(const Prices& prices) {
    PricedCut cut = cheapest_placement(model_, restrictions_, prices);
    ++result_.cuts;
    if (cut.contradictory) {
      result_.contradictory = true;
      return false;
    }
    if (cut.bound_seconds > result_.bound_seconds) {
      result_.bound_seconds = cut.bound_seconds;
      result_.prices = prices;
    }
    const bool tied = cut.least != cut.greatest;
    add_column(std::move(cut.least));
    if (tied) add_column(std::move(cut.greatest));
    return true;
  }

  void add_column(Placement placement) {
    usable_.push_back(columns_.size());
    columns_.push_back(column_of(*model_.problem, std::move(placement)));
    activate_worst(columns_.back().memory, 0);
  }

  // The step where memory exceeds its limit by most, and by more than `slack` of it; false: none
  // does, or it was active.
  bool activate_worst(const std::vector<double>& memory, double slack) {
    double worst = 0;
    std::size_t step = memory.size();
    for (std::size_t t = 0; t < memory.size(); ++t) {
      const double excess = memory[t] - limit(t);
      if (excess > std::max(worst, slack * limit(t) + 0.5)) {
        worst = excess;
        step = t;
      }
    }
    if (step == memory.size()) return false;
    const std::size_t before = active_.size();
    activate(static_cast<std::int32_t>(step));
    return active_.size() > before;
  }

  // The mixture of least cost whose memory fits at the active steps; steps that it then exceeds
  // become active too. Returns its cost, which no bound exceeds once all steps fit.
  double solve_master() {
    while (true) {
      const double cost = solve_master_once();
      std::vector<double> mixture(model_.limits.size(), 0);
      double rest = 1;
      for (std::size_t i = 0; i < usable_.size(); ++i) {
        rest -= weight_[i];
        if (weight_[i] <= 0) continue;
        const std::vector<double>& memory = columns_[usable_[i]].memory;
        for (std::size_t t = 0; t < mixture.size(); ++t) mixture[t] += weight_[i] * memory[t];
      }
      // What is left is the incumbent, which fits.
      for (std::size_t t = 0; t < mixture.size(); ++t) mixture[t] += std::max(rest, 0.0) * limit(t);
      if (!activate_worst(mixture, 1e-9)) return cost;
    }
  }

  // In units of the upper bound and of the limits, with the incumbent (cost 1, memory at the limit)
  // substituted out, so that it is where the simplex starts.
  double solve_master_once() {
    const double unit = std::max(options_.upper_bound, 1e-12);
    LinearProgram program;
    program.rows.assign(active_.size() + 1, {});
    program.limits.assign(active_.size(), 0);
    program.limits.push_back(1);
    for (const std::size_t i : usable_) {
      program.cost.push_back(columns_[i].cost_seconds / unit - 1);
      for (std::size_t a = 0; a < active_.size(); ++a) {
        const auto step = static_cast<std::size_t>(active_[a]);
        const double excess = columns_[i].memory[step] - limit(step);
        program.rows[a].push_back(excess / std::max(limit(step), 1.0));
      }
      program.rows.back().push_back(1);
    }
    const LinearSolution solution = solve_linear_program(program);
    weight_ = solution.x;
    master_price_.assign(active_.size(), 0);
    for (std::size_t a = 0; a < active_.size(); ++a) {
      const auto step = static_cast<std::size_t>(active_[a]);
      master_price_[a] = solution.duals[a] * unit / std::max(limit(step), 1.0);
    }
    return unit * (1 + solution.value);
  }

  // From the best prices so far a part of the way to the master's.
  Prices towards(const std::vector<double>& target, double part) const {
    constexpr auto highest = static_cast<double>(CutModel::highest_price);
    Prices prices;
    for (std::size_t a = 0; a < active_.size(); ++a) {
      double best = 0;
      for (const StepPrice& p : result_.prices) {
        if (p.step == active_[a]) best = static_cast<double>(p.price) * model_.price_unit();
      }
      const double price = (part * target[a] + (1 - part) * best) / model_.price_unit();
      const auto rounded = static_cast<std::int64_t>(std::llround(std::min(price, highest)));
      if (rounded > 0) prices.push_back({active_[a], rounded});
    }
    std::sort(prices.begin(), prices.end(),
              [](const StepPrice& a, const StepPrice& b) { return a.step < b.step; });
    return prices;
  }

  const CutModel& model_;
  const Restrictions& restrictions_;
  std::vector<PlacementColumn>& columns_;
  const DualOptions& options_;
  std::vector<std::size_t> usable_;   // columns that keep to the restrictions
  std::vector<std::int32_t> active_;  // steps of the master program
  std::vector<double> master_price_;  // by active step, seconds a byte
  std::vector<double> weight_;        // by usable column
  Dual result_;
};

}  // namespace

PlacementColumn column_of(const ResidencyProblem& problem, Placement placement) {
  const Evaluation evaluation = evaluate(problem, placement);
  PlacementColumn column;
  column.cost_seconds = evaluation.cost_seconds;
  for (const Bytes bytes : evaluation.memory) {
    column.memory.push_back(static_cast<double>(bytes.count()));
  }
  column.placement = std::move(placement);
  return column;
}

bool keeps_to(const Placement& placement, const Restrictions& restrictions) {
  for (std::size_t v = 0; v < restrictions.device.size(); ++v) {
    const Pin against = placement.device[v] == Device::gpu ? Pin::cpu : Pin::gpu;
    if (restrictions.device[v] == against) return false;
  }
  for (std::size_t item = 0; item < restrictions.gap.size(); ++item) {
    for (std::size_t gap = 0; gap < restrictions.gap[item].size(); ++gap) {
      const GapPin against = placement.resident[item][gap] ? GapPin::dropped : GapPin::resident;
      if (restrictions.gap[item][gap] == against) return false;
    }
  }
  return true;
}

Dual maximise_dual(const CutModel& model, const Restrictions& restrictions, const Prices& start,
                   std::vector<PlacementColumn>& columns, const DualOptions& options) {
  return DualSearch(model, restrictions, columns, options).run(start);
}

}  // namespace stowage
