// A plan made by hand is run; then the same plan with mistakes. The run must find each mistake
// itself: by its own book, with names, and, if it goes on, by the results.
#include "gpu_probe/run/executor.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/resident_step.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

// a is read at steps 1 and 4 and leaves the GPU in between.
const char* const chain = R"(
model: chain
defaults:
  linear: {features: 8, bias: false}
inputs:
  x: {shape: [batch, 8]}
layers:
  - linear: {name: a, from: x}
  - linear: {name: b}
  - linear: {name: c}
  - linear: {name: d}
  - add: {name: sum, from: [d, a]}
)";

StepGraph chain_step() {
  LoweringSettings settings;
  settings.mode = Mode::inference;
  return step_of(chain, settings);
}

/// A plan whose parts are found by name.
struct ChainPlan {
  Plan plan;

  StorageId storage(const std::string& name) const {
    for (std::size_t i = 0; i < plan.step.graph->storages.size(); ++i) {
      if (plan.step.graph->storages[i].name == name) return StorageId::of(i);
    }
    FAIL("no storage ", name);
    return {};
  }
  Residence& residence(const std::string& name, std::int32_t begin) {
    for (Residence& r : plan.in(gpu_memory)) {
      if (r.storage == storage(name) && r.steps.begin == begin) return r;
    }
    FAIL("no residence of ", name);
    return plan.in(gpu_memory).front();
  }
  Transfer& transfer(const std::string& name, LinkId link) {
    for (Transfer& t : plan.transfers) {
      if (t.storage == storage(name) && t.link == link) return t;
    }
    FAIL("no transfer of ", name);
    return plan.transfers.front();
  }
  void drop(const std::string& name, LinkId link) {
    const StorageId id = storage(name);
    std::erase_if(plan.transfers,
                  [&](const Transfer& t) { return t.storage == id && t.link == link; });
  }
};

constexpr std::int64_t batch = 4;

// Weights have 256 bytes, activations of 4 x 8 floats 128; places are 256 bytes apart.
ChainPlan chain_plan(const StepGraph& graph) {
  ChainPlan made;
  Plan& plan = made.plan;
  plan.step = size_storages(std::make_shared<const StepGraph>(graph), batch).value();
  plan.nodes.assign(graph.nodes.size(), {.processor = gpu_processor});
  const auto gpu = [&](const char* name, StepRange steps, int slot) {
    plan.in(gpu_memory).push_back({made.storage(name), steps, Bytes(256 * slot)});
  };
  gpu("a.weight", {0, 5}, 0);
  gpu("b.weight", {0, 5}, 1);
  gpu("c.weight", {0, 5}, 2);
  gpu("d.weight", {0, 5}, 3);
  gpu("x", {0, 1}, 4);
  gpu("a", {0, 2}, 5);
  gpu("b", {1, 3}, 4);
  gpu("c", {2, 4}, 5);
  gpu("a", {3, 5}, 4);
  gpu("d", {3, 5}, 6);
  gpu("sum", {4, 5}, 5);
  plan.in(pinned_memory) = {{made.storage("x"), {0, 5}, Bytes(0)},
                            {made.storage("a"), {1, 5}, Bytes(256)}};
  plan.transfers = {{made.storage("x"), upload_link, 0, 0},
                    {made.storage("a"), download_link, 1, 2},
                    {made.storage("a"), upload_link, 3, 4}};
  plan.nodes[1].workspace = Bytes(100);
  plan.nodes[1].workspace_offset = Bytes(256 * 6);
  plan.totals.arena = Bytes(256 * 7);
  plan.totals.host_peak = Bytes(512);
  count_totals(plan);
  return made;
}

Execution run(const Plan& plan, const ExecutionOptions& options = {}) {
  auto backend = open_host_backend();
  REQUIRE(backend.has_value());
  auto execution = execute(plan, **backend, options);
  REQUIRE(execution.has_value());
  return *execution;
}

/// Whether the output is the same as with everything resident.
bool right_output(const StepGraph& graph, const Execution& execution) {
  const auto reference = run_resident_step(graph, batch);
  REQUIRE(reference.has_value());
  return difference(graph, results_of(graph), ResultKind::output, execution.results, *reference)
             .unequal == 0;
}

constexpr CopyTiming early{false, false}, late{true, true};

/// Checks that the mistake is named and, when the run goes on with this timing, that the results
/// are wrong.
void check_mistake(const Plan& plan, const StepGraph& graph, const std::string& violation,
                   CopyTiming timing) {
  const Execution stopped = run(plan);
  REQUIRE(!stopped.violations.empty());
  CHECK(stopped.violations.front() == violation);
  CHECK(!stopped.completed);
  const Execution unstopped =
      run(plan, {.padded = false, .timing = timing, .stop_at_violation = false});
  CHECK(!right_output(graph, unstopped));
}

}  // namespace

TEST_CASE("a hand-made plan runs, and what it moves and holds is counted") {
  const StepGraph graph = chain_step();
  const ChainPlan made = chain_plan(graph);
  for (const bool padded : {false, true}) {
    for (const CopyTiming timing :
         {early, late, CopyTiming{true, false}, CopyTiming{false, true}}) {
      const Execution done = run(made.plan, {.padded = padded, .timing = timing});
      CHECK(done.violations == std::vector<std::string>{});
      CHECK(done.overruns == std::vector<std::string>{});
      CHECK(done.completed);
      CHECK(right_output(graph, done));
      CHECK(done.h2d.copies == 2);
      CHECK(done.h2d.bytes == 256_B);
      CHECK(done.d2h.copies == 1);
      CHECK(done.d2h.bytes == 128_B);
      CHECK(done.gpu_peak == Bytes(4 * 256 + 3 * 128));
      if (!padded) CHECK(done.gpu_high_water == Bytes(256 * 6 + 128));
      if (!padded) CHECK(done.host_high_water == Bytes(256 + 128));
    }
  }
}

TEST_CASE("a dropped upload is found") {
  const StepGraph graph = chain_step();
  ChainPlan made = chain_plan(graph);
  made.drop("a", upload_link);
  check_mistake(made.plan, graph,
                "node 'sum.forward' reads 'a' at step 4, whose GPU copy has no value yet", early);
}

TEST_CASE("a dropped download is found") {
  const StepGraph graph = chain_step();
  ChainPlan made = chain_plan(graph);
  made.drop("a", download_link);
  check_mistake(made.plan, graph,
                "the upload of 'a' [3, 4) begins before the host copy has a value", early);
}

TEST_CASE("an upload that ends too late is found") {
  const StepGraph graph = chain_step();
  ChainPlan made = chain_plan(graph);
  made.transfer("a", upload_link).end = 5;
  check_mistake(made.plan, graph,
                "node 'sum.forward' reads 'a' at step 4, whose GPU copy has no value yet", late);
}

TEST_CASE("an upload that begins too early is found") {
  const StepGraph graph = chain_step();
  ChainPlan made = chain_plan(graph);
  made.transfer("a", upload_link).begin = 2;
  made.transfer("a", upload_link).end = 3;
  CHECK(run(made.plan).violations.front() ==
        "the upload of 'a' [2, 3) begins where 'a' has no place on the GPU");
}

TEST_CASE("a download that outlasts its place is found") {
  const StepGraph graph = chain_step();
  ChainPlan made = chain_plan(graph);
  made.transfer("a", download_link).end = 3;
  check_mistake(made.plan, graph,
                "the place of 'a' on the GPU ends at step 2 while the download of 'a' [1, 3) is "
                "under way",
                late);
}

TEST_CASE("a place that ends too early is found") {
  const StepGraph graph = chain_step();
  ChainPlan made = chain_plan(graph);
  made.residence("b", 1).steps.end = 2;
  CHECK(run(made.plan).violations.front() ==
        "node 'c.forward' reads 'b' at step 2, whose GPU copy is not there");
  made = chain_plan(graph);
  made.residence("c", 2).steps.end = 3;
  made.residence("d", 3).steps.begin = 4;
  CHECK(run(made.plan).violations.front() ==
        "node 'd.forward' reads 'c' at step 3, whose GPU copy is not there");
}

TEST_CASE("a missing place for a result is found") {
  const StepGraph graph = chain_step();
  ChainPlan made = chain_plan(graph);
  made.residence("d", 3).steps.begin = 4;
  CHECK(run(made.plan).violations.front() ==
        "node 'd.forward' writes 'd' at step 3, whose GPU copy is not there");
}

TEST_CASE("offsets that lie over each other are found") {
  const StepGraph graph = chain_step();
  ChainPlan made = chain_plan(graph);
  made.residence("c", 2).offset = Bytes(256 * 4 + 64);
  check_mistake(made.plan, graph,
                "'b' at [1024, 1152) and 'c' at [1088, 1216) overlap in the GPU arena at step 2",
                early);
  made = chain_plan(graph);
  made.plan.nodes[1].workspace_offset = Bytes(256 * 5);
  check_mistake(made.plan, graph,
                "the workspace of 'b.forward' at [1280, 1380) and 'a' at [1280, 1408) overlap in "
                "the GPU arena at step 1",
                early);
}

TEST_CASE("two residences that took each other's offsets are found") {
  const StepGraph graph = chain_step();
  ChainPlan made = chain_plan(graph);
  std::swap(made.residence("a", 3).offset, made.residence("c", 2).offset);
  CHECK(run(made.plan).violations.front() ==
        "'b' at [1024, 1152) and 'c' at [1024, 1152) overlap in the GPU arena at step 2");
}

TEST_CASE("a place outside the arena is found before anything runs") {
  const StepGraph graph = chain_step();
  ChainPlan made = chain_plan(graph);
  made.residence("d", 3).offset = Bytes(256 * 7);
  const Execution stopped = run(made.plan);
  CHECK(stopped.violations ==
        std::vector<std::string>{"'d' at [1792, 1920) is not within the arena of 1792"});
  CHECK(stopped.results.empty());
}

TEST_CASE("a stale copy is found") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  Plan plan = resident_plan(graph, batch);
  // One update runs on the CPU, without any copies.
  const auto update = std::find_if(graph.nodes.begin(), graph.nodes.end(), [](const KernelNode& n) {
    return n.name == "update.fc1.weight";
  });
  REQUIRE(update != graph.nodes.end());
  const auto step = update - graph.nodes.begin();
  plan.nodes[static_cast<std::size_t>(step)].processor = cpu_processor;
  CHECK(run(plan).violations.front() == "node 'update.fc1.weight' reads 'fc1.weight' at step " +
                                            std::to_string(step) +
                                            ", whose host copy is not there");
}

TEST_CASE("a parameter that does not come home is found at the step's end") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  Plan plan = resident_plan(graph, batch);
  std::vector<Residence>& gpu = plan.in(gpu_memory);
  const auto weight = std::find_if(gpu.begin(), gpu.end(), [&](const Residence& r) {
    return plan.storage(r.storage).name == "fc1.weight";
  });
  REQUIRE(weight != gpu.end());
  --weight->steps.end;
  const Execution done = run(plan);
  CHECK(done.completed);
  CHECK(done.violations.front() == "'fc1.weight' begins the step on the GPU at " +
                                       std::to_string(weight->offset.count()) +
                                       " and does not end it there");
}

TEST_CASE("any copy of a drawn plan that is dropped or late is found") {
  for (const char* model : {mlp, small_cnn, small_gpt2}) {
    const StepGraph graph = step_of(model, sgd_momentum());
    const Plan plan = random_plan(graph, 2, 11);
    const auto reference = run_resident_step(graph, 2);
    REQUIRE(reference.has_value());
    REQUIRE(run(plan).results == *reference);
    const std::size_t stride = plan.transfers.size() / 8 + 1;
    for (std::size_t i = 0; i < plan.transfers.size(); i += stride) {
      const Transfer& t = plan.transfers[i];
      INFO(graph.model, ", transfer ", i, " of '", plan.storage(t.storage).name, "'");
      Plan dropped = plan;
      dropped.transfers.erase(dropped.transfers.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK(!run(dropped).violations.empty());
      const Execution went_on =
          run(dropped, {.padded = false, .timing = late, .stop_at_violation = false});
      CHECK((went_on.results != *reference));
      Plan delayed = plan;
      delayed.transfers[i].end = static_cast<std::int32_t>(plan.nodes.size());
      if (t.link == upload_link) CHECK(!run(delayed).violations.empty());
    }
  }
}

}  // namespace stowage::test
