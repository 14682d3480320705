// Compares every kernel that the kernel table has for cuda with the host, in every type that it
// takes there.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/gpu/machine.hpp"

namespace stowage::test {
namespace {

struct KernelTrial {
  TrialResult result;
  bool passed = true;
};

void join(KernelTrial& all, const TrialResult& one, DataType type) {
  all.passed = all.passed && one.passed(type);
  all.result.difference = std::max(all.result.difference, one.difference);
  if (all.result.problem.empty()) all.result.problem = one.problem;
}

KernelTrial trial_of(const KernelSample& sample, DataType type) {
  KernelTrial all;
  join(all, try_on(machine().backend(), sample, type), type);
  if (sample.kernel != Kernel::cast) return all;
  for (const DataType target : kernel_types(Kernel::cast, KernelDevice::cuda)) {
    KernelSample to = sample;
    to.writes[0].floating = false;
    to.writes[0].type = target;
    join(all, try_on(machine().backend(), to, type), target);
  }
  return all;
}

}  // namespace

TEST_CASE("every kernel in every type computes what the host does") {
  std::size_t rows = 0;
  for (const GpuRunRow& row : rows_of_table({})) {
    const auto [kernel, type] = row.what;
    if (!machine().tries(to_string(kernel))) continue;
    ++rows;
    const std::string called =
        std::string(to_string(kernel)) + " in " + std::string(to_string(type));
    CAPTURE(called);
    const auto sample = std::ranges::find(kernel_samples(), kernel, &KernelSample::kernel);
    CHECK(sample != kernel_samples().end());
    if (sample == kernel_samples().end()) continue;
    const KernelTrial trial = trial_of(*sample, type);
    machine().add(row.what, trial.result, trial.passed);
    CHECK(trial.result.problem == "");
    CAPTURE(trial.result.difference);
    CHECK(trial.passed);
  }
  CHECK(rows > 0);
  CHECK(machine().tried() == rows);
}

}  // namespace stowage::test
