#include "planner/solve/lagrangian.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "planner/solve/memory_row.hpp"
#include "planner/solve/small_lp.hpp"

namespace stowage {

namespace {

enum class Memory : std::uint8_t { gpu, pinned, host };

// A row of the master program: the limit of a memory at a step.
struct LimitedStep {
  Memory memory = Memory::gpu;
  std::int32_t step = 0;
  bool operator==(const LimitedStep&) const = default;
};

const Prices& prices_of(const Multipliers& multipliers, Memory memory) {
  if (memory == Memory::gpu) return multipliers.steps;
  return memory == Memory::pinned ? multipliers.host.pinned : multipliers.host.all;
}
Prices& prices_of(Multipliers& multipliers, Memory memory) {
  if (memory == Memory::gpu) return multipliers.steps;
  return memory == Memory::pinned ? multipliers.host.pinned : multipliers.host.all;
}

std::vector<double> counts_of(const std::vector<Bytes>& bytes) {
  std::vector<double> counts;
  counts.reserve(bytes.size());
  for (const Bytes of : bytes) counts.push_back(static_cast<double>(of.count()));
  return counts;
}

struct HostColumn {
  std::vector<double> pinned, all;  // bytes, by step
};

// One maximisation: the master program over the active steps, and the best bound so far.
class DualSearch {
 public:
  DualSearch(const CutModel& model, const Restrictions& restrictions,
             std::vector<PlacementColumn>& columns, const DualOptions& options)
      : model_(model), restrictions_(restrictions), columns_(columns), options_(options) {
    result_.bound_seconds = -std::numeric_limits<double>::infinity();
    if (model_.host.pinned != HostLimits::none) memories_.push_back(Memory::pinned);
    if (model_.host.all != HostLimits::none) memories_.push_back(Memory::host);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (keeps_to(columns_[i].placement, restrictions_)) usable_.push_back(i);
    }
  }

  Dual run(const Multipliers& start) {
    for (const Memory memory : memories_) {
      for (const StepPrice& p : prices_of(start, memory)) activate({memory, p.step});
    }
    keep_cheapest(start);
    Multipliers prices = start;
    bool full = true;
    while (result_.cuts < options_.most_cuts && !(result_.cuts > 0 && options_.work.is_over())) {
      if (!cut_at(prices)) break;
      const double above = solve_master();
      if (result_.bound_seconds >= above - options_.tolerance ||
          result_.bound_seconds >= options_.upper_bound) {
        break;
      }
      // A full step without gain went too far: half a step follows it (after Wentges 1997).
      const bool overshot = full && result_.prices != prices;
      full = !overshot;
      Multipliers next = towards(master_price_, overshot ? 0.5 : 1.0);
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
  double limit(LimitedStep of) const {
    Bytes bytes = model_.limits[static_cast<std::size_t>(of.step)];
    if (of.memory == Memory::pinned) bytes = model_.host.pinned;
    if (of.memory == Memory::host) bytes = model_.host.all;
    return static_cast<double>(bytes.count());
  }

  // By step. The use of the host is counted when a column is first asked for.
  const std::vector<double>& use(std::size_t column, Memory memory) {
    if (memory == Memory::gpu) return columns_[column].memory;
    if (host_.size() < columns_.size()) host_.resize(columns_.size());
    std::optional<HostColumn>& host = host_[column];
    if (!host) {
      const ResidencyProblem& problem = *model_.problem;
      const HostUse of = host_use(problem, columns_[column].placement.unpacked(problem));
      host = HostColumn{counts_of(of.pinned), counts_of(of.all)};
    }
    return memory == Memory::pinned ? host->pinned : host->all;
  }

  bool activate(LimitedStep step) {
    if (std::find(active_.begin(), active_.end(), step) != active_.end()) return false;
    active_.push_back(step);
    return true;
  }

  // Keeps, of many columns, those that cost least at the first prices: others hardly ever enter.
  void keep_cheapest(const Multipliers& start) {
    constexpr std::size_t most_columns = 150;
    if (usable_.size() <= most_columns) return;
    std::vector<std::pair<double, std::size_t>> ranked;
    for (const std::size_t i : usable_) {
      double value = columns_[i].cost_seconds;
      for (const Memory memory : memories_) {
        for (const StepPrice& p : prices_of(start, memory)) {
          value += static_cast<double>(p.price) * model_.price_unit() *
                   use(i, memory)[static_cast<std::size_t>(p.step)];
        }
      }
      for (std::size_t r = 0; r < start.rows.size(); ++r) {
        value += static_cast<double>(start.rows[r]) * model_.price_unit() *
                 use_of(*options_.rows[r], columns_[i].placement);
      }
      ranked.emplace_back(value, i);
    }
    std::sort(ranked.begin(), ranked.end());
    ranked.resize(most_columns);
    usable_.clear();
    for (const auto& [ignored, i] : ranked) usable_.push_back(i);
    std::sort(usable_.begin(), usable_.end());
  }

  bool cut_at(const Multipliers& prices) {
    std::vector<RowPrice> rows;
    for (std::size_t r = 0; r < prices.rows.size(); ++r) {
      if (prices.rows[r] > 0) rows.push_back({options_.rows[r], prices.rows[r]});
    }
    const PricedCut cut =
        cheapest_placement(model_, restrictions_, prices.steps, rows, prices.host);
    ++result_.cuts;
    options_.work.spend(work_of_cut(model_));
    if (cut.contradictory) {
      result_.contradictory = true;
      return false;
    }
    if (cut.bound_seconds > result_.bound_seconds) {
      result_.bound_seconds = cut.bound_seconds;
      result_.prices = prices;
    }
    const bool tied = cut.least != cut.greatest;
    add_column(cut.least);
    if (tied) add_column(cut.greatest);
    return true;
  }

  void add_column(const Placement& placement) {
    usable_.push_back(columns_.size());
    columns_.push_back(column_of(*model_.problem, placement));
    for (const Memory memory : memories_) {
      activate_worst(memory, use(columns_.size() - 1, memory), 0);
    }
  }

  // Activates the step where memory exceeds its limit by most, and by more than `slack` of it;
  // false: there is none, or it was active.
  bool activate_worst(Memory memory, const std::vector<double>& by_step, double slack) {
    double worst = 0;
    std::size_t step = by_step.size();
    for (std::size_t t = 0; t < by_step.size(); ++t) {
      const double most = limit({memory, static_cast<std::int32_t>(t)});
      const double excess = by_step[t] - most;
      if (excess > std::max(worst, slack * most + 0.5)) {
        worst = excess;
        step = t;
      }
    }
    if (step == by_step.size()) return false;
    return activate({memory, static_cast<std::int32_t>(step)});
  }

  // Finds the mixture of least cost whose memory fits at the active steps; steps that it then
  // exceeds become active too. Returns its cost, which no bound exceeds once all steps fit.
  double solve_master() {
    while (true) {
      const double cost = solve_master_once();
      bool activated = false;
      for (const Memory memory : memories_) {
        activated = activate_worst(memory, mixed(memory), 1e-9) || activated;
      }
      if (!activated) return cost;
    }
  }

  std::vector<double> mixed(Memory memory) {
    std::vector<double> mixture(model_.limits.size(), 0);
    double rest = 1;
    for (std::size_t i = 0; i < usable_.size(); ++i) {
      rest -= weight_[i];
      if (weight_[i] <= 0) continue;
      const std::vector<double>& of = use(usable_[i], memory);
      for (std::size_t t = 0; t < mixture.size(); ++t) mixture[t] += weight_[i] * of[t];
    }
    // The remaining weight is that of the incumbent, which fits.
    for (std::size_t t = 0; t < mixture.size(); ++t) {
      mixture[t] += std::max(rest, 0.0) * limit({memory, static_cast<std::int32_t>(t)});
    }
    return mixture;
  }

  // The excess of a column over a row of the master program: the active steps, then the rounded
  // rows.
  double excess_in(std::size_t row, std::size_t column) {
    if (row < active_.size()) {
      const LimitedStep& of = active_[row];
      return use(column, of.memory)[static_cast<std::size_t>(of.step)] - limit(of);
    }
    const std::size_t r = row - active_.size();
    if (use_.size() <= column) use_.resize(columns_.size());
    std::vector<double>& use = use_[column];
    while (use.size() <= r) {
      use.push_back(use_of(*options_.rows[use.size()], columns_[column].placement));
    }
    return use[r] - static_cast<double>(options_.rows[r]->limit);
  }
  double limit_of_row(std::size_t row) const {
    if (row < active_.size()) return std::max(limit(active_[row]), 1.0);
    return std::max(static_cast<double>(options_.rows[row - active_.size()]->limit), 1.0);
  }

  // Solves the program in units of the upper bound and of the limits. The incumbent (cost 1, memory
  // at the limit) is substituted out, so that the simplex starts at it.
  double solve_master_once() {
    const double unit = std::max(options_.upper_bound, 1e-12);
    LinearProgram program;
    const std::size_t rows = active_.size() + options_.rows.size();
    program.rows.assign(rows + 1, {});
    program.limits.assign(rows, 0);
    program.limits.push_back(1);
    for (const std::size_t i : usable_) {
      program.cost.push_back(columns_[i].cost_seconds / unit - 1);
      for (std::size_t row = 0; row < rows; ++row) {
        program.rows[row].push_back(excess_in(row, i) / limit_of_row(row));
      }
      program.rows.back().push_back(1);
    }
    const LinearSolution solution = solve_linear_program(program);
    weight_ = solution.x;
    master_price_.assign(rows, 0);
    for (std::size_t row = 0; row < rows; ++row) {
      master_price_[row] = solution.duals[row] * unit / limit_of_row(row);
    }
    return unit * (1 + solution.value);
  }

  // The prices a part of the way from the best ones so far to the master's.
  Multipliers towards(const std::vector<double>& target, double part) const {
    constexpr auto highest = static_cast<double>(CutModel::highest_price);
    const auto between = [&](double to, std::int64_t from) {
      const double price = part * to / model_.price_unit() + (1 - part) * static_cast<double>(from);
      return static_cast<std::int64_t>(std::llround(std::min(price, highest)));
    };
    Multipliers prices;
    for (std::size_t a = 0; a < active_.size(); ++a) {
      const auto [memory, step] = active_[a];
      std::int64_t best = 0;
      for (const StepPrice& p : prices_of(result_.prices, memory)) {
        if (p.step == step) best = p.price;
      }
      const std::int64_t price = between(target[a], best);
      if (price > 0) prices_of(prices, memory).push_back({step, price});
    }
    for (const Memory memory : memories_) {
      std::ranges::sort(prices_of(prices, memory), {}, &StepPrice::step);
    }
    for (std::size_t r = 0; r < options_.rows.size(); ++r) {
      const std::vector<std::int64_t>& best = result_.prices.rows;
      prices.rows.push_back(between(target[active_.size() + r], r < best.size() ? best[r] : 0));
    }
    return prices;
  }

  const CutModel& model_;
  const Restrictions& restrictions_;
  std::vector<PlacementColumn>& columns_;
  const DualOptions& options_;
  std::vector<std::size_t> usable_;  // columns that keep to the restrictions, the cheapest
  std::vector<Memory> memories_{Memory::gpu};    // that are limited
  std::vector<std::optional<HostColumn>> host_;  // by column
  std::vector<LimitedStep> active_;              // rows of the master program
  std::vector<double> master_price_;             // by active step, then by row, seconds a byte
  std::vector<std::vector<double>> use_;         // by column, row
  std::vector<double> weight_;                   // by usable column
  Dual result_;
};

}  // namespace

PlacementColumn column_of(const ResidencyProblem& problem, const Placement& placement) {
  const Evaluation evaluation = evaluate(problem, placement);
  return {.placement = PackedPlacement(placement),
          .cost_seconds = evaluation.cost_seconds,
          .memory = counts_of(evaluation.memory)};
}

bool keeps_to(const PackedPlacement& placement, const Restrictions& restrictions) {
  for (std::size_t v = 0; v < restrictions.device.size(); ++v) {
    const Pin against = placement.on_gpu(v) ? Pin::cpu : Pin::gpu;
    if (restrictions.device[v] == against) return false;
  }
  std::size_t place = 0;
  for (const std::vector<GapPin>& gaps : restrictions.gap) {
    for (const GapPin pin : gaps) {
      const GapPin against = placement.resident(place++) ? GapPin::dropped : GapPin::resident;
      if (pin == against) return false;
    }
  }
  return true;
}

Dual maximise_dual(const CutModel& model, const Restrictions& restrictions,
                   const Multipliers& start, std::vector<PlacementColumn>& columns,
                   const DualOptions& options) {
  return DualSearch(model, restrictions, columns, options).run(start);
}

}  // namespace stowage
