// The allocator's events lead to what it holds, and to the figures of the replay.
#include "estimator/runtime/allocator_trace.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr Bytes roomy_device{std::int64_t{1} << 50};

/// What the events amount to.
struct Replayed {
  Bytes most_reserved;
  std::map<std::int64_t, Bytes> live;  // by address
};

Replayed replay_events(const AllocatorTrace& trace) {
  using enum AllocatorEvent::Kind;
  Replayed found;
  Bytes reserved;
  for (const AllocatorEvent& event : trace.events) {
    switch (event.kind) {
      case alloc:
        CHECK(found.live.emplace(event.address, event.size).second);
        break;
      case free:
        CHECK(found.live.at(event.address) == event.size);
        found.live.erase(event.address);
        break;
      case segment_alloc:
      case segment_map:
        reserved += event.size;
        break;
      case segment_free:
      case segment_unmap:
        reserved -= event.size;
        break;
    }
    found.most_reserved = std::max(found.most_reserved, reserved);
  }
  return found;
}

std::map<std::int64_t, Bytes> live_blocks(const AllocatorTrace& trace) {
  std::map<std::int64_t, Bytes> live;
  for (const SegmentSnapshot& segment : trace.segments) {
    for (const BlockSnapshot& block : segment.blocks) {
      if (block.state == BlockState::allocated) live.emplace(block.address, block.requested);
    }
  }
  return live;
}

}  // namespace

TEST_CASE("a traced process is the replayed one, and its events lead to what is held in the end") {
  const auto source = rule_workspace_source(7.5);
  for (const char* name : {"mlp", "mnist-cnn", "resnet18"}) {
    for (const bool expandable : {false, true}) {
      CAPTURE(name);
      CAPTURE(expandable);
      const auto step = size_step(
          testing::lowered(testing::shipped(name),
                           {.kernels = KernelSet::pytorch, .optimizer = {.name = "adam"}}),
          4, *source);
      REQUIRE(step.has_value());
      const std::vector<Touches> touches = storage_touches(*step->graph);
      ReplaySettings settings{.limit = roomy_device};
      settings.allocator.expandable_segments = expandable;
      const AllocatorTrace trace = trace_allocator(*step, touches, settings);
      const ProcessReplay replay = replay_process(*step, touches, settings);
      const Replayed found = replay_events(trace);
      CHECK(found.most_reserved == replay.reserved);
      CHECK(found.live == live_blocks(trace));
      CHECK(trace.steps == replay.steps);
      CHECK(trace.events.front().step == 0);
      CHECK_FALSE(trace.events.front().node.valid());
      CHECK(trace.events.back().step == replay.steps);
      for (const AllocatorEvent& event : trace.events) {
        CHECK(event.entry < static_cast<std::int32_t>(trace.entries.size()));
        if (event.kind == AllocatorEvent::Kind::alloc && event.entry >= 0) {
          CHECK(trace.entries[static_cast<std::size_t>(event.entry)].exact == event.size);
        }
      }
    }
  }
}

TEST_CASE("in a process that releases its cache the events tell segments that go") {
  const auto source = rule_workspace_source(7.5);
  const auto step =
      size_step(testing::lowered(testing::shipped("resnet18"),
                                 {.kernels = KernelSet::pytorch, .optimizer = {.name = "adam"}}),
                4, *source);
  REQUIRE(step.has_value());
  const std::vector<Touches> touches = storage_touches(*step->graph);
  const Bytes wanted = replay_process(*step, touches, {.limit = roomy_device}).reserved;
  const ReplaySettings tight{.limit = wanted - 10_MiB};
  const ProcessReplay replay = replay_process(*step, touches, tight);
  const AllocatorTrace trace = trace_allocator(*step, touches, tight);
  const bool releases = std::ranges::any_of(trace.events, [](const AllocatorEvent& event) {
    return event.kind == AllocatorEvent::Kind::segment_free;
  });
  CHECK(releases == (replay.releases > 0));
  CHECK(replay_events(trace).most_reserved == replay.reserved);
  CHECK(replay_events(trace).live == live_blocks(trace));
}

}  // namespace stowage
