#include "planner/assemble/swap_policies.hpp"

#include <algorithm>
#include <vector>

#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/problem/versions.hpp"

namespace stowage {
namespace {

std::size_t at_step(const Touch& touch) { return static_cast<std::size_t>(touch.step); }

bool is_activation(StorageClass storage_class) {
  return storage_class == StorageClass::activation ||
         storage_class == StorageClass::saved_auxiliary || storage_class == StorageClass::input ||
         storage_class == StorageClass::augmented_input;
}

struct PolicyGap {
  std::size_t item = 0, gap = 0;
  GapSteps inside;
};

class PolicyPlacement {
 public:
  PolicyPlacement(SwapPolicy policy, const SizedStep& step, const ResidencyProblem& problem,
                  GpuBudget budget)
      : policy_(policy),
        step_(step),
        problem_(problem),
        budget_(budget),
        placement_(all_gpu_placement(problem, budget)) {}

  std::optional<Placement> run() && {
    if (policy_ == SwapPolicy::optimizer_on_cpu && !move_updates()) return std::nullopt;
    const Evaluation start = evaluate(problem_, placement_);
    if (!start.consistent) return std::nullopt;
    memory_ = start.memory;
    const bool whatever_fits =
        policy_ == SwapPolicy::swap_all || policy_ == SwapPolicy::swap_convolutions;
    for (const PolicyGap& gap : ordered_gaps()) {
      if (whatever_fits || exceeds_within(gap)) drop(gap);
    }
    drop_idle_copies();
    const Evaluation evaluation = evaluate(problem_, placement_);
    if (!evaluation.consistent || !budget_.fits(evaluation.peak)) return std::nullopt;
    return std::move(placement_);
  }

 private:
  [[nodiscard]] const KernelNode& node(const Touch& touch) const {
    return step_.graph->nodes[at_step(touch)];
  }
  [[nodiscard]] const Storage& storage(std::size_t item) const {
    return step_.graph->storage(problem_.storage_of[item]);
  }

  /// Moves updates to the CPU. False: none may run there.
  bool move_updates() {
    bool any = false;
    for (std::size_t t = 0; t < problem_.operations.size(); ++t) {
      if (step_.graph->nodes[t].phase != Phase::update) continue;
      if (problem_.operations[t].pin == Pin::gpu) continue;
      placement_.device[t] = Device::cpu;
      placement_.engine[t] = 0;
      any = true;
    }
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      const std::vector<Touch>& touches = problem_.items[i].touches;
      for (std::size_t k = 0; k < touches.size(); ++k) {
        if (placement_.device[at_step(touches[k])] == Device::gpu) continue;
        placement_.on_gpu[i][k] = false;
        std::vector<bool>& resident = placement_.resident[i];
        const std::int32_t before = gap_before(problem_.items[i], static_cast<std::int32_t>(k));
        if (before >= 0) resident[static_cast<std::size_t>(before)] = false;
        if (k < resident.size()) resident[k] = false;
      }
    }
    return any;
  }

  /// The gaps that the rule looks at, in its order.
  [[nodiscard]] std::vector<PolicyGap> ordered_gaps() const {
    std::vector<PolicyGap> gaps;
    const auto steps = static_cast<std::int32_t>(problem_.operations.size());
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      const Item& item = problem_.items[i];
      for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
        if (is_candidate(i, static_cast<std::size_t>(gap))) {
          gaps.push_back({i, static_cast<std::size_t>(gap), steps_inside(item, gap, steps)});
        }
      }
    }
    const auto begin = [&](const PolicyGap& gap) {
      return problem_.items[gap.item].touches[gap.gap].step;
    };
    if (policy_ == SwapPolicy::largest_first) {
      std::ranges::stable_sort(gaps, std::greater<>(), [&](const PolicyGap& gap) {
        return problem_.items[gap.item].bytes;
      });
    } else {
      std::ranges::stable_sort(gaps, {}, begin);
    }
    return gaps;
  }

  [[nodiscard]] bool is_candidate(std::size_t i, std::size_t gap) const {
    const Item& item = problem_.items[i];
    if (!placement_.resident[i][gap]) return false;
    if (gap_pin(item, static_cast<std::int32_t>(gap)) == GapPin::resident) return false;
    const Touch& from = item.touches[gap];
    const Touch& to = item.touches[(gap + 1) % item.touches.size()];
    const bool to_backward = is_activation(storage(i).storage_class) &&
                             node(from).phase == Phase::forward &&
                             node(to).phase == Phase::backward;
    switch (policy_) {
      case SwapPolicy::swap_all:
        return to_backward;
      case SwapPolicy::swap_convolutions:
      case SwapPolicy::as_needed:
        return to_backward && (node(from).convolution >= 0 || node(to).convolution >= 0);
      case SwapPolicy::largest_first:
      case SwapPolicy::earliest_first:
      case SwapPolicy::optimizer_on_cpu:
        return true;
    }
    return false;
  }

  [[nodiscard]] bool exceeds_within(const PolicyGap& gap) const {
    for (const StepRange& range : {gap.inside.within, gap.inside.wrapped}) {
      for (std::int32_t t = range.begin; t < range.end; ++t) {
        if (!budget_.fits(memory_[static_cast<std::size_t>(t)])) return true;
      }
    }
    return false;
  }

  void drop(const PolicyGap& gap) {
    placement_.resident[gap.item][gap.gap] = false;
    for (const StepRange& range : {gap.inside.within, gap.inside.wrapped}) {
      for (std::int32_t t = range.begin; t < range.end; ++t) {
        memory_[static_cast<std::size_t>(t)] -= problem_.items[gap.item].bytes;
      }
    }
  }

  /// Drops copies beside a reader on the CPU without a resident gap on either side.
  void drop_idle_copies() {
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      const Item& item = problem_.items[i];
      for (std::size_t k = 0; k < item.touches.size(); ++k) {
        if (placement_.device[at_step(item.touches[k])] == Device::gpu) continue;
        const std::vector<bool>& resident = placement_.resident[i];
        const std::int32_t before = gap_before(item, static_cast<std::int32_t>(k));
        const bool used = (before >= 0 && resident[static_cast<std::size_t>(before)]) ||
                          (k < resident.size() && resident[k]);
        if (!used) placement_.on_gpu[i][k] = false;
      }
    }
  }

  SwapPolicy policy_;
  const SizedStep& step_;
  const ResidencyProblem& problem_;
  GpuBudget budget_;
  Placement placement_;
  std::vector<Bytes> memory_;  // by step
};

}  // namespace

std::string_view to_string(SwapPolicy policy) {
  switch (policy) {
    case SwapPolicy::swap_all:
      return "swap-all";
    case SwapPolicy::swap_convolutions:
      return "swap-convolutions";
    case SwapPolicy::as_needed:
      return "swap-as-needed";
    case SwapPolicy::largest_first:
      return "largest-first";
    case SwapPolicy::earliest_first:
      return "earliest-first";
    case SwapPolicy::optimizer_on_cpu:
      return "optimizer-on-cpu";
  }
  return "";
}

std::optional<Placement> placed_by(SwapPolicy policy, const SizedStep& step,
                                   const ResidencyProblem& problem, GpuBudget budget) {
  return PolicyPlacement(policy, step, problem, budget).run();
}

}  // namespace stowage
