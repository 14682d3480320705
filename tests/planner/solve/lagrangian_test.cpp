#include "planner/solve/lagrangian.hpp"

#include <doctest/doctest.h>

#include "planner/solve/placement_search.hpp"
#include "tests/planner/solve/random_problems.hpp"

namespace stowage {

TEST_CASE("a placement keeps to restrictions where none says the opposite") {
  Random random(1);
  int gaps = 0;
  for (int round = 0; round < 20; ++round) {
    const ResidencyProblem problem = random_problem(random);
    const Placement placement = nothing_resident(
        make_cut_model(problem, std::vector<Bytes>(problem.operations.size(), 1_GiB)));
    const Restrictions none = restrictions_of(problem);
    CHECK(keeps_to(PackedPlacement(placement), none));
    for (std::size_t v = 0; v < none.device.size(); ++v) {
      Restrictions pinned = none;
      const bool on_gpu = placement.device[v] == Device::gpu;
      pinned.device[v] = on_gpu ? Pin::gpu : Pin::cpu;
      CHECK(keeps_to(PackedPlacement(placement), pinned));
      pinned.device[v] = on_gpu ? Pin::cpu : Pin::gpu;
      CHECK_FALSE(keeps_to(PackedPlacement(placement), pinned));
    }
    for (std::size_t item = 0; item < none.gap.size(); ++item) {
      for (std::size_t gap = 0; gap < none.gap[item].size(); ++gap) {
        Restrictions pinned = none;
        pinned.gap[item][gap] = GapPin::dropped;
        CHECK(keeps_to(PackedPlacement(placement), pinned));
        pinned.gap[item][gap] = GapPin::resident;
        CHECK_FALSE(keeps_to(PackedPlacement(placement), pinned));
        ++gaps;
      }
    }
  }
  CHECK(gaps > 0);
}

TEST_CASE("moves make placements cheaper, and never more expensive") {
  Random random(7);
  WorkBudget unlimited;
  int better = 0;
  for (int round = 0; round < 300; ++round) {
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 8) << 20);
    const CutModel model =
        make_cut_model(problem, std::vector<Bytes>(problem.operations.size(), budget));
    const PlacementIndex index(model);
    const auto cost_after = [&](std::int64_t effort) {
      PlacementSearch search(model, index, nothing_resident(model), {}, effort, unlimited);
      REQUIRE(search.repair());
      search.fill();
      search.improve();
      const Evaluation evaluation = evaluate(problem, search.state().placement());
      REQUIRE(evaluation.consistent);
      REQUIRE(evaluation.peak <= budget);
      return evaluation.cost_seconds;
    };
    const double filled = cost_after(0), improved = cost_after(10'000);
    CHECK(improved <= filled);
    better += improved < filled ? 1 : 0;
  }
  CHECK(better > 5);
}

}  // namespace stowage
