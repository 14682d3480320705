#include "planner/assemble/placed_step.hpp"

#include <cassert>

#include "planner/assemble/lane_schedule.hpp"
#include "planner/plan/lanes.hpp"

namespace stowage {
namespace {

const EngineCost& engine_of(const ResidencyProblem& problem, const Placement& placement,
                            std::size_t node) {
  return problem.operations[node].engines[static_cast<std::size_t>(placement.engine[node])];
}

}  // namespace

PlacedStep::PlacedStep(const SizedStep& of, const ResidencyProblem& problem_of,
                       const Placement& placed)
    : step(of), problem(problem_of), placement(placed), moves(make_moves(problem_of, placed)) {
  assert(problem.storage_of.size() == problem.items.size());
  for (std::size_t i = 0; i < problem.operations.size(); ++i) {
    node_seconds.push_back(placement.device[i] == Device::gpu
                               ? engine_of(problem, placement, i).seconds
                               : problem.operations[i].cpu_seconds);
  }
}

Bytes PlacedStep::workspace(std::int32_t node) const {
  return on_gpu(node) ? engine_of(problem, placement, static_cast<std::size_t>(node)).workspace
                      : Bytes();
}

std::vector<StepRange> PlacedStep::own_stays() const {
  std::vector<StepRange> stays;
  stays.reserve(moves.stays.size());
  for (const GpuStay& stay : moves.stays) stays.push_back(stay.steps);
  return stays;
}

double PlacedStep::step_seconds(const CopySchedule& schedule) const {
  const PlacedCopies copies = copies_of(problem, moves, schedule);
  return simulate_lanes(node_seconds, copies.transfers, copies.seconds, schedule.windows)
      .step_seconds;
}

}  // namespace stowage
