#include "planner/assemble/all_gpu_step.hpp"

#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/arena_claims.hpp"
#include "planner/assemble/fit_schedule.hpp"
#include "planner/assemble/placed_step.hpp"

namespace stowage {

AllGpuStep all_gpu_step(const SizedStep& step, const ResidencyProblem& problem, GpuBudget budget) {
  const Placement placement = all_gpu_placement(problem, budget);
  const PlacedStep placed(step, problem, placement);
  const CopySchedule schedule = widest_schedule(placed, GpuBudget::unlimited());
  return {live_peak(claim_gpu(placed, schedule.stays), placed.steps()),
          placed.step_seconds(schedule)};
}

}  // namespace stowage
