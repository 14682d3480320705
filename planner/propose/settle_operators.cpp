#include "planner/propose/settle_operators.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "planner/problem/gpu_budget.hpp"

namespace stowage {
namespace {

constexpr int most_rounds = 20;
constexpr int rounds_before_doubling = 12;  // before more is taken away than is missing
constexpr int most_trials = 24;

using Settled = std::function<ResidencyProblem(const std::vector<Device>&)>;

/// By step: the bytes beyond the budget, which the limits have to fall by at least.
std::vector<Bytes> excess_over(const std::vector<Bytes>& needed, GpuBudget budget) {
  std::vector<Bytes> excess;
  excess.reserve(needed.size());
  for (const Bytes bytes : needed) excess.push_back(budget.excess(bytes));
  return excess;
}

/// The limits lowered by `factor` times the excess, but not below the floors.
std::vector<Bytes> lowered(std::vector<Bytes> limits, const std::vector<Bytes>& excess,
                           const std::vector<Bytes>& floors, std::int64_t factor) {
  for (std::size_t t = 0; t < limits.size(); ++t) {
    const bool all = excess[t].count() > limits[t].count() / factor;
    const Bytes less = all ? limits[t] : Bytes(excess[t].count() * factor);
    limits[t] = std::max(limits[t] - less, std::min(limits[t], floors[t]));
  }
  return limits;
}

/// A half-open range of consecutive operations.
struct Run {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The runs of operations on the CPU that may move, the longest first.
std::vector<Run> runs_on_the_cpu(const std::vector<Operation>& operations,
                                 const std::vector<Device>& device) {
  std::vector<Run> runs;
  for (std::size_t t = 0; t < device.size(); ++t) {
    if (device[t] == Device::gpu || operations[t].pin != Pin::free) continue;
    if (runs.empty() || runs.back().end != t) runs.push_back({t, t});
    runs.back().end = t + 1;
  }
  std::ranges::stable_sort(runs, std::ranges::greater(),
                           [](const Run& run) { return run.end - run.begin; });
  return runs;
}

class Settling {
 public:
  Settling(const ResidencyProblem& open, const Settled& settled, const SolveOptions& options)
      : open_(open), settled_(settled), options_(options) {
    options_.branches = false;
  }

  std::optional<SettledOperators> devices() {
    if (!solve_open_problem()) return std::nullopt;
    if (best_.device.empty()) {
      std::vector<Device> device;
      device.reserve(open_.operations.size());
      for (const Operation& operation : open_.operations) {
        device.push_back(operation.pin == Pin::gpu ? Device::gpu : Device::cpu);
      }
      adopt_if_cheaper(device);
      if (best_.device.empty()) best_.device = std::move(device);
    }
    return_runs_to_gpu();
    return std::move(best_);
  }

 private:
  bool is_cancelled() const { return options_.work != nullptr && options_.work->is_cancelled(); }

  /// Solves the open problem until the devices of its solution fit. False: the budget is below the
  /// floor.
  bool solve_open_problem() {
    SolveOptions round = options_;
    round.limits = options_.budget.step_limits(open_.operations.size());
    const std::vector<Bytes> floors = memory_floors(open_);
    std::int64_t factor = 1;
    for (int rounds = 0; rounds < most_rounds; ++rounds) {
      const auto solution = solve(open_, round);
      if (!solution) return false;
      if (rounds == 0) {
        best_.cost_lower_bound_seconds = solution->cost_lower_bound_seconds;
        best_.all_gpu_cost_seconds = solution->all_gpu_cost_seconds;
        best_.proof = solution->proof;
      }
      const std::vector<Device>& device = solution->placement.device;
      const std::vector<Bytes> needed = memory_floors(settled_(device));
      if (std::ranges::all_of(needed, [&](Bytes bytes) { return options_.budget.fits(bytes); })) {
        adopt_if_cheaper(device);
        return true;
      }
      if (is_cancelled()) return true;
      if (rounds >= rounds_before_doubling) factor *= 2;
      round.limits =
          lowered(std::move(round.limits), excess_over(needed, options_.budget), floors, factor);
    }
    return true;
  }

  bool adopt_if_cheaper(const std::vector<Device>& device) {
    const auto solution = solve(settled_(device), options_);
    if (!solution || solution->evaluation.cost_seconds >= least_) return false;
    least_ = solution->evaluation.cost_seconds;
    best_.device = device;
    return true;
  }

  /// Moves runs of operations back to the GPU, and halves of the runs that do not fit or cost more.
  void return_runs_to_gpu() {
    std::vector<Run> runs = runs_on_the_cpu(open_.operations, best_.device);
    for (std::size_t i = 0; i < runs.size() && i < most_trials && !is_cancelled(); ++i) {
      std::vector<Device> device = best_.device;
      for (std::size_t t = runs[i].begin; t < runs[i].end; ++t) device[t] = Device::gpu;
      if (adopt_if_cheaper(device) || runs[i].end - runs[i].begin < 2) continue;
      const std::size_t middle = runs[i].begin + (runs[i].end - runs[i].begin) / 2;
      const Run first{runs[i].begin, middle}, second{middle, runs[i].end};
      runs.insert(runs.end(), {first, second});
    }
  }

  const ResidencyProblem& open_;
  const Settled& settled_;
  SolveOptions options_;
  SettledOperators best_;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::optional<SettledOperators> settle_operators(const ResidencyProblem& open,
                                                 const Settled& settled,
                                                 const SolveOptions& options) {
  return Settling(open, settled, options).devices();
}

}  // namespace stowage
