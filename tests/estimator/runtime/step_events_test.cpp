#include "estimator/runtime/step_events.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "estimator/memory/step_memory.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

using Kind = MemoryEvent::Kind;

/// "+0 -1 ~2": allocated, freed, the previous copy freed, node by node.
std::string text_of(const StepEvents& events) {
  std::string text;
  for (std::size_t node = 0; node + 1 < events.first_event.size(); ++node) {
    if (node > 0) text += "| ";
    for (std::int32_t i = events.first_event[node]; i < events.first_event[node + 1]; ++i) {
      const MemoryEvent& event = events.events[static_cast<std::size_t>(i)];
      CHECK((i < events.first_free[node]) == (event.kind == Kind::allocate));
      text += event.kind == Kind::allocate ? '+' : event.kind == Kind::free ? '-' : '~';
      text += std::to_string(event.entry) + " ";
    }
  }
  return text;
}

std::string steady_text(const std::vector<StorageUse>& uses, std::int32_t steps) {
  return text_of(step_events(uses, uses, steps));
}

}  // namespace

TEST_CASE("what a node makes comes before what it was the last to need goes") {
  CHECK(steady_text({{.bytes = 1_B, .touches = {0, 1}}, {.bytes = 1_B, .touches = {1}}}, 2) ==
        "+0 | +1 -0 -1 ");
}

TEST_CASE("what is there throughout has no events, nor has what is never touched") {
  CHECK(steady_text({{.bytes = 1_B, .touches = {0}, .whole_step = true}, {.bytes = 1_B}}, 2) ==
        "| ");
}

TEST_CASE("an input is there from the start of the step") {
  CHECK(steady_text({{.bytes = 1_B, .touches = {1}, .from_start = true}}, 3) == "+0 | -0 | ");
}

TEST_CASE("what is held to the end is freed there") {
  CHECK(steady_text({{.bytes = 1_B, .touches = {0}, .to_end = true}}, 3) == "+0 | | -0 ");
}

TEST_CASE("a variable's last value goes when the new one has been made, which stays") {
  const StorageUse output{.bytes = 1_B, .touches = {1}, .to_end = true, .previous_until = 2};
  CHECK(steady_text({output}, 3) == "| +0 ~0 | ");
  StorageUse first = output;
  first.previous_until = 0;
  CHECK(text_of(step_events(std::vector{first}, std::vector{output}, 3)) == "| +0 | ");
}

TEST_CASE("optimizer state appears in the first step and stays") {
  const StorageUse later{.bytes = 1_B, .touches = {2}, .whole_step = true};
  const StorageUse first{.bytes = 1_B, .touches = {2}, .to_end = true};
  CHECK(text_of(step_events(std::vector{first}, std::vector{later}, 3)) == "| | +0 ");
}

TEST_CASE("events give the same live bytes as the lifetimes do, in shipped models") {
  for (const char* name : {"mnist-cnn", "resnet18", "gpt2"}) {
    CAPTURE(name);
    const auto graph = testing::lowered(
        testing::shipped(name), {.kernels = KernelSet::pytorch, .optimizer = {.name = "adam"}});
    const auto sized = size_storages(graph, 2);
    REQUIRE(sized.has_value());
    const MemoryRules rules{.granularity = 512_B, .with_workspaces = false};
    const StepMemory memory = step_memory(*sized, rules);
    const StepEvents events = step_events(memory.uses, memory.uses, memory.steps);
    const std::vector<Bytes> live = live_bytes(memory.uses, memory.steps);
    Bytes now;
    for (const StorageUse& use : memory.uses) {
      if (use.whole_step || use.previous_until > 0) now += use.bytes;
    }
    const Bytes before = now;
    std::vector<Bytes> seen;
    for (std::size_t node = 0; node + 1 < events.first_event.size(); ++node) {
      for (std::int32_t i = events.first_event[node]; i < events.first_event[node + 1]; ++i) {
        if (i == events.first_free[node]) seen.push_back(now);
        const MemoryEvent& event = events.events[static_cast<std::size_t>(i)];
        const Bytes bytes = memory.uses[static_cast<std::size_t>(event.entry)].bytes;
        event.kind == Kind::allocate ? now += bytes : now -= bytes;
      }
      if (events.first_free[node] == events.first_event[node + 1]) seen.push_back(now);
    }
    CHECK(seen == live);
    CHECK(now == before);
  }
}

}  // namespace stowage
