// A step's memory in a picture's columns: nothing of the peak is lost.
#include "answers/report/memory_columns.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/hand_made_plan.hpp"

namespace stowage {

namespace {

MemoryOverStep hand_made_memory() {
  return memory_over_step(hand_made::plan(), MemoryKind::device);
}

}  // namespace

TEST_CASE("with room for every node there is a column a node") {
  const MemoryOverStep memory = hand_made_memory();
  const std::vector<MemoryColumn> columns = memory_columns(memory, 100);
  REQUIRE(columns.size() == memory.live.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    CHECK(columns[i].live == memory.live[i]);
    CHECK(columns[i].reserved == memory.reserved[i]);
    CHECK(columns[i].nodes == StepRange::single(static_cast<std::int32_t>(i)));
    CHECK(columns[i].at == static_cast<std::int32_t>(i));
  }
}

TEST_CASE("a column of several nodes is the one at which the most is live") {
  const MemoryOverStep memory = hand_made_memory();
  for (std::size_t most = 1; most <= memory.live.size(); ++most) {
    CAPTURE(most);
    const std::vector<MemoryColumn> columns = memory_columns(memory, most);
    REQUIRE(columns.size() == most);
    CHECK(columns.front().nodes.begin == 0);
    CHECK(columns.back().nodes.end == memory.nodes());
    Bytes largest;
    for (std::size_t i = 0; i < most; ++i) {
      CHECK((i == 0 || columns[i].nodes.begin == columns[i - 1].nodes.end));
      CHECK(columns[i].nodes.contains(columns[i].at));
      CHECK(columns[i].live == memory.live[static_cast<std::size_t>(columns[i].at)]);
      for (std::int32_t node = columns[i].nodes.begin; node < columns[i].nodes.end; ++node) {
        CHECK(memory.live[static_cast<std::size_t>(node)] <= columns[i].live);
      }
      largest = std::max(largest, columns[i].live);
    }
    CHECK(largest == memory.peak_bytes());
  }
}

TEST_CASE("a step without nodes has no columns") {
  CHECK(memory_columns(MemoryOverStep(), 10).empty());
}

TEST_CASE("what stays for the whole step is stacked first, and absent classes are left out") {
  using enum StorageClass;
  CHECK(stacked_classes(hand_made_memory()) ==
        std::vector<StorageClass>{parameter, gradient, input, activation, activation_gradient,
                                  temporary, workspace});
}

}  // namespace stowage
