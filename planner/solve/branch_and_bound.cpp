#include "planner/solve/branch_and_bound.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "planner/solve/branch_decision.hpp"
#include "planner/solve/memory_row.hpp"
#include "planner/solve/search_tree.hpp"
#include "planner/solve/tighten.hpp"

namespace stowage {

namespace {

struct Branch {
  double bound = 0;
  std::size_t place = 0;  // in the tree
  int order = 0;          // ties go to the older
  Multipliers prices;
  std::vector<const LimitRow*> rows;  // those that the prices are of
  PricedRows proof;                   // of the bound, which may be that of a branch above
  std::vector<Decision> decisions;
  std::optional<Decision> next;  // none: nothing is in between
};

class Search {
 public:
  Search(const CutModel& model, const PlacementIndex& index, const Restrictions& root,
         std::vector<PlacementColumn>& columns, const BranchOptions& options)
      : model_(model),
        index_(index),
        root_(root),
        problem_(*model.problem),
        columns_(columns),
        options_(options),
        tree_(model) {}

  BranchResult run(Dual dual) {
    Branch root;
    strengthen(root_, dual, root.rows, most_root_rounds);
    root.bound = dual.bound_seconds;
    root.prices = dual.prices;
    root.next = next_decision(dual, root.rows, root_);
    root.proof = {root.prices, root.rows};
    tree_.set_prices(root.place, root.proof);
    tree_.add_rows(root.place, root.rows, {});
    result_.bound_seconds = root.bound;
    open_.push_back(std::move(root));
    while (true) {
      // The least bound of the open branches holds for every placement: closed branches have no
      // better one.
      const auto best =
          std::min_element(open_.begin(), open_.end(), [](const Branch& a, const Branch& b) {
            return a.bound != b.bound ? a.bound < b.bound : a.order < b.order;
          });
      if (best == open_.end()) {
        result_.bound_seconds = options_.upper_bound();
        break;
      }
      result_.bound_seconds = std::max(result_.bound_seconds, best->bound);
      if (!best->next || options_.enough(result_.bound_seconds) || spent()) {
        break;
      }
      const Branch branch = std::move(*best);
      open_.erase(best);
      for (const bool on_gpu : {true, false}) descend(branch, on_gpu);
    }
    result_.tree = tree_.exported();
    return std::move(result_);
  }

 private:
  static constexpr int most_root_rounds = 12;
  static constexpr int most_branch_rounds = 3;
  static constexpr std::size_t steps_a_round = 4;
  static constexpr std::size_t rows_a_round = 8;
  static constexpr int most_idle_rounds = 3;

  void descend(const Branch& parent, bool on_gpu) {
    Branch child = parent;
    child.order = ++branches_;
    child.decisions.push_back(*parent.next);
    child.decisions.back().on_gpu = on_gpu;
    child.place = tree_.add_child(parent.place, *parent.next, on_gpu);
    Restrictions restrictions = root_;
    for (const Decision& decision : child.decisions) {
      const auto index = static_cast<std::size_t>(decision.index);
      if (decision.gap < 0) {
        restrictions.device[index] = decision.on_gpu ? Pin::gpu : Pin::cpu;
      } else {
        restrictions.gap[index][static_cast<std::size_t>(decision.gap)] =
            decision.on_gpu ? GapPin::resident : GapPin::dropped;
      }
    }
    if (!tighten(model_, restrictions)) return;
    Dual dual = maximise(restrictions, parent.prices, child.rows);
    if (dual.contradictory) return;
    strengthen(restrictions, dual, child.rows, most_branch_rounds);
    child.bound = std::max(parent.bound, dual.bound_seconds);
    // The proof of the parent's bound also holds here.
    if (dual.bound_seconds >= parent.bound) child.proof = {dual.prices, child.rows};
    tree_.set_prices(child.place, child.proof);
    tree_.add_rows(child.place, child.rows, parent.rows);
    if (child.bound >= options_.upper_bound()) return;
    child.prices = dual.prices;
    child.next = next_decision(dual, child.rows, restrictions);
    open_.push_back(std::move(child));
  }

  Dual maximise(const Restrictions& restrictions, const Multipliers& start,
                const std::vector<const LimitRow*>& rows) {
    const std::size_t known = columns_.size();
    const DualOptions dual_options{options_.upper_bound(), options_.tolerance,
                                   options_.most_cuts_a_branch, options_.work, rows};
    Dual dual = maximise_dual(model_, restrictions, start, columns_, dual_options);
    result_.cuts += dual.cuts;
    for (std::size_t i = known; i < columns_.size() && !dual.contradictory; ++i) {
      options_.offer(columns_[i].placement.unpacked(problem_), dual.prices.steps);
    }
    return dual;
  }

  // Rounds the limits of the steps with the highest prices, as long as that raises the bound by
  // much.
  void strengthen(const Restrictions& restrictions, Dual& dual, std::vector<const LimitRow*>& rows,
                  int most_rounds) {
    int idle = 0;
    for (int round = 0; round < most_rounds; ++round) {
      const double missing = options_.upper_bound() - dual.bound_seconds;
      if (missing <= 0 || options_.enough(dual.bound_seconds) || spent()) break;
      if (!add_rows(restrictions, dual, rows)) break;
      const Dual next = maximise(restrictions, dual.prices, rows);
      if (next.contradictory) break;
      const double gain = next.bound_seconds - dual.bound_seconds;
      if (gain >= 0) dual = next;
      idle = gain < 0.02 * missing ? idle + 1 : 0;
      if (idle == most_idle_rounds) break;
    }
    // Rows without a price are of no more use.
    std::vector<const LimitRow*> priced;
    std::vector<std::int64_t> prices;
    for (std::size_t r = 0; r < dual.prices.rows.size(); ++r) {
      if (dual.prices.rows[r] <= 0) continue;
      priced.push_back(rows[r]);
      prices.push_back(dual.prices.rows[r]);
    }
    rows = std::move(priced);
    dual.prices.rows = std::move(prices);
  }

  // The price of each step: of its own limit and of limits that were rounded from it.
  static Prices priced_steps(const Multipliers& prices, const std::vector<const LimitRow*>& rows) {
    std::map<std::int32_t, std::int64_t> by_step;
    for (const StepPrice& p : prices.steps) by_step[p.step] += p.price;
    for (std::size_t r = 0; r < prices.rows.size(); ++r) {
      if (prices.rows[r] > 0) by_step[rows[r]->source.step] += prices.rows[r];
    }
    Prices priced;
    for (const auto& [step, price] : by_step) priced.push_back({step, price});
    return priced;
  }

  bool add_rows(const Restrictions& restrictions, const Dual& dual,
                std::vector<const LimitRow*>& rows) {
    std::vector<std::pair<const PackedPlacement*, double>> placements;
    for (std::size_t i = 0; i < dual.weight.size(); ++i) {
      if (dual.weight[i] > 1e-9) placements.emplace_back(&columns_[i].placement, dual.weight[i]);
    }
    if (placements.empty()) return false;
    const MixedPresence mixture(std::move(placements));
    Prices highest = priced_steps(dual.prices, rows);
    std::stable_sort(highest.begin(), highest.end(),
                     [](const StepPrice& a, const StepPrice& b) { return a.price > b.price; });
    if (highest.size() > steps_a_round) highest.resize(steps_a_round);
    const std::size_t known = rows.size();
    for (const StepPrice& p : highest) {
      for (LimitRow& row : rounded_rows(model_, index_, restrictions, p.step, mixture,
                                        rows_a_round / highest.size())) {
        pool_.push_back(std::move(row));
        rows.push_back(&pool_.back());
      }
    }
    return rows.size() > known;
  }

  std::optional<Decision> next_decision(const Dual& dual, const std::vector<const LimitRow*>& rows,
                                        const Restrictions& restrictions) const {
    return decision_between({problem_, columns_, dual, rows, restrictions, options_.best()});
  }

  bool spent() const { return result_.cuts >= options_.most_cuts || options_.work.is_over(); }

  const CutModel& model_;
  const PlacementIndex& index_;
  const Restrictions& root_;
  const ResidencyProblem& problem_;
  std::vector<PlacementColumn>& columns_;
  const BranchOptions& options_;
  std::deque<LimitRow> pool_;  // of all branches: their addresses stay
  std::vector<Branch> open_;
  int branches_ = 0;
  SearchTree tree_;
  BranchResult result_;
};

}  // namespace

BranchResult branch_and_bound(const CutModel& model, const PlacementIndex& index,
                              const Restrictions& restrictions, const Dual& root,
                              std::vector<PlacementColumn>& columns, const BranchOptions& options) {
  return Search(model, index, restrictions, columns, options).run(root);
}

}  // namespace stowage
