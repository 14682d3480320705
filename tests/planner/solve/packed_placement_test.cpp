#include "planner/solve/packed_placement.hpp"

#include <doctest/doctest.h>

#include "planner/solve/placement_search.hpp"
#include "tests/planner/solve/random_problems.hpp"

namespace stowage {

TEST_CASE("a placement is the same after packing, and its bits are where they are said to be") {
  Random random(3);
  int engines = 0;
  for (int round = 0; round < 200; ++round) {
    const ResidencyProblem problem = random_problem(random);
    const CutModel model =
        make_cut_model(problem, std::vector<Bytes>(problem.operations.size(), 1_GiB));
    const Placement placement = cheapest_placement(model, restrictions_of(problem), {}).greatest;
    const PackedPlacement packed(placement);
    REQUIRE(packed.unpacked(problem) == placement);
    CHECK((packed == PackedPlacement(nothing_resident(model))) ==
          (placement == nothing_resident(model)));
    for (std::size_t v = 0; v < placement.device.size(); ++v) {
      CHECK(packed.on_gpu(v) == (placement.device[v] == Device::gpu));
      engines += placement.engine[v] > 0 ? 1 : 0;
    }
    std::size_t place = 0;
    for (const auto& gaps : placement.resident) {
      for (const bool resident : gaps) CHECK(packed.resident(place++) == resident);
    }
  }
  CHECK(engines > 10);
}

}  // namespace stowage
