#include "planner/solve/branch_and_bound.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace stowage {

namespace {

// One decision: a gap is kept or dropped, or (gap < 0) an operation takes a device.
struct Decision {
  std::int32_t index = 0;  // of the item, of the operation
  std::int32_t gap = -1;
  bool on_gpu = false;
};

struct Branch {
  double bound = 0;
  int order = 0;  // ties go to the older
  Prices prices;
  std::vector<Decision> decisions;
  std::optional<Decision> next;  // none: nothing is in between
};

class Search {
 public:
  Search(const CutModel& model, std::vector<PlacementColumn>& columns, const BranchOptions& options)
      : model_(model), problem_(*model.problem), columns_(columns), options_(options) {}

  BranchResult run(const Dual& root) {
    open_.push_back({root.bound_seconds, 0, root.prices, {}, next_decision(root, {})});
    result_.bound_seconds = root.bound_seconds;
    while (true) {
      // The least over what is open bounds every placement; what was closed cannot be better.
      const auto best =
          std::min_element(open_.begin(), open_.end(), [](const Branch& a, const Branch& b) {
            return a.bound != b.bound ? a.bound < b.bound : a.order < b.order;
          });
      if (best == open_.end()) {
        result_.bound_seconds = options_.upper_bound();
        return result_;
      }
      result_.bound_seconds = std::max(result_.bound_seconds, best->bound);
      if (!best->next || options_.enough(result_.bound_seconds) ||
          result_.cuts >= options_.most_cuts || options_.stop()) {
        return result_;
      }
      const Branch branch = std::move(*best);
      open_.erase(best);
      for (const bool on_gpu : {true, false}) descend(branch, on_gpu);
    }
  }

 private:
  void descend(const Branch& parent, bool on_gpu) {
    Branch child = parent;
    child.order = ++branches_;
    child.decisions.push_back(*parent.next);
    child.decisions.back().on_gpu = on_gpu;
    Restrictions restrictions = restrictions_of(problem_);
    for (const Decision& decision : child.decisions) {
      const auto index = static_cast<std::size_t>(decision.index);
      if (decision.gap < 0) {
        restrictions.device[index] = decision.on_gpu ? Pin::gpu : Pin::cpu;
      } else {
        restrictions.gap[index][static_cast<std::size_t>(decision.gap)] =
            decision.on_gpu ? GapPin::resident : GapPin::dropped;
      }
    }
    const std::size_t known = columns_.size();
    const DualOptions dual_options{options_.upper_bound(), options_.tolerance,
                                   options_.most_cuts_a_branch, options_.stop};
    const Dual dual = maximise_dual(model_, restrictions, parent.prices, columns_, dual_options);
    result_.cuts += dual.cuts;
    if (dual.contradictory) return;
    for (std::size_t i = known; i < columns_.size(); ++i) {
      const Placement placement = columns_[i].placement;
      options_.offer(placement, dual.prices);
    }
    child.bound = std::max(parent.bound, dual.bound_seconds);
    if (child.bound >= options_.upper_bound()) return;
    child.prices = dual.prices;
    child.next = next_decision(dual, child.decisions);
    open_.push_back(std::move(child));
  }

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
  std::optional<Decision> next_decision(const Dual& dual,
                                        const std::vector<Decision>& decisions) const {
    const Mixture mixture = mixture_of(dual);
    const Placement& best = options_.best();
    std::optional<Decision> largest;
    double most = 0;
    for (const bool differing : {false, true}) {
      const auto consider = [&](double on, bool best_on, double bytes, Decision decision) {
        const double off = mixture.total - on;
        const double apart = differing ? (best_on ? off : on) : std::min(on, off);
        if (apart < 1e-3 || bytes * apart <= most || decided(decisions, decision)) return;
        most = bytes * apart;
        largest = decision;
      };
      for (std::size_t index = 0; index < problem_.items.size(); ++index) {
        const auto bytes = static_cast<double>(problem_.items[index].bytes.count());
        const auto gaps = static_cast<std::size_t>(gap_count(problem_.items[index]));
        for (std::size_t gap = 0; gap < gaps; ++gap) {
          const double on = share(mixture, dual, [&](const Placement& placement) {
            return placement.resident[index][gap];
          });
          consider(on, best.resident[index][gap], bytes,
                   {static_cast<std::int32_t>(index), static_cast<std::int32_t>(gap)});
        }
      }
      for (std::size_t v = 0; v < problem_.operations.size() && !largest; ++v) {
        if (problem_.operations[v].pin != Pin::free) continue;
        const double on = share(mixture, dual, [&](const Placement& placement) {
          return placement.device[v] == Device::gpu;
        });
        consider(on, best.device[v] == Device::gpu, 1, {static_cast<std::int32_t>(v), -1});
      }
      if (largest) break;
    }
    return largest ? largest : largest_priced(dual.prices, decisions);
  }

  // Where the mixture is the best plan itself, and yet dearer than the bound: what the prices weigh
  // most, undecided so far. Lumps are told from one another by trying them.
  std::optional<Decision> largest_priced(const Prices& prices,
                                         const std::vector<Decision>& decisions) const {
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
        if (weight <= most || decided(decisions, decision)) continue;
        most = weight;
        largest = decision;
      }
    }
    return largest;
  }

  static bool decided(const std::vector<Decision>& decisions, const Decision& wanted) {
    return std::any_of(decisions.begin(), decisions.end(), [&](const Decision& decision) {
      return decision.index == wanted.index && decision.gap == wanted.gap;
    });
  }

  const CutModel& model_;
  const ResidencyProblem& problem_;
  std::vector<PlacementColumn>& columns_;
  const BranchOptions& options_;
  std::vector<Branch> open_;
  int branches_ = 0;
  BranchResult result_;
};

}  // namespace

BranchResult branch_and_bound(const CutModel& model, const Dual& root,
                              std::vector<PlacementColumn>& columns, const BranchOptions& options) {
  return Search(model, columns, options).run(root);
}

}  // namespace stowage
