// A backend whose n-th call fails, for every n: the execution ends there, says what failed, and the
// next execution can use the backend.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "gpu_probe/run/executor.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"
#include "tests/gpu_probe/run/wrapped_backend.hpp"

namespace stowage::test {
namespace {

/// Fails at its n-th call and counts those that came after it.
class FailingBackend final : public WrappedBackend {
 public:
  explicit FailingBackend(int n) : n_(n) {}

  [[nodiscard]] bool failed() const { return calls_ >= n_; }
  [[nodiscard]] const std::string& failed_call() const { return failed_call_; }
  [[nodiscard]] int calls_after_it() const { return failed() ? calls_ - n_ : 0; }

  Result<void> allocate(const ArenaSizes& sizes) override {
    if (fails("allocate")) return refusal();
    return WrappedBackend::allocate(sizes);
  }
  Result<Ticket> run(const KernelCall& call) override {
    if (fails("run")) return refusal();
    return WrappedBackend::run(call);
  }
  Result<Ticket> copy(Direction direction, std::byte* gpu, std::byte* cpu, Bytes bytes,
                      std::span<const Ticket> after) override {
    if (fails("copy")) return refusal();
    return WrappedBackend::copy(direction, gpu, cpu, bytes, after);
  }
  Result<void> compute_waits_for(std::span<const Ticket> tickets) override {
    if (fails("compute_waits_for")) return refusal();
    return WrappedBackend::compute_waits_for(tickets);
  }
  Result<void> host_waits_for(std::span<const Ticket> tickets) override {
    if (fails("host_waits_for")) return refusal();
    return WrappedBackend::host_waits_for(tickets);
  }
  Result<void> forget_tickets() override {
    if (fails("forget_tickets")) return refusal();
    return WrappedBackend::forget_tickets();
  }
  Result<void> synchronize() override {
    if (fails("synchronize")) return refusal();
    return WrappedBackend::synchronize();
  }
  Result<TimeSpan> ran(Ticket ticket) const override {
    if (fails("ran")) return refusal();
    return WrappedBackend::ran(ticket);
  }
  Result<void> write_gpu(std::byte* gpu, const std::byte* source, Bytes bytes) override {
    if (fails("write_gpu")) return refusal();
    return WrappedBackend::write_gpu(gpu, source, bytes);
  }
  Result<void> read_gpu(std::byte* to, const std::byte* gpu, Bytes bytes) override {
    if (fails("read_gpu")) return refusal();
    return WrappedBackend::read_gpu(to, gpu, bytes);
  }
  Result<void> fill_gpu(std::byte* gpu, std::byte value, Bytes bytes) override {
    if (fails("fill_gpu")) return refusal();
    return WrappedBackend::fill_gpu(gpu, value, bytes);
  }

 private:
  bool fails(const char* call) const {
    if (++calls_ != n_) return false;
    failed_call_ = call;
    return true;
  }
  [[nodiscard]] tl::unexpected<Diagnostics> refusal() const {
    return failure(failed_call_ + " fails with error 700");
  }

  int n_;
  mutable int calls_ = 0;
  mutable std::string failed_call_;
};

constexpr int no_call = 1 << 30;

/// What the executor was doing according to the message, without names.
std::string activity(const std::string& message) {
  const std::size_t quote = message.find('\'');
  return message.substr(0, std::min(quote, message.find(':')));
}

}  // namespace

TEST_CASE("whichever call of the backend fails, the execution ends there and says what failed") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  const Plan plan = random_plan(graph, 2, 11);
  std::set<std::string> calls, activities;
  for (const ExecutionOptions& options :
       {ExecutionOptions{}, ExecutionOptions{.padded = true}, ExecutionOptions{.clean = true}}) {
    FailingBackend whole(no_call);
    const auto usual = execute(plan, whole, options);
    REQUIRE(usual.has_value());
    REQUIRE(usual->violations.empty());
    for (int n = 1;; ++n) {
      FailingBackend backend(n);
      const auto done = execute(plan, backend, options);
      if (!backend.failed()) {
        CHECK(done.has_value());
        break;
      }
      INFO(n, ", ", backend.failed_call());
      REQUIRE(!done.has_value());
      const std::string& message = done.error().front().message;
      CHECK(message.ends_with(": " + backend.failed_call() + " fails with error 700"));
      CHECK(backend.calls_after_it() == 0);
      calls.insert(backend.failed_call());
      activities.insert(activity(message));
      const auto again = execute(plan, backend, options);
      REQUIRE(again.has_value());
      CHECK(again->results == usual->results);
    }
  }
  CHECK(calls == std::set<std::string>{"allocate", "run", "copy", "compute_waits_for",
                                       "forget_tickets", "host_waits_for", "synchronize", "ran",
                                       "write_gpu", "read_gpu", "fill_gpu"});
  CHECK(activities == std::set<std::string>{
                          "a copy of ", "allocating the arenas", "asking when node ",
                          "asking when the copy of ", "filling the arena on the GPU",
                          "filling the canaries of ", "filling the place of ",
                          "forgetting the step", "node ", "reading ", "waiting for the copy of ",
                          "waiting for the step", "waiting for what has ended", "writing "});
}

TEST_CASE("a backend that fails is no finding about the plan") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  const Plan plan = random_plan(graph, 2, 11);
  FailingBackend whole(no_call);
  REQUIRE(run_plan(plan, whole).has_value());
  for (const int n : {1, 2, 50, 100, 200, 300}) {
    FailingBackend backend(n);
    const auto report = run_plan(plan, backend);
    REQUIRE(backend.failed());
    REQUIRE(!report.has_value());
    CHECK(
        report.error().front().message.ends_with(backend.failed_call() + " fails with error 700"));
  }
}

}  // namespace stowage::test
