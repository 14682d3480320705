// The check of a device's memory around a run, on a backend that answers as a driver would. Nothing
// here runs on a GPU.
#include "gpu_probe/run/memory_check.hpp"

#include <doctest/doctest.h>

#include "gpu_probe/run/validate_run.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"
#include "tests/gpu_probe/run/wrapped_backend.hpp"

namespace stowage::test {
namespace {

/// A device of 1 GiB: a context takes 64 MiB of it, loaded kernels and libraries 32 more.
class CountedBackend final : public WrappedBackend {
 public:
  Bytes leaked;  ///< that each release() does not free

  Result<void> allocate(const ArenaSizes& sizes) override {
    arena_ = round_up(sizes.gpu, 2_MiB);
    return WrappedBackend::allocate(sizes);
  }
  void release() noexcept override {
    lost_ += leaked;
    arena_ = 0_B;
    WrappedBackend::release();
  }
  Result<Ticket> run(const KernelCall& call) override {
    loaded_ = 32_MiB;
    return WrappedBackend::run(call);
  }
  Result<std::optional<MemoryReading>> memory() const override {
    const Bytes used = 64_MiB + loaded_ + arena_ + lost_;
    return MemoryReading{.free = 1_GiB - used, .total = 1_GiB, .nvml_used = used + 1_MiB};
  }
  std::vector<std::string> remarks() const override { return {"another engine was taken"}; }

 private:
  Bytes arena_, loaded_, lost_;
};

std::string failed(const RunReport& report) {
  std::string names;
  for (const Check& check : report.checks) {
    if (!check.passed) names += check.name + "; ";
  }
  return names;
}

Plan small_plan() { return random_plan(step_of(small_cnn, sgd_momentum()), 2, 11); }

}  // namespace

TEST_CASE("a run reads its device's memory with the context, loaded, with the arenas and after") {
  const Plan plan = small_plan();
  CountedBackend backend;
  const auto report = run_plan(plan, backend, {.steps = 2});
  REQUIRE(report.has_value());
  CHECK(failed(*report) == "");
  REQUIRE(report->measured.memory.has_value());
  const DeviceMemoryUse& use = *report->measured.memory;
  CHECK(use.before.free == 1_GiB - 64_MiB);
  CHECK(use.loaded.free == 1_GiB - 96_MiB);
  CHECK(use.loaded.free - use.with_arenas.free == round_up(plan.totals.arena, 2_MiB));
  CHECK(use.after.free == use.loaded.free);
  CHECK(report->remarks == std::vector<std::string>{"another engine was taken"});
}

TEST_CASE("memory that does not come back is a failed check") {
  CountedBackend backend;
  backend.leaked = 1_MiB;
  const auto report = run_plan(small_plan(), backend, {});
  REQUIRE(report.has_value());
  CHECK(failed(*report) == "device memory given back; ");
}

TEST_CASE("the arena's bytes and what lies outside it are held against the plan") {
  Plan plan = small_plan();
  plan.totals.arena = 300_MiB;
  const auto reading = [](Bytes used) {
    return MemoryReading{.free = 1_GiB - used, .total = 1_GiB, .nvml_used = std::nullopt};
  };
  const auto checks = [&](Bytes taken) {
    const MemoryReading idle = reading(100_MiB);
    return check_device_memory(plan, {idle, idle, reading(100_MiB + taken), idle});
  };
  CHECK(checks(300_MiB)[0].detail ==
        "314572800 bytes taken by the arena, 314572800 planned; 968884224 free before, 654311424 "
        "with it, of 1073741824");
  CHECK(checks(303_MiB)[0].passed);
  CHECK_FALSE(checks(304_MiB)[0].passed);
  CHECK_FALSE(checks(296_MiB)[0].passed);
  CHECK(checks(300_MiB)[2].detail.find("not compared: the plan is for no card") !=
        std::string::npos);
  plan.inputs.card.cuda_total = 1_GiB;
  plan.inputs.available = 1_GiB - 90_MiB;
  CHECK(checks(300_MiB)[2].passed);
  plan.inputs.available = 1_GiB;
  CHECK(checks(300_MiB)[2].passed);  // within the uncertainty
  CHECK_FALSE(checks(360_MiB)[2].passed);
}

TEST_CASE("of a backend without a device nothing is said of its memory") {
  const auto backend = host_backend();
  const auto report = run_plan(small_plan(), *backend, {});
  REQUIRE(report.has_value());
  CHECK_FALSE(report->measured.memory.has_value());
  for (const Check& check : report->checks) CHECK(check.name != "device memory");
  CHECK(report->remarks.empty());
}

}  // namespace stowage::test
