#include "planner/solve/lane_balance.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/solve/residency_cut.hpp"
#include "planner/solve/search_tree.hpp"
#include "planner/solve/small_lp.hpp"

namespace stowage {
namespace {

constexpr std::size_t lanes = 4;
using Lanes = std::array<double, lanes>;  // GPU, CPU, uploads, downloads
constexpr std::size_t cpu_lane = 1;
constexpr double rounding = 1e-12;  // of the products of weights and times

Lanes lanes_of(const Evaluation& evaluation) {
  return {evaluation.compute_seconds - evaluation.cpu_seconds, evaluation.cpu_seconds,
          evaluation.upload_seconds, evaluation.download_seconds};
}

struct Column {
  Lanes seconds;
  std::vector<double> memory;  // bytes, by step
};

Column column_from(const Evaluation& evaluation) {
  Column column{lanes_of(evaluation), {}};
  for (const Bytes bytes : evaluation.memory) {
    column.memory.push_back(static_cast<double>(bytes.count()));
  }
  return column;
}

/// The weights and prices of a cut.
struct Multipliers {
  Lanes weight{};
  std::vector<double> price;  // by active step, seconds a byte
};

class BalanceSearch {
 public:
  BalanceSearch(const ResidencyProblem& problem, const Placement& fitting,
                const BalanceOptions& options)
      : problem_(problem),
        options_(options),
        model_(make_cut_model(problem, options.budget.step_limits(problem.operations.size()))),
        free_(restrictions_of(problem)),
        limit_(static_cast<double>(options.budget.bytes.count())) {
    add(evaluate(problem, fitting));
  }

  LaneBalance run() {
    // One lane alone gives a bound as well, and the first columns are the placements with the least
    // work on it.
    Multipliers best{weights_of(result_.weights), {}};
    if (may_use_cpu()) {
      // The GPU's lane alone gives no bound where everything may run on the CPU.
      const Multipliers compute{{0.5, 0.5, 0, 0}, {}};
      if (cut_at(compute)) best = compute;
    }
    for (std::size_t k = 0; k < lanes && may_go_on(); ++k) {
      if (k == cpu_lane && !may_use_cpu()) continue;
      Multipliers one;
      one.weight[k] = 1;
      if (cut_at(one)) best = one;
    }
    bool full = true;
    while (result_.cuts < options_.most_cuts && may_go_on()) {
      const double above = solve_master();
      if (result_.step_lower_bound_seconds >= above * (1 - options_.close_enough)) break;
      const Multipliers target = between(best, master_, full ? 1.0 : 0.5);
      const bool raised = cut_at(target);
      if (raised) best = target;
      // A full step without gain went too far: half a step follows it.
      full = raised || !full;
    }
    return result_;
  }

 private:
  [[nodiscard]] bool may_go_on() const {
    return result_.cuts == 0 || options_.work == nullptr || !options_.work->is_cancelled();
  }

  static Lanes weights_of(const LaneWeights& weights) {
    return {weights.gpu, weights.cpu, weights.upload, weights.download};
  }
  /// If false, the CPU's lane is empty in every placement and gives no bound by itself.
  [[nodiscard]] bool may_use_cpu() const {
    return std::ranges::any_of(
        problem_.operations, [](const Operation& operation) { return operation.pin != Pin::gpu; });
  }

  void add(const Evaluation& evaluation) { columns_.push_back(column_from(evaluation)); }

  /// Adds the placement that is cheapest at these weights and prices. Returns whether its bound is
  /// the best so far.
  bool cut_at(const Multipliers& at) {
    model_.weights = {at.weight[0], at.weight[1], at.weight[2], at.weight[3]};
    const Prices prices = prices_of(at);
    const PricedCut cut = cheapest_placement(model_, free_, prices);
    ++result_.cuts;
    if (options_.work != nullptr) options_.work->spend(work_of_cut(model_));
    add(evaluate(problem_, cut.least));
    activate_worst(columns_.back().memory, 0);
    if (cut.least != cut.greatest) {
      add(evaluate(problem_, cut.greatest));
      activate_worst(columns_.back().memory, 0);
    }
    const double bound = cut.bound_seconds * (1 - rounding);
    if (bound <= result_.step_lower_bound_seconds) return false;
    result_.step_lower_bound_seconds = bound;
    result_.weights = model_.weights;
    result_.prices = in_seconds(model_, prices);
    return true;
  }

  [[nodiscard]] Prices prices_of(const Multipliers& at) const {
    constexpr auto highest = static_cast<double>(CutModel::highest_price);
    Prices prices;
    for (std::size_t a = 0; a < at.price.size(); ++a) {
      const double price = std::min(at.price[a] / model_.price_unit(), highest);
      const auto rounded = static_cast<std::int64_t>(std::llround(price));
      if (rounded > 0) prices.push_back({static_cast<std::int32_t>(active_[a]), rounded});
    }
    std::sort(prices.begin(), prices.end(),
              [](const StepPrice& a, const StepPrice& b) { return a.step < b.step; });
    return prices;
  }

  /// Adds to the master program the step where memory exceeds the limit by most, and by more than
  /// `slack` of it; false: there is none, or it was added before.
  bool activate_worst(const std::vector<double>& memory, double slack) {
    const auto worst = std::max_element(memory.begin(), memory.end());
    if (worst == memory.end() || *worst <= limit_ * (1 + slack) + 0.5) return false;
    const auto step = static_cast<std::size_t>(worst - memory.begin());
    if (std::find(active_.begin(), active_.end(), step) != active_.end()) return false;
    active_.push_back(step);
    return true;
  }

  /// Finds the mixture of columns that fits on average and whose busiest lane has least to do.
  /// Returns the seconds of that lane, which no bound exceeds.
  double solve_master() {
    while (true) {
      const double busiest = solve_master_once();
      std::vector<double> mixture(problem_.operations.size(), 0);
      double rest = 1;
      for (std::size_t i = 1; i < columns_.size(); ++i) {
        const double share = share_[i - 1];
        rest -= share;
        if (share <= 0) continue;
        for (std::size_t t = 0; t < mixture.size(); ++t) {
          mixture[t] += share * columns_[i].memory[t];
        }
      }
      for (double& bytes : mixture) bytes += std::max(rest, 0.0) * limit_;
      if (!activate_worst(mixture, 1e-9)) return busiest;
    }
  }

  /// Solves the program in units of the fitting placement's busiest lane and of the limit. The
  /// simplex starts at that placement, whose memory counts as the limit. The last unknown is how
  /// much less the busiest lane of the mixture has to do.
  double solve_master_once() {
    const Column& fitting = columns_.front();
    const double unit =
        std::max(*std::max_element(fitting.seconds.begin(), fitting.seconds.end()), 1e-12);
    LinearProgram program;
    program.rows.assign(lanes + active_.size() + 1, {});
    for (std::size_t i = 1; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      program.cost.push_back(0);
      for (std::size_t k = 0; k < lanes; ++k) {
        program.rows[k].push_back((column.seconds[k] - fitting.seconds[k]) / unit);
      }
      for (std::size_t a = 0; a < active_.size(); ++a) {
        program.rows[lanes + a].push_back((column.memory[active_[a]] - limit_) /
                                          std::max(limit_, 1.0));
      }
      program.rows.back().push_back(1);
    }
    program.cost.push_back(-1);
    for (std::size_t r = 0; r < program.rows.size(); ++r) {
      program.rows[r].push_back(r < lanes ? 1 : 0);
      program.limits.push_back(r < lanes                      ? 1 - fitting.seconds[r] / unit
                               : r + 1 == program.rows.size() ? 1
                                                              : 0);
    }
    const LinearSolution solution = solve_linear_program(program);
    share_ = solution.x;
    double sum = 0;
    for (std::size_t k = 0; k < lanes; ++k) sum += solution.duals[k];
    master_ = {};
    for (std::size_t k = 0; k < lanes; ++k) {
      master_.weight[k] = sum > 0 ? solution.duals[k] / sum : 1.0 / lanes;
    }
    for (std::size_t a = 0; a < active_.size(); ++a) {
      master_.price.push_back(solution.duals[lanes + a] * unit / std::max(limit_, 1.0));
    }
    return unit * (1 + solution.value);
  }

  [[nodiscard]] Multipliers between(const Multipliers& from, const Multipliers& to,
                                    double part) const {
    Multipliers result;
    for (std::size_t k = 0; k < lanes; ++k) {
      result.weight[k] = (1 - part) * from.weight[k] + part * to.weight[k];
    }
    for (std::size_t a = 0; a < active_.size(); ++a) {
      const double before = a < from.price.size() ? from.price[a] : 0;
      result.price.push_back((1 - part) * before + part * to.price[a]);
    }
    return result;
  }

  const ResidencyProblem& problem_;
  const BalanceOptions& options_;
  CutModel model_;
  Restrictions free_;
  double limit_;
  std::vector<Column> columns_;      // the first is the fitting placement
  std::vector<std::size_t> active_;  // steps of the master program
  std::vector<double> share_;        // of each column after the first, in the master's mixture
  Multipliers master_;               // the master's duals
  LaneBalance result_;
};

}  // namespace

double busiest_lane(const Evaluation& evaluation) {
  const Lanes seconds = lanes_of(evaluation);
  return *std::max_element(seconds.begin(), seconds.end());
}

LaneBalance balance_lanes(const ResidencyProblem& problem, const Placement& fitting,
                          const BalanceOptions& options) {
  return BalanceSearch(problem, fitting, options).run();
}

}  // namespace stowage
