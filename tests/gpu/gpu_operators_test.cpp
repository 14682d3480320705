// Compares a small step of every operator and every loss, forward and backward, with the host.
#include <doctest/doctest.h>

#include <string>

#include "gpu_probe/run/missing_kernels.hpp"
#include "tests/gpu/machine.hpp"
#include "tests/gpu/planned_runs.hpp"
#include "tests/gpu_probe/run/operator_models.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

/// Returns whether the device has the step's kernels.
bool check_step(const std::string& name, const std::string& text, std::int64_t batch) {
  CAPTURE(name);
  const StepGraph graph = step_of(text.c_str(), without_tf32(sgd_momentum()));
  const Plan plan = resident_plan(graph, batch);
  if (!missing_kernels(plan, KernelDevice::cuda).empty()) return false;
  CHECK(failures_on_machine(plan) == "");
  return true;
}

}  // namespace

TEST_CASE("every operator's step, forward and backward, ends where the host's does") {
  int steps = 0;
  for (const OperatorModel& model : operator_models()) {
    steps += check_step(model.name, operator_description(model), 3) ? 1 : 0;
  }
  MESSAGE(steps, " of ", operator_models().size(), " steps have all their kernels there");
  CHECK(steps > 80);
}

TEST_CASE("every loss's step, forward and backward, ends where the host's does") {
  int steps = 0;
  for (const LossModel& model : loss_models()) {
    steps += check_step(model.name, loss_description(model), 6) ? 1 : 0;
  }
  CHECK(steps == static_cast<int>(loss_models().size()));
}

}  // namespace stowage::test
