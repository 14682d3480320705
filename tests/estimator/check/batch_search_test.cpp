#include "estimator/check/batch_search.hpp"

#include <doctest/doctest.h>

#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

/// Engines that want more at some batches than at larger ones, as cuDNN's do.
class Capricious : public WorkspaceSource {
 public:
  WorkspaceAnswer engines(const ConvolutionQuery& query) override {
    const std::int64_t batch = query.x.front();
    Bytes operands;
    for (const auto* shape : {&query.x, &query.w, &query.y}) {
      Bytes bytes(4);
      for (const std::int64_t dimension : *shape) bytes = bytes * dimension;
      operands += bytes;
    }
    const Bytes least = batch % 7 == 3 ? 5 * operands : operands;
    return {.engines = {{"first", 3 * least}, {"least", least}}, .origin = WorkspaceOrigin::rule};
  }
};

std::shared_ptr<const StepGraph> step_of(const std::string& model) {
  return testing::lowered(testing::shipped(model), {.kernels = KernelSet::pytorch});
}

bool fits(const std::shared_ptr<const StepGraph>& graph, std::int64_t batch, const Card& card,
          const CheckSettings& settings, WorkspaceSource& source) {
  const auto step = size_step(graph, batch, source);
  REQUIRE(step.has_value());
  return check(*step, card, settings).fits;
}

}  // namespace

TEST_CASE("the largest batch is the largest that check passes, engines being capricious") {
  Capricious source;
  const auto graph = step_of("mnist-cnn");
  for (const Bytes total : {420_MiB, 431_MiB, 437_MiB, 440_MiB, 452_MiB}) {
    CAPTURE(total.count());
    const Card card = generic_card(total);
    const auto report = find_batch(graph, card, {}, source);
    REQUIRE(report.has_value());
    REQUIRE(report->largest > 0);
    std::int64_t largest = 0, safe = 0;
    bool unbroken = true;
    for (std::int64_t batch = 1; batch <= report->ceiling + 20; ++batch) {
      const bool fit = fits(graph, batch, card, {}, source);
      unbroken = unbroken && fit;
      if (fit) largest = batch;
      if (unbroken) safe = batch;
    }
    CHECK(report->largest == largest);
    CHECK(report->largest_safe == safe);
    CHECK(report->recommended <= safe);
    CHECK((report->recommended % 8 == 0 || safe < 8));
    CHECK(report->at_recommended->fits);
    CHECK(report->curve.back().batch == largest);
  }
}

TEST_CASE("where not even one fits, the report says what takes the room") {
  Capricious source;
  const auto report = find_batch(step_of("vgg16"), generic_card(1_GiB), {}, source);
  REQUIRE(report.has_value());
  CHECK(report->largest == 0);
  CHECK(report->recommended == 0);
  REQUIRE(report->at_one.has_value());
  CHECK_FALSE(report->at_one->fits);
}

TEST_CASE("accumulation reaches the global batch exactly") {
  Capricious source;
  BatchSettings settings;
  settings.global_batch = 96;
  settings.accumulating = testing::lowered(testing::shipped("mnist-cnn"),
                                           {.kernels = KernelSet::pytorch, .micro_batches = 2});
  const auto report = find_batch(step_of("mnist-cnn"), generic_card(440_MiB), settings, source);
  REQUIRE(report.has_value());
  REQUIRE(report->accumulation.has_value());
  CHECK(report->accumulation->micro_batch <= report->largest_safe);
  CHECK(report->accumulation->micro_batch * report->accumulation->steps == 96);
}

}  // namespace stowage
