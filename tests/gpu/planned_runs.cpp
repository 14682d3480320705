#include "tests/gpu/planned_runs.hpp"

#include "tests/gpu/machine.hpp"

namespace stowage::test {

double step_tolerance(DataType type) {
  switch (type) {
    case DataType::float16:
      return 1e-2;
    case DataType::bfloat16:
      return 6e-2;
    default:
      return 2e-4;
  }
}

LoweringSettings without_tf32(LoweringSettings settings) {
  settings.convolutions.tf32 = false;
  return settings;
}

std::string failures_on_machine(const Plan& plan, const RunOptions& options) {
  const auto report = run_plan(plan, machine().backend(), options);
  if (!report) return report.error().front().message;
  std::string text;
  for (const Check& check : report->checks) {
    if (!check.passed) text += check.name + ": " + check.detail + "\n";
  }
  return text;
}

}  // namespace stowage::test
