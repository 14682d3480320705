// Failing calls of a device, and failing kernels of the CPU beside it: the failure is named, no
// lane waits for ever, all memory is freed, and the backend can be used again.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "gpu_probe/lanes/laned_backend.hpp"
#include "gpu_probe/run/executor.hpp"
#include "tests/gpu_probe/lanes/plain_kernels.hpp"
#include "tests/gpu_probe/lanes/threaded_device.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

struct Outcome {
  long calls = 0;
  std::string failed_call;
  std::string message;  ///< "": the run succeeded
  std::string again;    ///< of a second run on the same backend
};

Outcome run_failing(const Plan& plan, const DeviceSettings& settings,
                    const ExecutionOptions& options) {
  auto made = threaded_device(settings);
  Outcome outcome;
  {
    const auto backend = laned_backend(std::move(made.device), made.run_on_cpu);
    const auto done = execute(plan, *backend, options);
    if (!done) outcome.message = done.error().front().message;
    const auto again = execute(plan, *backend, options);
    if (!again) outcome.again = again.error().front().message;
    if (again) CHECK(again->completed);
  }
  CHECK(made.diary->misuses.empty());
  CHECK(made.diary->blocks == 0);
  outcome.calls = made.diary->calls;
  outcome.failed_call = made.diary->failed_call;
  return outcome;
}

}  // namespace

TEST_SUITE("lanes") {
  TEST_CASE("whichever call of the device fails, it is named and nothing is left behind") {
    const StepGraph graph = step_of(mlp, sgd_momentum());
    const Plan plan = random_plan(graph, 2, 11);
    std::set<std::string> calls;
    for (const ExecutionOptions& options : {ExecutionOptions{}, ExecutionOptions{.clean = true}}) {
      const Outcome whole =
          run_failing(plan, {.longest_delay = 0, .run = tested_kernels()}, options);
      REQUIRE(whole.message.empty());
      const long in_one_run = whole.calls / 2;
      for (const bool fails_on : {false, true}) {
        for (long n = 1; n <= in_one_run; n += n < 60 ? 1 : 7) {
          CAPTURE(n);
          CAPTURE(fails_on);
          const Outcome failed = run_failing(plan,
                                             {.seed = 5,
                                              .longest_delay = 0,
                                              .failing_call = n,
                                              .fails_on = fails_on,
                                              .run = tested_kernels()},
                                             options);
          REQUIRE(!failed.failed_call.empty());
          // Two calls happen where no error can be returned: the first call of a run stops the
          // earlier one.
          const bool unheard = n == 1;
          const std::string said = failed.failed_call + " fails with error 719";
          if (!unheard || fails_on) {
            CHECK(failed.message.find(" fails with error 719") != std::string::npos);
          }
          if (!unheard && !fails_on) CHECK(failed.message.ends_with(said));
          CHECK(failed.again.empty() == !fails_on);
          calls.insert(failed.failed_call);
        }
      }
    }
    CHECK(calls == std::set<std::string>{"allocate", "allocate_host", "copy", "fill",
                                         "forget_events", "launch", "record", "seconds_between",
                                         "synchronize", "wait", "wait_for", "wait_for_signal"});
  }

  TEST_CASE("a kernel of the CPU that fails holds nobody up") {
    const StepGraph graph = step_of(mlp, sgd_momentum());
    const Plan plan = random_plan(graph, 2, 11, {.on_cpu = 0.5});
    long kernels = 0, seen = 0;
    for (long n = 1;; ++n) {
      auto made = threaded_device({.seed = 7, .run = tested_kernels()});
      const RunKernel run = [&, inner = made.run_on_cpu](const KernelCall& call) -> Result<void> {
        if (++kernels == n) return failure("the kernel cannot");
        return inner(call);
      };
      kernels = 0;
      const auto backend = laned_backend(std::move(made.device), run);
      const auto done = execute(plan, *backend, {.clean = true});
      if (kernels < n) {
        CHECK(done.has_value());
        break;
      }
      ++seen;
      REQUIRE(!done.has_value());
      CHECK(done.error().front().message.ends_with("the kernel cannot"));
      const auto again = execute(plan, *backend, {.clean = true});
      CHECK(again.has_value());
    }
    CHECK(seen > 3);
  }

  TEST_CASE("a kernel of the device that fails is told by the next call") {
    const StepGraph graph = step_of(mlp, sgd_momentum());
    const Plan plan = random_plan(graph, 2, 11);
    const RunKernel failing = [](const KernelCall&) -> Result<void> {
      return failure("an illegal address");
    };
    auto made = threaded_device({.run = failing});
    const auto backend = laned_backend(std::move(made.device), run_host_kernel);
    const auto done = execute(plan, *backend, {});
    REQUIRE(!done.has_value());
    CHECK(done.error().front().message.ends_with("an illegal address"));
  }
}

}  // namespace stowage::test
