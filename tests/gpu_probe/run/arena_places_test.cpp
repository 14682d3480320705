#include "gpu_probe/run/arena_places.hpp"

#include <doctest/doctest.h>

#include "estimator/arena/arena.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

struct Block {
  StepRange steps;
  Bytes begin, end;
};

/// All residences and workspaces on the GPU, with their canaries.
std::vector<Block> padded_blocks(const Plan& plan, const ArenaPlaces& places) {
  std::vector<Block> blocks;
  const auto add = [&](StepRange steps, Bytes offset, Bytes bytes) {
    blocks.push_back({steps, offset - places.canary, offset + bytes + places.canary});
  };
  const std::vector<Residence>& gpu = plan.in(gpu_memory);
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    add(gpu[i].steps, places.gpu[i], plan.bytes(gpu[i].storage));
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const auto step = static_cast<std::int32_t>(i);
    if (plan.nodes[i].workspace == Bytes(0)) continue;
    add({step, step + 1}, places.workspace[i], plan.nodes[i].workspace);
  }
  return blocks;
}

}  // namespace

TEST_CASE("exact places are the plan's") {
  const Plan plan = random_plan(step_of(small_cnn, sgd_momentum()), 2, 3);
  const ArenaPlaces places = exact_places(plan);
  CHECK(places.gpu_arena == plan.totals.arena);
  CHECK(places.canary == 0_B);
  const std::vector<Residence>& gpu = plan.in(gpu_memory);
  const std::vector<Residence>& host = plan.in(pinned_memory);
  for (std::size_t i = 0; i < gpu.size(); ++i) CHECK(places.gpu[i] == gpu[i].offset);
  for (std::size_t i = 0; i < host.size(); ++i) CHECK(places.host[i] == host[i].offset);
}

TEST_CASE("padded places lie apart, canaries included, and within the arena") {
  const Plan plan = random_plan(step_of(small_cnn, sgd_momentum()), 2, 3);
  const ArenaPlaces places = padded_places(plan);
  const std::vector<Block> blocks = padded_blocks(plan, places);
  REQUIRE(blocks.size() > 50);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    REQUIRE(blocks[i].begin >= 0_B);
    REQUIRE(blocks[i].end <= places.gpu_arena);
    REQUIRE((blocks[i].begin + places.canary).count() % arena_alignment.count() == 0);
    for (std::size_t j = 0; j < i; ++j) {
      const bool together = blocks[i].steps.begin < blocks[j].steps.end &&
                            blocks[j].steps.begin < blocks[i].steps.end;
      const bool apart = blocks[i].end <= blocks[j].begin || blocks[j].end <= blocks[i].begin;
      REQUIRE((!together || apart));
    }
  }
}

}  // namespace stowage::test
