#include "planner/solve/branch_and_bound.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

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
  std::vector<const MemoryRow*> rows;  // those that the prices are of
  PricedRows proof;                    // of the bound, which may be that of a branch above
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
    root.next = next_decision(dual, root_);
    root.proof = {root.prices, root.rows};
    tree_.set_prices(root.place, root.proof);
    tree_.add_rows(root.place, root.rows, {});
    result_.bound_seconds = root.bound;
    open_.push_back(std::move(root));
    while (true) {
      // The least over what is open bounds every placement; what was closed cannot be better.
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
    // What proves the parent's bound proves it here, too.
    if (dual.bound_seconds >= parent.bound) child.proof = {dual.prices, child.rows};
    tree_.set_prices(child.place, child.proof);
    tree_.add_rows(child.place, child.rows, parent.rows);
    if (child.bound >= options_.upper_bound()) return;
    child.prices = dual.prices;
    child.next = next_decision(dual, restrictions);
    open_.push_back(std::move(child));
  }

  Dual maximise(const Restrictions& restrictions, const Multipliers& start,
                const std::vector<const MemoryRow*>& rows) {
    const std::size_t known = columns_.size();
    const DualOptions dual_options{options_.upper_bound(), options_.tolerance,
                                   options_.most_cuts_a_branch, options_.stop, rows};
    Dual dual = maximise_dual(model_, restrictions, start, columns_, dual_options);
    result_.cuts += dual.cuts;
    for (std::size_t i = known; i < columns_.size() && !dual.contradictory; ++i) {
      options_.offer(columns_[i].placement.unpacked(problem_), dual.prices.steps);
    }
    return dual;
  }

  // Rounds the limits of the dearest steps as long as that raises the bound by much.
  void strengthen(const Restrictions& restrictions, Dual& dual, std::vector<const MemoryRow*>& rows,
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
    // Those without a price are of no more use.
    std::vector<const MemoryRow*> priced;
    std::vector<std::int64_t> prices;
    for (std::size_t r = 0; r < dual.prices.rows.size(); ++r) {
      if (dual.prices.rows[r] <= 0) continue;
      priced.push_back(rows[r]);
      prices.push_back(dual.prices.rows[r]);
    }
    rows = std::move(priced);
    dual.prices.rows = std::move(prices);
  }

  bool add_rows(const Restrictions& restrictions, const Dual& dual,
                std::vector<const MemoryRow*>& rows) {
    std::vector<std::pair<const PackedPlacement*, double>> placements;
    for (std::size_t i = 0; i < dual.weight.size(); ++i) {
      if (dual.weight[i] > 1e-9) placements.emplace_back(&columns_[i].placement, dual.weight[i]);
    }
    if (placements.empty()) return false;
    const MixedPresence mixture(std::move(placements));
    Prices dearest = dual.prices.steps;
    std::stable_sort(dearest.begin(), dearest.end(),
                     [](const StepPrice& a, const StepPrice& b) { return a.price > b.price; });
    if (dearest.size() > steps_a_round) dearest.resize(steps_a_round);
    const std::size_t known = rows.size();
    for (const StepPrice& p : dearest) {
      for (MemoryRow& row : rounded_rows(model_, index_, restrictions, p.step, mixture,
                                         rows_a_round / dearest.size())) {
        pool_.push_back(std::move(row));
        rows.push_back(&pool_.back());
      }
    }
    return rows.size() > known;
  }

  bool spent() const { return result_.cuts >= options_.most_cuts || options_.stop(); }

  // How much of the mixture has each gap resident, and each operation on the GPU.
  struct Mixture {
    std::vector<std::size_t> columns;
    double total = 0;
  };

  Mixture mixture_of(const Dual& dual) const {
    Mixture mixture;
    for (std::size_t i = 0; i < dual.weight.size(); ++i) {
      if (dual.weight[i] <= 1e-6) continue;
      mixture.columns.push_back(i);
      mixture.total += dual.weight[i];
    }
    return mixture;
  }

  template <typename On>
  double share(const Mixture& mixture, const Dual& dual, const On& on) const {
    double sum = 0;
    for (const std::size_t i : mixture.columns) {
      if (on(columns_[i].placement)) sum += dual.weight[i];
    }
    return sum;
  }

  // The largest of what the mixture leaves in between; where it leaves nothing, the largest in
  // which it differs from the best plan; then the operations, likewise.
  std::optional<Decision> next_decision(const Dual& dual, const Restrictions& restrictions) const {
    const Mixture mixture = mixture_of(dual);
    const Placement& best = options_.best();
    std::optional<Decision> largest;
    double most = 0;
    for (const bool differing : {false, true}) {
      const auto consider = [&](double on, bool best_on, double bytes, Decision decision) {
        const double off = mixture.total - on;
        const double apart = differing ? (best_on ? off : on) : std::min(on, off);
        if (apart < 1e-3 || bytes * apart <= most || decided(restrictions, decision)) return;
        most = bytes * apart;
        largest = decision;
      };
      std::size_t place = 0;
      for (std::size_t index = 0; index < problem_.items.size(); ++index) {
        const auto bytes = static_cast<double>(problem_.items[index].bytes.count());
        const auto gaps = static_cast<std::size_t>(gap_count(problem_.items[index]));
        for (std::size_t gap = 0; gap < gaps; ++gap, ++place) {
          const double on = share(mixture, dual, [&](const PackedPlacement& placement) {
            return placement.resident(place);
          });
          consider(on, best.resident[index][gap], bytes,
                   {static_cast<std::int32_t>(index), static_cast<std::int32_t>(gap)});
        }
      }
      for (std::size_t v = 0; v < problem_.operations.size() && !largest; ++v) {
        const double on = share(
            mixture, dual, [&](const PackedPlacement& placement) { return placement.on_gpu(v); });
        consider(on, best.device[v] == Device::gpu, 1, {static_cast<std::int32_t>(v), -1});
      }
      if (largest) break;
    }
    return largest ? largest : largest_priced(dual.prices.steps, restrictions);
  }

  // Where the mixture is the best plan itself, and yet dearer than the bound: what the prices weigh
  // most, undecided so far. Lumps are told from one another by trying them.
  std::optional<Decision> largest_priced(const Prices& prices,
                                         const Restrictions& restrictions) const {
    std::vector<double> before(problem_.operations.size() + 1, 0);
    for (const StepPrice& p : prices) {
      before[static_cast<std::size_t>(p.step) + 1] = static_cast<double>(p.price);
    }
    for (std::size_t t = 1; t < before.size(); ++t) before[t] += before[t - 1];
    const auto price_of = [&](StepRange steps) {
      return steps.empty() ? 0
                           : before[static_cast<std::size_t>(steps.end)] -
                                 before[static_cast<std::size_t>(steps.begin)];
    };
    std::optional<Decision> largest;
    double most = 0;
    for (std::size_t index = 0; index < problem_.items.size(); ++index) {
      const Item& item = problem_.items[index];
      const auto bytes = static_cast<double>(item.bytes.count());
      for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
        const GapSteps inside =
            steps_inside(item, gap, static_cast<std::int32_t>(problem_.operations.size()));
        const double weight = bytes * (price_of(inside.within) + price_of(inside.wrapped));
        const Decision decision{static_cast<std::int32_t>(index), gap};
        if (weight <= most || decided(restrictions, decision)) continue;
        most = weight;
        largest = decision;
      }
    }
    return largest;
  }

  // By the problem, by a branch, or because nothing else fits.
  static bool decided(const Restrictions& restrictions, const Decision& wanted) {
    const auto index = static_cast<std::size_t>(wanted.index);
    if (wanted.gap < 0) return restrictions.device[index] != Pin::free;
    return restrictions.gap[index][static_cast<std::size_t>(wanted.gap)] != GapPin::free;
  }

  const CutModel& model_;
  const PlacementIndex& index_;
  const Restrictions& root_;
  const ResidencyProblem& problem_;
  std::vector<PlacementColumn>& columns_;
  const BranchOptions& options_;
  std::deque<MemoryRow> pool_;  // of all branches: their addresses stay
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
