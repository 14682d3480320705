// The clean run, for the times: what happens between its first kernel or copy and its last, and how
// the backend's events become times.
#include <doctest/doctest.h>

#include "gpu_probe/run/executor.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"
#include "tests/gpu_probe/run/wrapped_backend.hpp"

namespace stowage::test {
namespace {

/// Counts accesses to the GPU's memory between the first kernel or copy and synchronize().
class WatchedBackend final : public WrappedBackend {
 public:
  [[nodiscard]] int accesses() const { return accesses_; }

  Result<void> allocate(const ArenaSizes& sizes) override {
    accesses_ = 0;
    return WrappedBackend::allocate(sizes);
  }
  Result<Ticket> run(const KernelCall& call) override {
    working_ = true;
    return WrappedBackend::run(call);
  }
  Result<void> synchronize() override {
    working_ = false;
    return WrappedBackend::synchronize();
  }
  Result<void> write_gpu(std::byte* gpu, const std::byte* source, Bytes bytes) override {
    accesses_ += working_ ? 1 : 0;
    return WrappedBackend::write_gpu(gpu, source, bytes);
  }
  Result<void> read_gpu(std::byte* to, const std::byte* gpu, Bytes bytes) override {
    accesses_ += working_ ? 1 : 0;
    return WrappedBackend::read_gpu(to, gpu, bytes);
  }
  Result<void> fill_gpu(std::byte* gpu, std::byte value, Bytes bytes) override {
    accesses_ += working_ ? 1 : 0;
    return WrappedBackend::fill_gpu(gpu, value, bytes);
  }

 private:
  bool working_ = false;
  int accesses_ = 0;
};

}  // namespace

TEST_CASE("a clean run has nothing but kernels and copies between its first and its last") {
  const StepGraph graph = step_of(small_cnn, sgd_momentum());
  const Plan plan = random_plan(graph, 2, 11);
  WatchedBackend backend;
  const auto poisoned = execute(plan, backend, {});
  REQUIRE(poisoned.has_value());
  CHECK(backend.accesses() > 0);
  const auto clean = execute(plan, backend, {.clean = true});
  REQUIRE(clean.has_value());
  CHECK(backend.accesses() == 0);
  CHECK(clean->completed);
  CHECK(clean->violations.empty());
  // Its results at the step's end are those of the poisoned run.
  CHECK(!clean->results.empty());
  for (const auto& [storage, value] : clean->results) {
    CHECK((value == poisoned->results.at(storage)));
  }
}

TEST_CASE("an execution has the times of all its kernels and copies") {
  const StepGraph graph = step_of(small_cnn, sgd_momentum());
  const Plan plan = random_plan(graph, 2, 11);
  const auto backend = host_backend();
  for (const CopyTiming timing : {CopyTiming{false, false}, CopyTiming{true, true}}) {
    const auto done = execute(plan, *backend, {.timing = timing});
    REQUIRE(done.has_value());
    REQUIRE(done->times.size() == 1);
    const StepTimes& times = done->times.front();
    REQUIRE(times.nodes.size() == graph.nodes.size());
    REQUIRE(times.copies.size() == plan.transfers.size());
    for (const TimeSpan& node : times.nodes) CHECK(node.begin <= node.end);
    // Each processor runs one kernel after the other: the GPU in the step's order.
    for (const Device device : {Device::gpu, Device::cpu}) {
      std::vector<TimeSpan> lane;
      for (std::size_t i = 0; i < times.nodes.size(); ++i) {
        if (device_of(plan, plan.nodes[i]) == device) lane.push_back(times.nodes[i]);
      }
      if (device == Device::cpu) std::ranges::sort(lane, {}, &TimeSpan::begin);
      for (std::size_t i = 1; i < lane.size(); ++i) CHECK(lane[i - 1].end <= lane[i].begin);
    }
    for (const TimeSpan& copy : times.copies) CHECK(copy.begin <= copy.end);
  }
}

TEST_CASE("a step lasts from the first beginning to the last end, and lanes are added up apart") {
  const Plan plan = random_plan(step_of(small_cnn, sgd_momentum()), 2, 11);
  StepTimes times{.nodes = {{2, 3}, {3, 7}}};
  double uploads = 0, downloads = 0;
  for (const Transfer& transfer : plan.transfers) {
    const bool upload = direction_of(plan, transfer) == Direction::h2d;
    times.copies.push_back(upload ? TimeSpan{1, 2.5} : TimeSpan{6, 9});
    (upload ? uploads : downloads) += upload ? 1.5 : 3;
  }
  REQUIRE(uploads > 0);
  REQUIRE(downloads > 0);
  CHECK(step_seconds(times) == 8);
  CHECK(kernel_seconds(times) == 5);
  CHECK(copy_seconds(times, plan, Direction::h2d) == uploads);
  CHECK(copy_seconds(times, plan, Direction::d2h) == downloads);
  CHECK(step_seconds({}) == 0);
}

}  // namespace stowage::test
