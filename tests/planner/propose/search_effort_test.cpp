// What more work, less work and other programs do to the plans of a request.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "estimator/base/parallel.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/propose/proposals.hpp"
#include "planner/propose/search_passes.hpp"
#include "planner/propose/step_plans.hpp"
#include "tests/support/pinned_plans.hpp"

namespace stowage {
namespace {

// Each of these ends a search somewhere else.
constexpr std::int64_t scarce[] = {300, 3'000, 30'000, 300'000};

std::vector<std::string> files_of(const PlanRequest& request, const ProposalOptions& options) {
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans = make_plans(request, *workspaces, options);
  std::vector<std::string> files;
  if (!plans) return files;
  for (const Plan& plan : *plans) files.push_back(write_plan(plan));
  return files;
}

HostRank best_rank(const PlanRequest& request, const std::vector<Plan>& plans) {
  HostRank best{true, std::numeric_limits<double>::infinity()};
  for (const Plan& plan : plans) {
    best = std::min(best, host_rank(request.host, plan.totals, plan.totals.step_seconds));
  }
  return best;
}

/// With the bytes over PCIe in place of seconds.
HostRank fewest_bytes(const PlanRequest& request, const std::vector<Plan>& plans) {
  HostRank best{true, std::numeric_limits<double>::infinity()};
  for (const Plan& plan : plans) {
    const bool lacks = !host_holds(request.host, plan.totals);
    best = std::min(best, {lacks, static_cast<double>(pcie_bytes(plan).count())});
  }
  return best;
}

}  // namespace

TEST_CASE("a search finds the same whatever runs beside it, wherever its work ends") {
  for (const std::int64_t work : scarce) {
    CAPTURE(work);
    const PlanRequest request = testing::small_request(1_MiB);
    const ProposalOptions options{.work = {work}};
    const std::vector<std::string> alone = files_of(request, options);
    REQUIRE_FALSE(alone.empty());
    // So many at once that searches within a search have no threads of their own.
    std::vector<std::vector<std::string>> beside(2 * thread_count());
    for_each_index(beside.size(), [&](std::size_t i) { beside[i] = files_of(request, options); });
    for (const std::vector<std::string>& files : beside) CHECK(files == alone);
  }
}

TEST_CASE("more effort never finds a longer step, or more bytes where these are minimised") {
  int better = 0;
  for (const std::int64_t work : scarce) {
    for (const Bytes budget : {512_KiB, 1_MiB, 2_MiB}) {
      CAPTURE(work);
      CAPTURE(budget.count());
      const PlanRequest request = testing::small_request(budget);
      for (const bool least_pcie : {false, true}) {
        CAPTURE(least_pcie);
        HostRank rank{true, std::numeric_limits<double>::infinity()};
        for (const int effort : {1, 2, 4}) {
          const auto workspaces = rule_workspace_source(8.6);
          const auto plans = make_plans(
              request, *workspaces, {.work = {work}, .effort = effort, .least_pcie = least_pcie});
          if (!plans) continue;
          for (const Plan& plan : *plans) {
            CHECK((plan.minimised == Minimised::bytes) == (plan.name == "min-pcie"));
          }
          const HostRank found =
              least_pcie ? fewest_bytes(request, *plans) : best_rank(request, *plans);
          CHECK(found <= rank);
          if (effort > 1 && found < rank) ++better;
          rank = found;
        }
      }
    }
  }
  CHECK(better > 0);
}

TEST_CASE("of two passes' plans that are as good, the one nearer to its bound is kept") {
  const PlanRequest request = testing::small_request(512_KiB);
  const auto made = make_plans(request, *rule_workspace_source(8.6), {});
  REQUIRE(made.has_value());
  for (const Minimised minimised : {Minimised::seconds, Minimised::bytes}) {
    CAPTURE(to_string(minimised));
    Plan near = made->front();
    near.minimised = minimised;
    near.totals.pcie_lower_bound = pcie_bytes(near);
    near.totals.step_lower_bound_seconds = near.totals.step_seconds;
    REQUIRE(near.totals.pcie_lower_bound > Bytes());
    Plan far = near;
    far.totals.pcie_lower_bound = {};
    far.totals.step_lower_bound_seconds = 0;
    for (const auto& [first, second] : {std::pair(near, far), std::pair(far, near)}) {
      SearchPasses passes(request.host, false);
      passes.take(std::vector{first}, {});
      passes.take(std::vector{second}, {});
      const auto kept = std::move(passes).plans();
      REQUIRE(kept.has_value());
      REQUIRE(kept->size() == 1);
      CHECK(kept->front().totals.pcie_lower_bound == near.totals.pcie_lower_bound);
      CHECK(kept->front().totals.step_lower_bound_seconds == near.totals.step_lower_bound_seconds);
    }
  }
}

TEST_CASE("a search says what it did and what it left out") {
  const PlanRequest request = testing::small_request(1_MiB);
  const auto workspaces = rule_workspace_source(8.6);
  SearchOutcome outcome;
  const auto outcome_of = [&](ProposalOptions options) {
    options.ended = [&](const SearchOutcome& found) { outcome = found; };
    REQUIRE(make_plans(request, *workspaces, options).has_value());
    return outcome;
  };
  const SearchOutcome whole = outcome_of({});
  CHECK(whole.limit == usual_work);
  CHECK(whole.spent.units > 0);
  CHECK(whole.untried.empty());
  const SearchOutcome twice = outcome_of({.effort = 2});
  CHECK(twice.limit.units == 3 * usual_work.units);
  CHECK(twice.spent.units > whole.spent.units);
  const SearchOutcome little = outcome_of({.work = {1}});
  CHECK_FALSE(little.untried.empty());
  CHECK(std::ranges::is_sorted(little.untried));
  CHECK_FALSE(little.cut_short.empty());
  const SearchOutcome late = outcome_of({.out_of_time = [] { return true; }});
  CHECK(late.untried == little.untried);
}

}  // namespace stowage
