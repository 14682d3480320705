#include "planner/plan/lanes.hpp"

#include <doctest/doctest.h>

using namespace stowage;

namespace {

Transfer up(std::int32_t begin, std::int32_t end) {
  return {StorageId{0}, upload_link, begin, end};
}
Transfer down(std::int32_t begin, std::int32_t end) {
  return {StorageId{0}, download_link, begin, end};
}

}  // namespace

TEST_CASE("without copies a step takes its nodes' time") {
  const std::vector<double> nodes = {1, 2, 3};
  const LaneTimeline timeline = simulate_lanes(nodes, {}, {});
  CHECK(timeline.step_seconds == 6);
  CHECK(timeline.nodes[2].begin == 3);
  CHECK(timeline.stall_seconds == 0);
  CHECK(timeline.overlap == 1);
}

TEST_CASE("a copy hides behind the nodes that it may run beside") {
  const std::vector<double> nodes = {1, 2, 3}, copies = {2.5};
  SUBCASE("over two nodes") {
    const std::vector<Transfer> transfers = {up(0, 2)};
    const LaneTimeline timeline = simulate_lanes(nodes, transfers, copies);
    CHECK(timeline.step_seconds == 6);
    CHECK(timeline.overlap == 1);
  }
  SUBCASE("over one node it stalls the next") {
    const std::vector<Transfer> transfers = {up(1, 2)};
    const LaneTimeline timeline = simulate_lanes(nodes, transfers, copies);
    CHECK(timeline.step_seconds == 6.5);
    CHECK(timeline.stalls == std::vector<double>{0, 0, 0.5});
    CHECK(timeline.stall_seconds == 0.5);
    CHECK(timeline.overlap == doctest::Approx(0.8));
  }
  SUBCASE("over one node, in fractions of a second") {
    const std::vector<double> short_nodes = {0.125, 0.25, 0.375}, short_copies = {0.3125};
    const std::vector<Transfer> transfers = {up(1, 2)};
    const LaneTimeline timeline = simulate_lanes(short_nodes, transfers, short_copies);
    CHECK(timeline.transfer_seconds == 0.3125);
    CHECK(timeline.stall_seconds == 0.0625);
    CHECK(timeline.overlap == doctest::Approx(0.8));
  }
  SUBCASE("over none") {
    const std::vector<Transfer> transfers = {up(1, 1)};
    CHECK(simulate_lanes(nodes, transfers, copies).stalls == std::vector<double>{0, 2.5, 0});
  }
  SUBCASE("after the last node") {
    const std::vector<Transfer> transfers = {down(3, 3)};
    const LaneTimeline timeline = simulate_lanes(nodes, transfers, copies);
    CHECK(timeline.step_seconds == 8.5);
    CHECK(timeline.stalls == std::vector<double>{0, 0, 0});
    CHECK(timeline.stall_seconds == 2.5);
  }
}

TEST_CASE("the two directions run beside each other, one direction in its order") {
  const std::vector<double> nodes = {1, 1, 1, 1}, copies = {2, 2, 2};
  const std::vector<Transfer> transfers = {up(0, 4), down(0, 4), up(0, 4)};
  const LaneTimeline timeline = simulate_lanes(nodes, transfers, copies);
  CHECK(timeline.transfers[0].end == 2);
  CHECK(timeline.transfers[1].end == 2);
  CHECK(timeline.transfers[2].begin == 2);
  CHECK(timeline.step_seconds == 4);
}

TEST_CASE("an upload waits for the downloads that end where it begins") {
  const std::vector<double> nodes = {1, 1, 1}, copies = {3, 1};
  const std::vector<Transfer> transfers = {down(1, 2), up(2, 2)};
  const LaneTimeline timeline = simulate_lanes(nodes, transfers, copies);
  CHECK(timeline.transfers[0].end == 4);
  CHECK(timeline.transfers[1].begin == 4);
  CHECK(timeline.nodes[2].begin == 5);
  SUBCASE("and for no others") {
    const std::vector<Transfer> later = {down(1, 3), up(2, 2)};
    CHECK(simulate_lanes(nodes, later, copies).transfers[1].begin == 2);
  }
}

TEST_CASE("the CPU's nodes run beside the GPU's, from where they are issued to where awaited") {
  // Steps 0 to 3 on the GPU, 4 on the CPU.
  const std::vector<double> nodes = {1, 1, 1, 1, 2.5};
  const auto step = [&](StepRange window) {
    const std::vector<StepRange> windows = {{}, {}, {}, {}, window};
    return simulate_lanes(nodes, {}, {}, windows);
  };
  CHECK(step({4, 5}).step_seconds == 6.5);
  CHECK(step({2, 5}).step_seconds == 4.5);
  const LaneTimeline early = step({1, 5});
  CHECK(early.step_seconds == 4);
  CHECK(early.nodes[4].begin == 1);
  CHECK(early.nodes[4].end == 3.5);
  CHECK(early.arrivals == std::vector<double>{0, 1, 2, 3, 4, 4});
  CHECK(early.compute_seconds == 6.5);
  CHECK(early.stall_seconds == 0);
}

TEST_CASE("whatever comes after the boundary where a node of the CPU is awaited waits for it") {
  // The CPU's is step 1.
  const std::vector<double> nodes = {1, 4, 1, 1}, copies = {1};
  const auto step = [&](StepRange window, const Transfer& transfer) {
    const std::vector<StepRange> windows = {{}, window, {}, {}};
    const std::vector<Transfer> transfers = {transfer};
    return simulate_lanes(nodes, transfers, copies, windows);
  };
  SUBCASE("nodes") {
    CHECK(step({1, 3}, up(0, 4)).nodes[2].begin == 1);
    CHECK(step({1, 3}, up(0, 4)).nodes[3].begin == 5);
  }
  SUBCASE("and copies of either direction") {
    CHECK(step({1, 3}, up(2, 4)).transfers[0].begin == 1);
    CHECK(step({1, 3}, up(3, 4)).transfers[0].begin == 5);
    CHECK(step({1, 3}, down(3, 4)).transfers[0].begin == 5);
  }
  SUBCASE("and it waits for the copies that end where it is issued") {
    CHECK(step({1, 4}, down(1, 1)).nodes[1].begin == 2);
    CHECK(step({1, 4}, up(0, 2)).nodes[1].begin == 1);
  }
}

TEST_CASE("the CPU's nodes run in the order of issue, not of the sequence") {
  const std::vector<double> nodes = {1, 1, 2, 3};
  const std::vector<StepRange> windows = {{}, {}, {2, 4}, {1, 4}};
  const LaneTimeline timeline = simulate_lanes(nodes, {}, {}, windows);
  CHECK(timeline.nodes[3].begin == 1);
  CHECK(timeline.nodes[2].begin == 4);
  CHECK(timeline.step_seconds == 6);
}
