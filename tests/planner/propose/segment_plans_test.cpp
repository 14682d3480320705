// Inference in chunks, segment by segment.
#include "planner/propose/segment_plans.hpp"

#include <doctest/doctest.h>

#include <random>

#include "estimator/rewrite/segments.hpp"
#include "planner/explain/plan_words.hpp"
#include "planner/propose/proposals.hpp"
#include "tests/support/pinned_plans.hpp"
#include "tests/support/plan_mistakes.hpp"

namespace stowage {
namespace {

/// Large activations in front, 64 MiB of weights behind.
std::string wide_network() {
  return R"(model: wide
inputs:
  image: {shape: [batch, 8, 32, 32]}
layers:
  - conv2d: {channels: 16, kernel: 3, padding: 1}
  - relu
  - conv2d: {channels: 16, kernel: 3, padding: 1}
  - relu
  - max_pool2d: {kernel: 2}
  - flatten
  - linear: {features: 2048}
  - relu
  - linear: {features: 2048}
  - relu
  - linear: {features: 2048}
)";
}

PlanRequest wide_request(Bytes budget) {
  PlanRequest request = testing::small_request(budget);
  const ChosenStep step{.lowering = {.mode = Mode::inference}};
  request.document = make_document(testing::described(wide_network().c_str()), step,
                                   Runtime::stowage, {}, step_alone)
                         .value();
  request.batch = WholeBatch(1024);
  request.levers.operators = false;
  return request;
}

}  // namespace

TEST_CASE("borders leave no segment too many weights, and the fewest bytes cross") {
  std::mt19937 random(9);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t count = 1 + random() % 9;
    SegmentCosts costs;
    for (std::size_t i = 0; i < count; ++i) {
      costs.weights.emplace_back(random() % 5);
      costs.crossing.emplace_back(random() % 7);
    }
    const Bytes limit(static_cast<std::int64_t>(1 + random() % 12));
    std::vector<Bytes> beside;
    for (std::size_t i = 0; i < count; ++i) beside.emplace_back(random() % 4);
    // Every set of borders.
    std::optional<Bytes> least;
    for (unsigned set = 0; set < 1u << (count - 1); ++set) {
      Bytes crossing, weights = costs.weights[0], most = beside[0];
      bool fits = weights + most <= limit;
      for (std::size_t i = 1; i < count; ++i) {
        const bool border = (set >> (i - 1) & 1) != 0;
        if (border) crossing += costs.crossing[i];
        weights = border ? costs.weights[i] : weights + costs.weights[i];
        most = border ? beside[i] : std::max(most, beside[i]);
        fits = fits && weights + most <= limit;
      }
      if (fits && (!least || crossing < *least)) least = crossing;
    }
    const auto borders = cheapest_borders(costs, beside, limit);
    REQUIRE(borders.has_value() == least.has_value());
    if (!borders) continue;
    Bytes crossing;
    for (const std::int32_t border : *borders) {
      crossing += costs.crossing[static_cast<std::size_t>(border)];
    }
    CHECK(crossing == *least);
  }
}

TEST_CASE("where neither weights nor activations fit, chunks go through segments") {
  const auto workspaces = rule_workspace_source(8.6);
  const PlanRequest request = wide_request(40_MiB);
  const ProposalOptions options{.work = {20'000'000}};
  const auto plans = make_plans(request, *workspaces, options);
  REQUIRE(plans.has_value());
  const Plan& plan = plans->back();
  CAPTURE(plan.name);
  REQUIRE(plan.name.starts_with("segments-"));
  for (const Plan& other : *plans) {
    CHECK(plan.totals.step_seconds <= other.totals.step_seconds);
  }
  CHECK(plan.totals.arena <= 40_MiB);
  const int segments = segment_count(*plan.step.graph);
  CHECK(segments > 1);
  CHECK(plan.name == "segments-" + std::to_string(segments) + "-chunk-" +
                         std::to_string(plan.step.graph->settings.micro_batches));
  CHECK(plan_in_words(plan).find(", all of them through one of " + std::to_string(segments) +
                                 " segments of the network before the next") != std::string::npos);
  CHECK(testing::plan_mistakes(plan) == "");
}

TEST_CASE("segments are for an inference whose weights do not fit") {
  const auto workspaces = rule_workspace_source(8.6);
  const ProposalOptions options{.work = {20'000'000}};
  const auto has_segments = [&](const PlanRequest& request) {
    const Planning planning(request, *workspaces, options);
    return segments_plan(planning, make_case(planning, planning.document.graph).value())
        .has_value();
  };
  CHECK(has_segments(wide_request(40_MiB)));
  CHECK_FALSE(has_segments(wide_request(256_MiB)));
  CHECK_FALSE(has_segments(testing::small_request(1_MiB)));  // trains
  PlanRequest fixed = wide_request(40_MiB);
  fixed.document.fixed_batch = true;
  CHECK_FALSE(has_segments(fixed));
}

}  // namespace stowage
