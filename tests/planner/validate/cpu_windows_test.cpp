// Nodes of the CPU that run beside the GPU: the hand-made plan with windows, and each way in which
// one can be wrong.
#include <doctest/doctest.h>

#include "planner/validate/checks.hpp"
#include "tests/support/hand_made_plan.hpp"
#include "tests/support/plan_failures.hpp"

namespace stowage {
namespace {

using namespace hand_made;

/// The hand-made plan, its update issued and awaited as the window says.
Plan with_window(StepRange window) {
  Plan made = plan();
  made.nodes[4].window = window;
  return made;
}

std::string failed_checks(const Plan& plan, std::string_view name) {
  for (const Check& check : check_plan(plan)) {
    if (check.name == name && !check.passed) return check.detail;
  }
  return "";
}

}  // namespace

TEST_CASE("a window of a node's own step says nothing new") {
  CHECK(failures(with_window({4, 5}), step()) == "");
  for (const Check& check : check_plan(plan())) {
    if (check.name != "CPU windows") continue;
    CHECK(check.detail ==
          "0 of the CPU's 1 nodes run beside others, and none of these touches what they change");
  }
}

TEST_CASE("a window lies in the step and contains its node's own step") {
  const auto structure = [](const Plan& plan) { return check_structure(plan).detail; };
  CHECK(structure(with_window({3, 4})) ==
        "'update.w2', step 4 on the CPU, runs in the window [3, 4)");
  CHECK(structure(with_window({-1, 5})) ==
        "'update.w2', step 4 on the CPU, runs in the window [-1, 5)");
  CHECK(structure(with_window({4, 6})) ==
        "'update.w2', step 4 on the CPU, runs in the window [4, 6)");
  CHECK(structure(with_window({5, 4})) ==
        "'update.w2', step 4 on the CPU, runs in the window [5, 4)");
  Plan made = plan();
  made.nodes[3].window = {3, 5};
  CHECK(structure(made) == "'fc2.backward', step 3 on the GPU, runs in the window [3, 5)");
}

TEST_CASE("a node is not issued before what it reads has been written and has come down") {
  const Plan made = with_window({3, 5});
  CHECK(failed_checks(made, "CPU windows") ==
        "'fc2.backward' (step 3) touches 'dw2', which 'update.w2' (step 4) reads meanwhile; "
        "download of 'dw2' from 'update.w2' (step 4) to 'update.w2' (step 4) begins while "
        "'update.w2' (step 4) reads it");
  CHECK(failed_checks(made, "inputs present") ==
        "'update.w2' (step 4) reads 'dw2', which the host does not hold");
}

TEST_CASE("what a node writes is not copied before it is awaited") {
  // w2's upload is under way in [0, 1), and its reader on the GPU is step 1.
  const Plan made = with_window({0, 5});
  CHECK(failed_checks(made, "CPU windows")
            .find("'fc2.forward' (step 1) touches 'w2', which "
                  "'update.w2' (step 4) writes meanwhile") != std::string::npos);
  CHECK(failed_checks(made, "copies current")
            .find("'update.w2' (step 4) writes 'w2' during the "
                  "upload of 'w2'") != std::string::npos);
}

/// fc1.forward and fc2.forward on the CPU: the first is issued before step 0 and writes what the
/// second reads.
Plan two_on_the_cpu(StepRange first, StepRange second) {
  Plan made = plan();
  for (const std::size_t node : {0, 1}) {
    made.nodes[node].processor = cpu_processor;
    made.nodes[node].engine.clear();
    made.nodes[node].workspace = made.nodes[node].workspace_offset = Bytes();
  }
  made.transfers.erase(made.transfers.begin() + 2);  // y1 is on the host from the first on
  made.nodes[0].window = first;
  made.nodes[1].window = second;
  return made;
}

TEST_CASE("nodes of the CPU need no wait between them, but the sequence's order") {
  CHECK(failed_checks(two_on_the_cpu({0, 2}, {1, 2}), "CPU windows") == "");
  CHECK(failed_checks(two_on_the_cpu({0, 2}, {0, 2}), "CPU windows") == "");
  // The loss reads y2 at step 2, and y1 is read again at step 3.
  CHECK(failed_checks(two_on_the_cpu({0, 2}, {1, 3}), "CPU windows") ==
        "'loss' (step 2) touches 'y2', which 'fc2.forward' (step 1) writes meanwhile");
}

TEST_CASE("a node that comes later in the sequence is not issued before one it depends on") {
  // The update, issued at once, goes before fc2.forward, which reads the w2 of before.
  Plan made = two_on_the_cpu({0, 1}, {1, 2});
  made.nodes[4].window = {0, 5};
  CHECK(failed_checks(made, "CPU windows")
            .find("'fc2.forward' (step 1) is issued after 'update.w2' "
                  "(step 4), which comes later and touches 'w2' as "
                  "well") != std::string::npos);
}

TEST_CASE("the host holds what a node touches through its window") {
  Plan made = two_on_the_cpu({0, 2}, {1, 2});
  made.in(pinned_memory)[0].steps.end = 1;  // x, which fc1.forward may read until boundary 2
  CHECK(failed_checks(made, "outputs placed")
            .find("'fc1.forward' (step 0) may run until 'loss' "
                  "(step 2), but the host lets go of 'x' at "
                  "'fc2.forward' (step 1)") != std::string::npos);
}

TEST_CASE("the step is counted again with the CPU beside the GPU") {
  // Only the time is looked at: fc2.backward on the CPU, 2 s, in a window of three steps.
  Plan made = plan();
  made.nodes[3].processor = cpu_processor;
  const auto counted = [&](StepRange window) {
    made.nodes[3].window = window;
    return failed_checks(made, "step time");
  };
  CHECK(counted({3, 4}) == "");
  // Nodes 1.5-2.5, 5-7, 7-8; fc2.backward from 7 on beside the loss, w2 down 8-11.5 beside it.
  CHECK(counted({2, 5}).starts_with("step_seconds is 21, counted again 19"));
}

}  // namespace stowage
