// The simulated time of a step whose blocks' parameters are streamed, and of the CPU's updates.
#include "planner/pytorch/hooked_step.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "estimator/document/make_document.hpp"
#include "estimator/rewrite/streamed_parameters.hpp"
#include "estimator/rewrite/update_on_host.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/pytorch/streamable_blocks.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

struct TimedStreams {
  HookedStep plain, streamed;
  Bytes moved;
};

/// GPT-2's inference with all of its blocks streamed, over a link of so many bytes a second.
TimedStreams timed_streams(double bytes_a_second) {
  const ChosenStep step{.lowering = {.kernels = KernelSet::pytorch, .mode = Mode::inference}};
  const StepDocument document =
      make_document(testing::shipped("gpt2"), step, Runtime::pytorch, {}, step_alone).value();
  const auto workspaces = rule_workspace_source(8.6);
  const Host host{.name = "test",
                  .memory = 64_GiB,
                  .pinned_limit = 32_GiB,
                  .h2d_bandwidth = bytes_a_second,
                  .d2h_bandwidth = bytes_a_second};
  const Rates rates = make_rates(generic_card(8_GiB), host);
  auto streamed =
      with_streamed_parameters(*document.graph, streamable_blocks(document, *document.graph));
  REQUIRE(streamed.has_value());
  TimedStreams timed;
  for (const StreamedPiece& piece : streamed->pieces) timed.moved += Bytes(piece.bytes);
  const auto whole = size_step(document.graph, 1, *workspaces);
  const auto sized =
      size_step(std::make_shared<const StepGraph>(std::move(streamed->step)), 1, *workspaces);
  REQUIRE(whole.has_value());
  REQUIRE(sized.has_value());
  timed.plain = hooked_step(*whole, rates, {}, 0);
  timed.streamed = hooked_step(*sized, rates, {}, 0);
  return timed;
}

}  // namespace

TEST_CASE("copies of parameters hide behind the block before, but for the first") {
  const TimedStreams quick = timed_streams(1e12);
  CHECK(quick.streamed.busy_seconds == doctest::Approx(quick.plain.busy_seconds));
  CHECK(quick.streamed.seconds > quick.plain.seconds);
  CHECK(quick.streamed.seconds < 1.02 * quick.plain.seconds);
  CHECK(quick.streamed.pinned == quick.moved);
}

TEST_CASE("over a slow link a streamed step takes as long as its copies") {
  const TimedStreams slow = timed_streams(1e9);
  const double copies = static_cast<double>(slow.moved.count()) / 1e9;
  CHECK(slow.streamed.seconds > copies);
  CHECK(slow.streamed.seconds < copies + slow.plain.seconds);
}

TEST_CASE("each lane runs one thing after the other, within the step") {
  for (const double bandwidth : {1e9, 1e12}) {
    const TimedStreams timed = timed_streams(bandwidth);
    const HookedLanes& lanes = timed.streamed.lanes;
    double kernels = 0;
    for (const HookedSpan& span : lanes.gpu) kernels += span.end - span.begin;
    CHECK(kernels == doctest::Approx(timed.streamed.busy_seconds));
    CHECK_FALSE(lanes.from_host.empty());
    CHECK(lanes.to_host.empty());
    CHECK(lanes.cpu.empty());
    for (const std::vector<HookedSpan>* lane : {&lanes.gpu, &lanes.from_host}) {
      double before = 0;
      for (const HookedSpan& span : *lane) {
        REQUIRE(span.begin >= before);
        REQUIRE(span.end >= span.begin);
        before = span.end;
      }
      CHECK(before <= timed.streamed.seconds);
    }
  }
}

TEST_CASE("early updates on the CPU hide behind backward, late ones come after it") {
  const ChosenStep chosen{
      .lowering = {.kernels = KernelSet::pytorch, .optimizer = {.name = "adamw"}}};
  const StepDocument document =
      make_document(testing::shipped("gpt2"), chosen, Runtime::pytorch, {}, step_alone).value();
  const auto workspaces = rule_workspace_source(8.6);
  const Rates rates = make_rates(generic_card(8_GiB), {.name = "test",
                                                       .memory = 64_GiB,
                                                       .pinned_limit = 32_GiB,
                                                       .h2d_bandwidth = 1e12,
                                                       .d2h_bandwidth = 1e12});
  const auto timed = [&](bool early, double seconds_a_byte) {
    auto moved =
        with_updates(*document.graph, {.on_host = UpdateChoice::OnHost::all, .early = early});
    REQUIRE(moved.has_value());
    const auto step =
        size_step(std::make_shared<const StepGraph>(*std::move(moved)), 1, *workspaces);
    REQUIRE(step.has_value());
    const HookedStep hooked =
        hooked_step(*step, rates, {}, 0, {.cpu_seconds_a_byte = seconds_a_byte, .early = early});
    double on_cpu = 0;
    for (const HookedSpan& span : hooked.lanes.cpu) on_cpu += span.end - span.begin;
    CHECK(on_cpu == doctest::Approx(seconds_a_byte * 4 * 124'439'808.0).epsilon(0.01));
    CHECK(hooked.lanes.cpu.size() ==
          (early ? hooked.lanes.to_host.size() : (seconds_a_byte > 0 ? std::size_t{1} : 0)));
    return hooked.seconds;
  };
  const double bytes = 4 * 124'439'808.0;
  const double none = timed(false, 0);
  CHECK(timed(true, 0) == doctest::Approx(none));
  for (const double cpu : {0.5 * none, 4 * none}) {
    CAPTURE(cpu / none);
    const double late = timed(false, cpu / bytes), early = timed(true, cpu / bytes);
    CHECK(late == doctest::Approx(none + cpu).epsilon(0.01));
    CHECK(early > cpu);
    CHECK(early < late - 0.2 * std::min(cpu, none));
  }
}

}  // namespace stowage
