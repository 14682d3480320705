#include "estimator/workspace/benchmark.hpp"

#include <algorithm>
#include <functional>
#include <limits>

namespace stowage {

BenchmarkOutcome benchmark_outcome(const std::vector<Engine>& plans, Bytes available) {
  BenchmarkOutcome outcome;
  std::size_t timed = 0;
  for (const Engine& plan : plans) {
    if (plan.workspace > available) continue;
    outcome.buffer = std::max(outcome.buffer, plan.workspace);
    if (++timed > benchmark_limit) continue;
    if (std::ranges::find(outcome.winners, plan.workspace, &Engine::workspace) ==
        outcome.winners.end()) {
      outcome.winners.push_back(plan);
    }
  }
  std::ranges::stable_sort(outcome.winners, std::greater<>(), &Engine::workspace);
  return outcome;
}

BenchmarkOutcome benchmark_outcome(const std::vector<Engine>& plans) {
  return benchmark_outcome(plans, Bytes(std::numeric_limits<std::int64_t>::max()));
}

}  // namespace stowage
