// Deliberate mistakes that a run on the device must find: in the plan, in a kernel's results, in
// what is asked of the device. The models have no indices, since an index that holds garbage would
// be a wrong address.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "gpu_probe/run/executor.hpp"
#include "gpu_probe/run/resident_step.hpp"
#include "gpu_probe/run/tolerance.hpp"
#include "tests/gpu/machine.hpp"
#include "tests/gpu/planned_runs.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"
#include "tests/gpu_probe/run/wrapped_backend.hpp"

namespace stowage::test {
namespace {

constexpr std::int64_t trap_batch = 2;
constexpr CopyTiming late_copies{true, true};

Execution executed(const Plan& plan, const ExecutionOptions& options) {
  auto execution = execute(plan, machine().backend(), options);
  if (!execution) FAIL(execution.error().front().message);
  return *std::move(execution);
}

/// Whether the step's results differ from the host's.
bool is_wrong(const StepGraph& graph, const Execution& done) {
  const auto reference = run_resident_step(graph, trap_batch);
  REQUIRE(reference.has_value());
  const auto places = results_of(graph);
  return std::ranges::any_of(
      std::array{ResultKind::loss, ResultKind::gradient, ResultKind::parameter,
                 ResultKind::optimizer_state},
      [&](ResultKind kind) {
        return difference(graph, places, kind, done.results, *reference).relative >
               gpu_tolerance(graph);
      });
}

/// Adds to the first number of the result of the n-th kernel on the device.
class SpoilingBackend final : public WrappedBackend {
 public:
  SpoilingBackend(std::unique_ptr<Backend> inner, long n)
      : WrappedBackend(std::move(inner)), n_(n) {}

  Result<Ticket> run(const KernelCall& call) override {
    auto ticket = WrappedBackend::run(call);
    if (!ticket || call.device != Device::gpu || ++calls_ != n_) return ticket;
    float value = 0;
    auto* const bytes = reinterpret_cast<std::byte*>(&value);
    const Bytes size(static_cast<std::int64_t>(sizeof value));
    if (auto ok = read_gpu(bytes, call.writes[0].data, size); !ok)
      return tl::unexpected(ok.error());
    value += 1;
    if (auto ok = write_gpu(call.writes[0].data, bytes, size); !ok) {
      return tl::unexpected(ok.error());
    }
    return ticket;
  }

 private:
  long n_, calls_ = 0;
};

}  // namespace

TEST_CASE("any copy of a drawn plan that is dropped is found by the book, and by the numbers") {
  const StepGraph graph = step_of(mlp, without_tf32(sgd_momentum()));
  const Plan plan = random_plan(graph, trap_batch, 11);
  REQUIRE(!is_wrong(graph, executed(plan, {})));
  REQUIRE(plan.transfers.size() > 8);
  for (std::size_t i = 0; i < plan.transfers.size(); i += plan.transfers.size() / 8) {
    CAPTURE(i);
    Plan dropped = plan;
    dropped.transfers.erase(dropped.transfers.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK(!executed(dropped, {}).violations.empty());
    CHECK(failures_on_machine(dropped) != "");
    CHECK(is_wrong(graph, executed(dropped, {.timing = late_copies, .stop_at_violation = false})));
  }
}

TEST_CASE("two places that lie over each other are found, by the numbers too") {
  const StepGraph graph = step_of(mlp, without_tf32(sgd_momentum()));
  Plan plan = resident_plan(graph, trap_batch);
  std::vector<Residence>& places = plan.in(gpu_memory);
  const auto parameter = std::ranges::find_if(places, [&](const Residence& place) {
    return plan.storage(place.storage).storage_class == StorageClass::parameter;
  });
  const auto gradient = std::ranges::find_if(places, [&](const Residence& place) {
    return plan.storage(place.storage).storage_class == StorageClass::gradient;
  });
  REQUIRE(parameter != places.end());
  REQUIRE(gradient != places.end());
  gradient->offset = parameter->offset;
  CHECK(!executed(plan, {}).violations.empty());
  CHECK(is_wrong(graph, executed(plan, {.stop_at_violation = false})));
}

TEST_CASE("one wrong number that a kernel leaves on the device is found") {
  const StepGraph graph = step_of(mlp, without_tf32(sgd_momentum()));
  const Plan plan = resident_plan(graph, trap_batch);
  for (const long n : {1L, 3L, 6L}) {
    CAPTURE(n);
    auto another = machine().another();
    REQUIRE(another.has_value());
    SpoilingBackend backend(std::move(*another), n);
    const auto report = run_plan(plan, backend, {.tolerance = gpu_tolerance(graph)});
    REQUIRE(report.has_value());
    CHECK(!report->passed());
  }
}

TEST_CASE("an arena that no device has room for is refused in the driver's words") {
  const auto refused = machine().backend().allocate({.gpu = Bytes(std::int64_t{1} << 50)});
  REQUIRE(!refused.has_value());
  CHECK(refused.error().front().message.find("cuMemAlloc") != std::string::npos);
  // The machine still works.
  const StepGraph graph = step_of(mlp, without_tf32(sgd_momentum()));
  CHECK(failures_on_machine(resident_plan(graph, trap_batch)) == "");
}

}  // namespace stowage::test
