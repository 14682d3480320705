// StepTrace: one step over time: what each processor and each link does, and how much memory is
// taken.
//
//   Plan                           -> StepTrace    its lanes, as the plan's step is simulated
//   SizedStep, Card, MemoryOverStep -> StepTrace   all kernels on the GPU, one after the other
//
// Times are estimates: of a plan by its own rates or measured seconds, of a step by the card's
// rates (docs/planner.md). Allocators take no time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "answers/report/step_memory.hpp"
#include "estimator/card/card.hpp"
#include "estimator/memory/sized_step.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// A kernel, or a copy.
struct TraceSlice {
  std::string name, category;
  double begin = 0, end = 0;  ///< seconds from the step's start
  std::vector<std::pair<std::string, std::variant<std::int64_t, std::string>>> details;
};

/// Slices that follow each other: none begins before the one before it has ended.
struct TraceTrack {
  std::string name;
  std::vector<TraceSlice> slices;
};

struct TraceCounter {
  std::string name;
  std::vector<std::pair<double, Bytes>> samples;  ///< at these seconds, where it changes
};

struct StepTrace {
  std::string title;
  std::vector<TraceTrack> tracks;
  std::vector<TraceCounter> counters;
};

/// Precondition: two_sides_mismatch(plan.machine) == "".
[[nodiscard]] StepTrace trace_step(const Plan& plan);
/// `memory`: of the same step on the same card.
[[nodiscard]] StepTrace trace_step(const SizedStep& step, const Card& card,
                                   const MemoryOverStep& memory);

}  // namespace stowage
