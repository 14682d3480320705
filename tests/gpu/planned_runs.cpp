#include "tests/gpu/planned_runs.hpp"

#include "gpu_probe/run/tolerance.hpp"
#include "tests/gpu/machine.hpp"

namespace stowage::test {

LoweringSettings without_tf32(LoweringSettings settings) {
  settings.convolutions.tf32 = false;
  return settings;
}

std::string failures_on_machine(const Plan& plan, std::int64_t steps) {
  const auto report = run_plan(plan, machine().backend(),
                               {.steps = steps, .tolerance = gpu_tolerance(*plan.step.graph)});
  if (!report) return report.error().front().message;
  std::string text;
  for (const Check& check : report->checks) {
    if (!check.passed) text += check.name + ": " + check.detail + "\n";
  }
  return text;
}

}  // namespace stowage::test
