// Checks of memory and figures, and the comparison with the lowered step.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "planner/validate/checks.hpp"
#include "tests/support/hand_made_plan.hpp"
#include "tests/support/plan_failures.hpp"

namespace stowage {
namespace {

using namespace hand_made;

TEST_CASE("two storages at one place") {
  Plan made = plan();
  std::swap(made.in(gpu_memory)[0].offset,
            made.in(gpu_memory)[1].offset);  // x and w1: w1 now at [512, 1024)
  CHECK(failures(made, step()) ==
        "GPU arena: 'w2' at [768, 1536) lies over 'w1' at [512, 1024) from 'fc1.forward' (step 0) "
        "on; 'y2' at [512, 768) lies over 'w1' at [512, 1024) from 'fc2.forward' (step 1) on; "
        "'dy2' at [768, 1068) lies over 'w1' at [512, 1024) from 'loss' (step 2) on\n");
  made = plan();
  made.nodes[1].workspace_offset = 2304_B;
  CHECK(failures(made, step()) ==
        "GPU arena: workspace of 'fc2.forward' (step 1) at [2304, 2816) lies over 'y1' at [1536, "
        "2560) from 'fc2.forward' (step 1) on\n");
  made = plan();
  made.in(pinned_memory)[0].offset = 512_B;
  CHECK(failures(made, step()) ==
        "host arena: its blocks take 1792 bytes, not 2048; 'w2' at [0, 768) "
        "lies over 'x' at [512, 768) from 'fc1.forward' (step 0) on\n");
}

TEST_CASE("alignment, and the arena's end") {
  Plan made = plan();
  made.in(gpu_memory)[8].offset = 2561_B;
  CHECK(failures(made, step()) ==
        "GPU arena: its blocks take 3584 bytes, not 3328; 'dw2' at 2561 is not aligned to 256 "
        "bytes; 'dw2' ends at 3329, outside an "
        "arena of 3328 bytes\n");
  made = plan();
  made.totals.host_peak = 2047_B;
  CHECK(failures(made, step()) ==
        "host arena: its blocks take 2048 bytes, not 2047; 'x' ends at 2048, outside an arena of "
        "2047 bytes\n");
}

TEST_CASE("peak, bound and budget") {
  Plan made = plan();
  made.totals.gpu_peak = 3071_B;
  CHECK(failures(made, step()) ==
        "GPU peak: gpu_peak is 3071, the largest live sum 3072 (at 'fc2.forward' (step 1))\n");
  made = plan();
  made.totals.arena_lower_bound = 3073_B;
  CHECK(failures(made, step()) ==
        "arena bound: arena_lower_bound is 3073, the largest live sum in granules 3072 (at "
        "'fc2.forward' (step 1))\n");
  made = plan();
  made.inputs.budget = 3327_B;
  CHECK(failures(made, step()) == "budget: the arena's 3328 are more than the budget of 3327\n");
  made = plan();
  made.inputs.available = 4095_B;
  CHECK(failures(made, step()) == "budget: the budget of 4096 is more than the 4095 available\n");
  made.inputs.available = 0_B;  // no card was given
  CHECK(failures(made, step()) == "");
}

TEST_CASE("figures that are not what the copies and nodes give") {
  Plan made = plan();
  made.totals.h2d = 2049_B;
  CHECK(failures(made, step()) ==
        "transferred bytes: h2d is 2049, but the copies carry 2048 bytes\n");
  made = plan();
  made.totals.d2h = 0_B;
  CHECK(failures(made, step()) == "transferred bytes: d2h is 0, but the copies carry 1792 bytes\n");
  made = plan();
  made.totals.cost_seconds = 26.6;
  CHECK(failures(made, step()) == "cost: cost_seconds is 26.6, counted again 26.5\n");
  made = plan();
  made.totals.step_seconds = 20.9;
  CHECK(failures(made, step()) == "step time: step_seconds is 20.9, counted again 21\n");
}

TEST_CASE("bounds that cannot be") {
  Plan made = plan();
  made.totals.pcie_lower_bound = 3841_B;
  CHECK(failures(made, step()) ==
        "transfer bound: pcie_lower_bound is 3841, but the plan moves 3840 bytes\n");
  made = plan();
  made.totals.cost_lower_bound_seconds = 26.6;
  CHECK(failures(made, step()) ==
        "cost bound: cost_lower_bound_seconds 26.6 is above the cost 26.5\n");
  made = plan();
  made.totals.proved_optimal = true;
  CHECK(failures(made, step()) ==
        "cost bound: it is called optimal, but costs 26.5 s beside a bound of 20 s\n");
  made.totals.pcie_lower_bound = 3840_B;  // in bytes it is, but these are not what it minimised
  CHECK(failures(made, step()) ==
        "cost bound: it is called optimal, but costs 26.5 s beside a bound of 20 s\n");
  made.name = "min-pcie";
  CHECK(failures(made, step()) ==
        "cost bound: it is called optimal, but costs 26.5 s beside a bound of 20 s\n");
  made.minimised = Minimised::bytes;
  CHECK(failures(made, step()) ==
        "cost bound: it is called optimal in bytes, but may run nodes on the CPU\n");
  made.minimised = Minimised::seconds;
  for (const double share : {0.903, 0.992, 0.99999, 1 - 1e-8}) {
    made.totals.cost_lower_bound_seconds = 26.5 * share;
    CHECK(failures(made, step()).starts_with("cost bound: it is called optimal, but costs 26.5 s"));
  }
  made.totals.cost_lower_bound_seconds = 26.5 * (1 - 1e-10);
  CHECK(failures(made, step()) == "");
  made = plan();
  made.totals.all_gpu_cost_seconds = 27;
  CHECK(failures(made, step()) ==
        "cost bound: all_gpu_cost_seconds 27 is above the cost 26.5; "
        "all_gpu_cost_seconds is 27, counted again 9 or 10.5\n");
  made = plan();  // nodes alone take 9 s, with the input 10.5 s
  for (const double seconds : {8.9, 9.5, 10.0, 10.499}) {
    made.totals.all_gpu_cost_seconds = seconds;
    CHECK(
        failures(made, step()) ==
        fmt::format("cost bound: all_gpu_cost_seconds is {}, counted again 9 or 10.5\n", seconds));
  }
  made = plan();
  for (const double seconds : {9.0, 10.0, 10.49, 10.6}) {  // x 0-1.5, then the nodes' 9 s
    made.totals.all_gpu_step_seconds = seconds;
    CHECK(failures(made, step()) ==
          fmt::format("step time: all_gpu_step_seconds is {}, counted again 10.5\n", seconds));
  }
  made = plan();
  made.totals.cost_lower_bound_seconds = 9;
  CHECK(failures(made, step()) ==
        "cost bound: the bound 9 is below the all-GPU cost 10.5, which is a bound too\n");
}

TEST_CASE("an arena that is larger than what lies in it") {
  Plan made = plan();
  made.totals.arena = 3840_B;
  CHECK(failures(made, step()) == "GPU arena: its blocks take 3328 bytes, not 3840\n");
  made = plan();
  made.totals.host_peak = Bytes(std::int64_t{1} << 60);
  CHECK(failures(made, step()) ==
        "host arena: its blocks take 2048 bytes, not 1152921504606846976\n");
}

TEST_CASE("a step that is not the one that the plan was made for") {
  Plan made = plan();
  made.inputs.step_hash = "0";
  CHECK(failures(made, step()) ==
        "step hash: the step's hash is " + plan().inputs.step_hash + ", not 0 as the plan says\n");
  made = plan();
  made.step.storage_bytes[scratch] = 127_B;
  CHECK(failures(made, step()).starts_with("step hash: "));
}

TEST_CASE("workspaces are the source's, node by node") {
  Plan made = plan();
  made.nodes[1].workspace = 256_B;
  made.totals.gpu_peak = 2816_B;
  made.totals.arena_lower_bound = 2816_B;
  CHECK(failures(made, step()) ==
        "workspaces: 'fc2.forward' takes engine 'rule fast' with 256 bytes, which is none of its 2 "
        "engines\n");
}

/// The hand-made plan with an engine for fc1.forward as well.
struct TwoEngineSteps {
  Plan made = plan();
  SizedStep answers = step();
  TwoEngineSteps(const std::string& first, const std::string& second) {
    auto graph = std::make_shared<StepGraph>(*made.step.graph);
    graph->nodes[0].convolution = 0;
    made.step.graph = graph;
    made.inputs.step_hash = step_hash(made.step);
    made.nodes[0].engine = first;
    made.nodes[1].engine = second;
    answers.engines[0] = {{first, 0_B}};
    answers.engines[1] = {{second, 512_B}};
  }
};

TEST_CASE("one foreign engine keeps no other workspace from being compared") {
  TwoEngineSteps plans("rule", "rule");
  CHECK(failures(plans.made, plans.answers) == "");
  plans.made.nodes[0].engine = "cudnn 9.20.0 eng0";
  plans.answers.engines[1] = {{"rule", 256_B}};
  CHECK(failures(plans.made, plans.answers) ==
        "workspaces: 'fc2.forward' takes engine 'rule' with 512 bytes, which is none of its 1 "
        "engines\n");
  plans.answers.engines[1] = {{"rule", 512_B}};
  const Check rest = check_workspaces(plans.made, plans.answers.engines);
  CHECK(rest.name == "workspaces");
  CHECK(rest.detail ==
        "1 engines are among the source's; 1 not compared: the plan's are of cudnn 9.20.0, the "
        "source at hand is no cuDNN");
}

TEST_CASE("workspaces of another version of cuDNN are not compared") {
  TwoEngineSteps plans("cudnn 9.19.0 eng0", "cudnn 9.19.0 eng1");
  CHECK(failures(plans.made, plans.answers) == "");
  plans.answers.engines[0] = {{"cudnn 9.20.0 eng0", 7_B}};
  plans.answers.engines[1] = {{"cudnn 9.20.0 eng1", 7_B}};
  const Check newer = check_workspaces(plans.made, plans.answers.engines);
  CHECK(newer.name == "workspaces not compared");
  CHECK(newer.passed);
  plans.made.nodes[0].engine = "cudnn 9.20.0 eng0";
  CHECK(failures(plans.made, plans.answers)
            .starts_with("engines: the engines are of several versions of cuDNN\n"));
}

TEST_CASE("engines are only where a kernel has a choice, on the GPU, of a known source") {
  Plan made = plan();
  made.nodes[0].engine = "rule fast";
  CHECK(failures(made, step()) ==
        "engines: 'fc1.forward' has no choice of engines: engine 'rule fast', workspace of 0 bytes "
        "at 0\n"
        "workspaces: 'fc1.forward' takes engine 'rule fast' with 0 bytes, which is none of its 0 "
        "engines\n");
  made = plan();
  made.nodes[4].engine = "rule fast";
  CHECK(failures(made, step())
            .starts_with("engines: 'update.w2' is on the CPU: engine 'rule fast', workspace of 0 "
                         "bytes at 0\n"));
  made = plan();
  made.nodes[1].engine = "none";
  CHECK(failures(made, step())
            .starts_with("engines: 'fc2.forward' has an engine of no known source: engine 'none', "
                         "workspace of 512 bytes at 2560\n"));
  made = plan();
  made.nodes[4].workspace = 256_B;
  CHECK(failures(made, step()) ==
        "engines: 'update.w2' is on the CPU: engine '', workspace of 256 bytes at 0\n"
        "GPU arena: workspace of 'update.w2' (step 4) at [0, 256) lies over 'w1' at [0, 512) from "
        "'update.w2' (step 4) on\n");
}

TEST_CASE("nodes that a plan pins are on the GPU, whatever its name") {
  Plan made = plan();
  made.name = "all-gpu";
  CHECK(failures(made, step()) == "");
  made.pinned = Pinned::computation;
  CHECK(failures(made, step()) == "");
  made.pinned = Pinned::all_nodes;
  CHECK(failures(made, step()) ==
        "devices: 'update.w2' is on the CPU, but the plan pins all nodes to the GPU\n");
}

TEST_CASE("tables that cannot be") {
  Plan made = plan();
  made.in(gpu_memory)[3].storage = StorageId{8};
  CHECK(failures(made, step()) ==
        "structure: gpu residence 3 (storage 8, [0, 2), offset 1536) names no storage\n");
  made = plan();
  made.in(pinned_memory)[2].steps = {4, 4};
  CHECK(failures(made, step()) ==
        "structure: pinned residence 2 (storage 3, [4, 4), offset 768) is no range of steps\n");
  made = plan();
  std::swap(made.in(gpu_memory)[0], made.in(gpu_memory)[1]);
  CHECK(failures(made, step()) ==
        "structure: gpu residence 1 (storage 0, [0, 1), offset 512) is out of order\n");
  made = plan();
  made.in(gpu_memory)[4] = residence(y1, 1, 3, 512);
  CHECK(failures(made, step()) ==
        "structure: gpu residence 4 (storage 3, [1, 3), offset 512) begins while the storage has "
        "another one\n");
  made = plan();
  std::swap(made.transfers[0], made.transfers[3]);
  CHECK(failures(made, step()) ==
        "structure: transfer 1 (storage 2, [0, 1]) is out of order; transfer 3 (storage 0, [0, 0]) "
        "is out of order\n");
  made = plan();
  made.step.storage_bytes[0] = Bytes(-1);
  made.totals.cost_seconds = -1;
  CHECK(failures(made, step()) == "structure: cost_seconds is -1\n");
}

}  // namespace
}  // namespace stowage
