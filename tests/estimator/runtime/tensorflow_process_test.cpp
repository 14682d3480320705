// TensorFlow's runtime as check and batch see it.
#include <doctest/doctest.h>

#include "estimator/check/batch_search.hpp"
#include "estimator/check/check.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

Card gtx960() {
  Card card = generic_card(2002_MiB, 5.2);
  card.context = 149_MiB;
  return card;
}

std::shared_ptr<const StepGraph> training(const std::string& model) {
  return testing::lowered(testing::shipped(model), {.kernels = kernel_set_of(Runtime::tensorflow),
                                                    .optimizer = {.name = "adam"}});
}

CheckReport checked(std::int64_t batch, const CheckSettings& settings) {
  const auto source = rule_workspace_source(5.2);
  const auto step = size_step(training("mnist-cnn"), batch, *source);
  REQUIRE(step.has_value());
  const CheckReport report = check(*step, gtx960(), settings);
  CHECK(completes(*step, gtx960(), settings) == report.fits);
  return report;
}

CheckSettings with(const TensorFlowMemory& memory, Bytes in_use = {}) {
  return {.runtime = Runtime::tensorflow, .in_use = in_use, .tensorflow = memory};
}

class Greedy : public WorkspaceSource {
 public:
  WorkspaceAnswer engines(const ConvolutionQuery&) override {
    return {.engines = {{"greedy", 5_GiB}, {"frugal", 1_KiB}}};
  }
};

}  // namespace

// A user measured 1,455 MiB on such a card, and 697 MiB with growth: docs/tensorflow.md.
TEST_CASE("mnist-cnn on a GTX 960: the limit, the context and 64 MiB for each library") {
  const CheckReport limited = checked(64, with({.logical_devices = {1024_MiB}}));
  CHECK(limited.fits);
  CHECK(limited.reserved_bytes() == 1024_MiB);
  CHECK(limited.device_bytes == 1024_MiB + 149_MiB + 128_MiB);
  CHECK(limited.phases.front().device_bytes == 1024_MiB + 149_MiB);
  const CheckReport growing = checked(64, with({.allow_growth = true}));
  CHECK(growing.fits);
  // Autotuning: copies of results and scratch, 16 MiB of redzones around each.
  CHECK(growing.reserved_bytes() == 74_MiB);
  CHECK(growing.tensor_bytes() == limited.tensor_bytes());
}

TEST_CASE("the whole card by default: 225 MiB are left, and the libraries fit in them") {
  const CheckReport report = checked(64, with({}, 329_MiB));
  CHECK(report.fits);
  REQUIRE(report.run.pools.has_value());
  REQUIRE(report.run.pools->size() == 1);
  CHECK(report.run.pools->front().name == "GPU:0");
  // 2,002 less 329, the context in whole pages (150) and 225.
  CHECK(report.run.pools->front().limit == 1298_MiB);
  CHECK(report.run.pools->front().asked == 1298_MiB);
}

// 2,002 less 329 and the context of 149.
TEST_CASE("no pool is larger than what the card has beside the context and others") {
  const Bytes left = 1524_MiB;
  for (const std::int64_t batch : {64, 512, 8192}) {
    for (const bool growth : {false, true}) {
      for (const std::vector<Bytes>& asked : {std::vector<Bytes>{}, std::vector<Bytes>{6240_MiB},
                                              std::vector<Bytes>{1024_MiB, 1024_MiB}}) {
        CAPTURE(batch);
        CAPTURE(growth);
        CAPTURE(asked.size());
        const CheckReport report =
            checked(batch, with({.logical_devices = asked, .allow_growth = growth}, 329_MiB));
        REQUIRE(report.run.pools.has_value());
        Bytes limits, pools;
        for (std::size_t i = 0; i < report.run.pools->size(); ++i) {
          const LogicalDevice& device = (*report.run.pools)[i];
          if (!asked.empty()) CHECK(device.asked == asked[i]);
          CHECK(device.pool <= device.limit);
          limits += device.limit;
          pools += device.pool;
        }
        CHECK(limits <= left);
        CHECK(pools <= left);
      }
    }
  }
}

TEST_CASE("a fraction that leaves the libraries no room does not fit, and what would is said") {
  const CheckReport report = checked(64, with({.per_process_fraction = 0.87}));
  CHECK_FALSE(report.fits);
  CHECK(report.headroom < 0_B);
  REQUIRE(report.run.failure.has_value());
  REQUIRE(report.run.failure->at.library.has_value());
  CHECK(report.run.failure->at.library->library.name == "cuBLAS");
  CHECK(report.run.failure->message ==
        "in step 1, while fc1.forward runs: failed to create cublas handle: "
        "CUBLAS_STATUS_NOT_INITIALIZED (cuBLAS wants 64.0 MiB, and 46.0 MiB are left)");
  CHECK(report.culprit == "cuBLAS finds no room beside what TensorFlow has taken, 1.7 GiB");
  CHECK(report.run.would_do.limit == 1723_MiB);
  CHECK(report.run.would_do.growth);
  CHECK(checked(64, with({.logical_devices = {1723_MiB}})).fits);
}

TEST_CASE("a pool that is too small is told how large it should be") {
  const CheckReport report = checked(512, with({.logical_devices = {16_MiB}}));
  CHECK_FALSE(report.fits);
  CHECK(report.headroom > 0_B);
  REQUIRE(report.run.failure.has_value());
  CHECK_FALSE(report.run.failure->at.library.has_value());
  CHECK(report.run.failure->message.find(
            "Allocator (GPU_0_bfc) ran out of memory trying to allocate ") != std::string::npos);
  CHECK_FALSE(report.run.would_do.growth);
  const Bytes least = report.reserved_bytes();
  CHECK(report.run.would_do.limit == Bytes(least.count() >> 20 << 20));
  CHECK(checked(512, with({.logical_devices = {least}})).fits);
  CHECK_FALSE(checked(512, with({.logical_devices = {Bytes(least.count() / 100 * 98)}})).fits);
}

TEST_CASE("what is to stay free counts against a pool that fits otherwise") {
  CheckSettings settings = with({.logical_devices = {1024_MiB}});
  settings.reserve = 800_MiB;
  const CheckReport report = checked(64, settings);
  CHECK_FALSE(report.fits);
  CHECK_FALSE(report.run.failure.has_value());
  CHECK(report.run.would_do.limit == 923_MiB);
  CHECK(report.run.would_do.growth);
}

TEST_CASE("virtual GPUs: tensors of one replica, bytes of all pools") {
  const CheckReport one = checked(32, with({.logical_devices = {256_MiB}}));
  const CheckReport two = checked(32, with({.logical_devices = {256_MiB, 256_MiB}}));
  CHECK(two.fits);
  CHECK(two.tensor_bytes() == one.tensor_bytes());
  CHECK(two.device_bytes == one.device_bytes + 256_MiB);
  CHECK(two.host_bytes == 2 * one.host_bytes);
  Bytes rows;
  for (const RuntimeRow& row : two.runtime_rows) rows += row.bytes;
  CHECK(two.tensor_bytes() + rows == two.device_bytes);
}

TEST_CASE("the batch search runs TensorFlow's pool: the largest fits, the next does not") {
  const auto source = rule_workspace_source(5.2);
  const CheckSettings settings = with({.logical_devices = {64_MiB}});
  const auto found = find_batch(training("mnist-cnn"), gtx960(), {.check = settings}, *source);
  REQUIRE(found.has_value());
  REQUIRE(found->largest > 0);
  CHECK(found->largest_safe <= found->largest);
  CHECK(checked(found->largest, settings).fits);
  CHECK_FALSE(checked(found->largest + 1, settings).fits);
}

TEST_CASE("no batch is tried where the libraries find no room") {
  const auto source = rule_workspace_source(5.2);
  const auto found = find_batch(training("mnist-cnn"), gtx960(),
                                {.check = with({.per_process_fraction = 0.87})}, *source);
  REQUIRE(found.has_value());
  CHECK(found->largest == 0);
  CHECK(found->ceiling == 0);
  REQUIRE(found->at_one.has_value());
  REQUIRE(found->at_one->run.failure->at.library.has_value());
  CHECK(found->at_one->run.failure->at.library->library.name == "cuBLAS");
}

TEST_CASE("engines above TensorFlow's scratch limit are left out, and only there") {
  Greedy greedy;
  RuntimeWorkspaceSource limited(greedy, Runtime::tensorflow);
  RuntimeWorkspaceSource unlimited(greedy, Runtime::pytorch);
  REQUIRE(limited.engines({}).engines.size() == 1);
  CHECK(limited.engines({}).engines.front().name == "frugal");
  CHECK(unlimited.engines({}).engines.size() == 2);
}

}  // namespace stowage
