#include "planner/assemble/assemble_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/fit_schedule.hpp"
#include "planner/assemble/item_moves.hpp"
#include "planner/assemble/placed_step.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "tests/support/small_steps.hpp"

using namespace stowage;

namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// Executes a plan as plan.hpp defines it, two steps in a row, with a version number for each copy.
class Playback {
 public:
  Playback(const ResidencyProblem& problem, const Placement& placement, const Plan& plan)
      : problem_(problem), placement_(placement), plan_(plan) {
    steps_ = static_cast<std::int32_t>(problem.operations.size());
    newest_.assign(problem.items.size(), 1);
    gpu_.resize(problem.items.size());
    host_.resize(problem.items.size());
    in_flight_.resize(plan.transfers.size());
    on_host_ = residences_on(plan, Device::cpu);
  }

  /// The first violation, or "".
  std::string run() {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(problem_.items.size()); ++i) {
      const Item& item = problem_.items[at(i)];
      if (item.wraps && there_at_start(i, upload_link)) gpu_[at(i)] = 1;
      const bool input = !item.wraps && item.host_at_start;
      if ((item.wraps && there_at_start(i, download_link)) || (input && covers(on_host_, i, 0))) {
        host_[at(i)] = 1;
      }
    }
    for (int round = 0; round < 2 && error_.empty(); ++round) {
      for (std::int32_t t = 0; t <= steps_ && error_.empty(); ++t) {
        boundary(t);
        if (t < steps_ && placement_.device[at(t)] == Device::gpu) node(t);
      }
      step_end();
    }
    return error_;
  }

 private:
  void fail(const std::string& message) {
    if (error_.empty()) error_ = message;
  }
  [[nodiscard]] static bool covers(const std::vector<Residence>& all, std::int32_t item,
                                   std::int32_t step) {
    return std::any_of(all.begin(), all.end(), [&](const Residence& r) {
      return r.storage.value == item && r.steps.contains(step);
    });
  }
  /// Whether a copy is there when the step starts. `filled_by`: the link whose copy would fill it.
  [[nodiscard]] bool there_at_start(std::int32_t item, LinkId filled_by) const {
    const auto& all = filled_by == upload_link ? plan_.in(gpu_memory) : on_host_;
    const bool filled =
        std::any_of(plan_.transfers.begin(), plan_.transfers.end(), [&](const Transfer& transfer) {
          return transfer.storage.value == item && transfer.link == filled_by &&
                 transfer.begin == 0;
        });
    return covers(all, item, 0) && !filled;
  }

  /// A node of the CPU under way that uses an item in a way that forbids this use.
  void check_running(std::size_t item, bool writes, std::int32_t but_before) {
    for (const std::int32_t other : running_) {
      if (other < but_before) continue;
      for (const Touch& touch : problem_.items[item].touches) {
        if (touch.step != other || (!touch.writes && !writes)) continue;
        fail(fmt::format("{} is touched while op{} uses it", problem_.items[item].name, other));
      }
    }
  }

  void begin_copy(std::size_t k, std::int32_t t) {
    const Transfer& transfer = plan_.transfers[k];
    const std::size_t item = transfer.storage.index();
    check_running(item, transfer.link == download_link, 0);
    const auto& source = transfer.link == upload_link ? host_ : gpu_;
    if (source[item] != newest_[item]) {
      fail(fmt::format("{} copied at {} from nothing", problem_.items[item].name, t));
    }
    in_flight_[k] = source[item];
    for (std::int32_t s = transfer.begin; s < transfer.end; ++s) {
      if (!covers(plan_.in(gpu_memory), transfer.storage.value, s))
        fail("a copy in flight has no GPU place");
      if (!covers(on_host_, transfer.storage.value, s)) {
        fail(fmt::format("{}: a copy in flight has no host place", problem_.items[item].name));
      }
    }
  }

  void end_copy(std::size_t k) {
    const Transfer& transfer = plan_.transfers[k];
    const std::size_t item = transfer.storage.index();
    if (in_flight_[k] != newest_[item]) fail("a copy was overtaken by a write");
    (transfer.link == upload_link ? gpu_ : host_)[item] = in_flight_[k];
  }

  void boundary(std::int32_t t) {
    std::erase_if(running_, [&](std::int32_t i) { return window(i).end == t; });
    // A copy without a residence is gone; a copy that ends here still had its place until here.
    for (const bool upload : {false, true}) {
      for (std::size_t k = 0; k < plan_.transfers.size(); ++k) {
        const Transfer& transfer = plan_.transfers[k];
        if ((transfer.link == upload_link) != upload) continue;
        if (transfer.begin == t) begin_copy(k, t);
        if (transfer.end == t) end_copy(k);
      }
    }
    if (t == steps_) return;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(problem_.items.size()); ++i) {
      if (!covers(plan_.in(gpu_memory), i, t)) gpu_[at(i)].reset();
      if (!covers(on_host_, i, t)) host_[at(i)].reset();
    }
    for (std::int32_t i = 0; i < steps_; ++i) {
      if (placement_.device[at(i)] == Device::cpu && window(i).begin == t) node(i);
    }
  }

  [[nodiscard]] StepRange window(std::int32_t i) const { return window_of(plan_, NodeId{i}); }

  void node(std::int32_t t) {
    const bool cpu = placement_.device[at(t)] == Device::cpu;
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      for (const Touch& touch : problem_.items[i].touches) {
        if (touch.step != t) continue;
        check_running(i, touch.writes, cpu ? t : 0);
        for (std::int32_t s = window(t).begin; cpu && s < window(t).end; ++s) {
          if (covers(on_host_, static_cast<std::int32_t>(i), s)) continue;
          fail(fmt::format("op{} has no place for {} all through", t, problem_.items[i].name));
        }
      }
    }
    if (cpu) running_.push_back(t);
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      for (const Touch& touch : problem_.items[i].touches) {
        if (touch.step != t) continue;
        const auto& copies = cpu ? host_ : gpu_;
        if (touch.reads && copies[i] != newest_[i]) {
          fail(fmt::format("op{} reads {} where it is not", t, problem_.items[i].name));
        }
        if (!touch.writes) continue;
        const auto id = static_cast<std::int32_t>(i);
        if (!covers(cpu ? on_host_ : plan_.in(gpu_memory), id, t)) {
          fail(fmt::format("op{} writes {} without a place", t, problem_.items[i].name));
        }
        ++newest_[i];
        (cpu ? host_ : gpu_)[i] = newest_[i];
      }
    }
  }

  void step_end() {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(problem_.items.size()); ++i) {
      if (!problem_.items[at(i)].wraps) {
        gpu_[at(i)].reset();
        if (!problem_.items[at(i)].host_at_start) host_[at(i)].reset();
        newest_[at(i)] = 1;
        if (problem_.items[at(i)].host_at_start) host_[at(i)] = 1;
        continue;
      }
      if (there_at_start(i, upload_link) && gpu_[at(i)] != newest_[at(i)]) {
        fail("the next step would not find it on the GPU");
      }
      if (there_at_start(i, download_link) && host_[at(i)] != newest_[at(i)]) {
        fail("the next step would not find it on the host");
      }
      if (!there_at_start(i, upload_link)) gpu_[at(i)].reset();
      if (!there_at_start(i, download_link)) host_[at(i)].reset();
    }
  }

  const ResidencyProblem& problem_;
  const Placement& placement_;
  const Plan& plan_;
  std::int32_t steps_ = 0;
  std::vector<int> newest_;
  std::vector<std::optional<int>> gpu_, host_;
  std::vector<std::optional<int>> in_flight_;
  std::vector<Residence> on_host_;
  std::vector<std::int32_t> running_;  // the CPU's nodes that have been issued and not awaited
  std::string error_;
};

/// Two residences of an arena (or workspaces) that share a step share no byte, except those of one
/// storage over the step's end.
std::string overlap(const Plan& plan, const std::vector<Residence>& residences, bool gpu) {
  struct Place {
    StepRange steps;
    std::int64_t begin, end;
    std::string name;
  };
  std::vector<Place> places;
  for (const Residence& residence : residences) {
    places.push_back({residence.steps, residence.offset.count(),
                      (residence.offset + plan.bytes(residence.storage)).count(),
                      plan.storage(residence.storage).name});
  }
  for (std::size_t i = 0; gpu && i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    const auto t = static_cast<std::int32_t>(i);
    places.push_back({{t, t + 1},
                      node.workspace_offset.count(),
                      (node.workspace_offset + node.workspace).count(),
                      plan.step.graph->nodes[i].name});
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Place &a = places[i], &b = places[j];
      if (a.steps.overlaps(b.steps) && std::max(a.begin, b.begin) < std::min(a.end, b.end)) {
        return a.name + " overlaps " + b.name;
      }
    }
  }
  return "";
}

std::string order_violation(const Plan& plan) {
  std::map<LinkId, std::int32_t> last;
  for (const Transfer& transfer : plan.transfers) {
    if (transfer.begin > transfer.end) return "a transfer ends before it begins";
    if (transfer.begin < last[transfer.link]) return "begins decrease";
    last[transfer.link] = transfer.begin;
  }
  return "";
}

Item weight(const std::string& name, Bytes bytes, std::vector<Touch> touches) {
  return {name, bytes, std::move(touches), true, false, 1e-6, 1e-6};
}

/// By step: the memory that the placement itself keeps on the GPU, without copies in flight.
std::vector<Bytes> live_at_least(const ResidencyProblem& problem, const Placement& placement) {
  std::vector<Bytes> live(problem.operations.size());
  for (const GpuStay& stay : make_moves(problem, placement).stays) {
    for (std::int32_t t = stay.steps.begin; t < stay.steps.end; ++t) {
      live[at(t)] += problem.items[at(stay.item)].bytes;
    }
  }
  for (std::size_t t = 0; t < live.size(); ++t) {
    if (placement.device[t] == Device::cpu) continue;
    live[t] += problem.operations[t].engines[at(placement.engine[t])].workspace +
               problem.operations[t].temporaries;
  }
  return live;
}

ResidencyProblem equal_operations(std::size_t count) {
  ResidencyProblem problem;
  for (std::size_t i = 0; i < count; ++i) {
    problem.operations.push_back({fmt::format("op{}", i), {{1e-6, 0_B}}, 1e-6, 0_B, Pin::free});
  }
  return problem;
}

}  // namespace

TEST_CASE("a swapped activation leaves as soon as it may and comes back in time") {
  ResidencyProblem problem = equal_operations(10);
  problem.items = {{"x",
                    1024_B,
                    {{0, false, true}, {1, true, false}, {8, true, false}},
                    false,
                    false,
                    2e-6,
                    2e-6}};
  const SizedStep step = step_of(problem);
  Placement placement = all_gpu_placement(problem);
  placement.resident[0] = {true, false};

  SUBCASE("with room, both copies hide behind two nodes") {
    const Plan plan = assemble_plan(step, problem, placement, {.budget = 1024_B});
    REQUIRE(plan.transfers.size() == 2);
    CHECK(plan.transfers[0].link == download_link);
    CHECK(plan.transfers[0].begin == 1);
    CHECK(plan.transfers[0].end == 3);
    CHECK(plan.transfers[1].link == upload_link);
    CHECK(plan.transfers[1].begin == 6);
    CHECK(plan.transfers[1].end == 8);
    REQUIRE(plan.in(gpu_memory).size() == 2);
    CHECK(plan.in(gpu_memory)[0].steps == StepRange{0, 3});
    CHECK(plan.in(gpu_memory)[1].steps == StepRange{6, 9});
    REQUIRE(plan.in(pinned_memory).size() == 1);
    CHECK(plan.in(pinned_memory)[0].steps == StepRange{1, 9});
    CHECK(plan.totals.step_seconds == doctest::Approx(10e-6));
    CHECK(plan.totals.h2d == 1024_B);
    CHECK(plan.totals.d2h == 1024_B);
    CHECK(plan.totals.gpu_peak == 1024_B);
    CHECK(plan.totals.host_peak == 1024_B);
  }
  SUBCASE("without room, both stall") {
    problem.items.push_back(
        {"y", 1024_B, {{2, false, true}, {7, true, false}}, false, false, 0, 0});
    placement.on_gpu.push_back({true, true});
    placement.resident.push_back({true});
    const SizedStep full = step_of(problem);
    const Plan plan = assemble_plan(full, problem, placement, {.budget = 1024_B});
    CHECK(plan.totals.arena == 1024_B);
    CHECK(plan.transfers[0].end == 2);
    CHECK(plan.transfers[1].begin == 8);
    CHECK(plan.transfers[1].end == 8);
    CHECK(plan.totals.step_seconds == doctest::Approx(13e-6));
  }
}

TEST_CASE("a plan that the caller would discard is left unfinished") {
  ResidencyProblem problem = equal_operations(10);
  problem.items = {{"x",
                    1024_B,
                    {{0, false, true}, {1, true, false}, {8, true, false}},
                    false,
                    false,
                    2e-6,
                    2e-6}};
  const SizedStep step = step_of(problem);
  Placement placement = all_gpu_placement(problem);
  placement.resident[0] = {true, false};
  const Plan whole = assemble_plan(step, problem, placement, {.budget = 1024_B});
  REQUIRE(whole.totals.arena == 1024_B);

  SUBCASE("an arena above the budget, where it must fit") {
    const Plan plan = assemble_plan(step, problem, placement, {.budget = 768_B, .must_fit = true});
    CHECK(plan.totals.arena == 1024_B);
    CHECK(plan.in(gpu_memory).empty());
  }
  SUBCASE("a step that is no shorter") {
    const double longest = whole.totals.step_seconds;
    const Plan plan =
        assemble_plan(step, problem, placement, {.budget = 1024_B, .longest_step = longest});
    CHECK(plan.totals.arena == unlimited_arena);
    CHECK(plan.transfers.empty());
  }
  SUBCASE("not a step that is shorter") {
    const double longest = 1.01 * whole.totals.step_seconds;
    const Plan plan = assemble_plan(step, problem, placement,
                                    {.budget = 1024_B, .must_fit = true, .longest_step = longest});
    CHECK(plan.totals.step_seconds == whole.totals.step_seconds);
    CHECK(plan.transfers.size() == whole.transfers.size());
  }
}

TEST_CASE("the playback of these tests notices a copy that is missing, late or without a place") {
  ResidencyProblem problem = equal_operations(6);
  problem.items = {{"x", 64_B, {{0, false, true}, {5, true, false}}, false, false, 1e-6, 1e-6}};
  const SizedStep step = step_of(problem);
  Placement placement = all_gpu_placement(problem);
  placement.resident[0] = {false};
  const Plan plan = assemble_plan(step, problem, placement, {.budget = 256_B});
  REQUIRE(Playback(problem, placement, plan).run() == "");
  Plan changed = plan;
  changed.transfers.pop_back();
  CHECK(Playback(problem, placement, changed).run() == "op5 reads x where it is not");
  changed = plan;
  changed.transfers.erase(changed.transfers.begin());
  CHECK(Playback(problem, placement, changed).run() == "x copied at 4 from nothing");
  changed = plan;
  changed.transfers[1].end = 6;
  CHECK(Playback(problem, placement, changed).run() != "");
  changed = plan;
  changed.in(pinned_memory)[0].steps.end = 4;
  CHECK(Playback(problem, placement, changed).run() == "x: a copy in flight has no host place");
}

TEST_CASE("a parameter that stays over the step's end has two residences at one place") {
  ResidencyProblem problem = equal_operations(6);
  problem.items = {weight("w", 512_B, {{1, true, false}, {4, true, true}}),
                   {"x", 512_B, {{2, false, true}, {3, true, false}}, false, false, 0, 0}};
  const SizedStep step = step_of(problem);
  Placement placement = all_gpu_placement(problem);
  placement.resident[0] = {false, true};
  const Plan plan = assemble_plan(step, problem, placement, {.budget = 0_B});
  REQUIRE(plan.in(gpu_memory).size() == 3);
  CHECK(plan.in(gpu_memory)[0].steps == StepRange{0, 2});
  CHECK(plan.in(gpu_memory)[2].steps == StepRange{4, 6});
  CHECK(plan.in(gpu_memory)[0].offset == plan.in(gpu_memory)[2].offset);
  CHECK(plan.totals.arena == 512_B);
  // Fetched once before node 4, from the host copy of the end of the last step.
  REQUIRE(plan.transfers.size() == 2);
  CHECK(plan.transfers[0].link == upload_link);
  CHECK(plan.transfers[0].end == 4);
  CHECK(plan.transfers[1].link == download_link);
  CHECK(plan.transfers[1].end == 6);
}

TEST_CASE("an input that node 0 reads is uploaded before it") {
  ResidencyProblem problem = equal_operations(2);
  problem.items = {{"image", 100_B, {{0, true, false}}, false, true, 3e-6, 3e-6}};
  const SizedStep step = step_of(problem);
  const Plan plan =
      assemble_plan(step, problem, all_gpu_placement(problem), {.budget = 1'000'000_B});
  REQUIRE(plan.transfers.size() == 1);
  CHECK(plan.transfers[0].begin == 0);
  CHECK(plan.transfers[0].end == 0);
  CHECK(plan.totals.d2h == 0_B);
  CHECK(plan.totals.step_seconds == doctest::Approx(5e-6));
}

TEST_CASE("optimizer state that the CPU updates stays on the host") {
  // ZeRO-Offload's cycle: the parameter goes up, the gradient comes down.
  ResidencyProblem problem = equal_operations(4);
  problem.items = {weight("w", 100_B, {{0, true, false}, {1, true, false}, {3, true, true}}),
                   {"g", 100_B, {{2, false, true}, {3, true, false}}, false, false, 0, 0},
                   weight("m", 200_B, {{3, true, true}})};
  const SizedStep step = step_of(problem);
  Placement placement = all_gpu_placement(problem);
  placement.device[3] = Device::cpu;
  placement.on_gpu = {{true, true, false}, {true, false}, {false}};
  placement.resident = {{true, false, false}, {false}, {false}};
  const Plan plan = assemble_plan(step, problem, placement, {.budget = 10'000_B});
  CHECK(plan.totals.h2d == 100_B);
  CHECK(plan.totals.d2h == 100_B);
  CHECK(Playback(problem, placement, plan).run() == "");
  for (const Residence& residence : plan.in(gpu_memory)) CHECK(residence.storage.value != 2);
  // No copy moves the state, so it need not be pinned.
  CHECK(plan.in(pinned_memory).size() == 2);
  REQUIRE(plan.in(pageable_memory).size() == 1);
  CHECK(plan.in(pageable_memory).front().storage.value == 2);
  CHECK(plan.totals.pageable_peak == 256_B);
}

TEST_CASE("the packing of what the host keeps is counted as work") {
  ResidencyProblem problem = equal_operations(2);
  for (const char* name : {"a", "b", "c"}) {
    problem.items.push_back(weight(name, 100_B, {{1, true, true}}));
  }
  const SizedStep step = step_of(problem);
  Placement placement = all_gpu_placement(problem);
  placement.device[1] = Device::cpu;
  placement.on_gpu.assign(3, {false});
  placement.resident.assign(3, {false});
  WorkBudget of_schedule, of_plan;
  (void)fit_schedule(PlacedStep(step, problem, placement),
                     {.budget = 10'000_B, .work = &of_schedule});
  const Plan plan = assemble_plan(step, problem, placement, {.budget = 10'000_B, .work = &of_plan});
  REQUIRE(plan.in(pageable_memory).size() == 3);
  CHECK(of_plan.spent() > of_schedule.spent());
}

TEST_CASE("random placements: every operation finds its operands, nothing overlaps") {
  RandomProblems random(17);
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    ResidencyProblem problem = random.problem(2 + random.below(14), 1 + random.below(8));
    const SizedStep step = step_of(problem);
    const Placement placement = random.placement(problem);
    const Bytes limit(static_cast<std::int64_t>(random.below(40'000)));
    const Plan plan = assemble_plan(step, problem, placement, {limit, 0});
    CHECK(Playback(problem, placement, plan).run() == "");
    CHECK(overlap(plan, plan.in(gpu_memory), true) == "");
    CHECK(overlap(plan, plan.in(pinned_memory), false) == "");
    CHECK(overlap(plan, plan.in(pageable_memory), false) == "");
    CHECK(order_violation(plan) == "");
    const Plan tight = assemble_plan(step, problem, placement, {0_B, 0});
    CHECK(Playback(problem, placement, tight).run() == "");
    CHECK(plan.totals.gpu_peak <= plan.totals.arena);
    // Fewer than by the definition only where a placement keeps or fetches something that nothing
    // reads.
    const Evaluation evaluation = evaluate(problem, placement);
    CHECK(evaluation.inconsistency == "");
    const std::vector<Bytes> live = live_at_least(problem, placement);
    for (std::size_t t = 0; t < live.size(); ++t) CHECK(live[t] <= evaluation.memory[t]);
    CHECK(plan.totals.h2d <= evaluation.h2d_bytes);
    CHECK(plan.totals.d2h <= evaluation.d2h_bytes);
    CHECK(plan.totals.h2d == tight.totals.h2d);
    CHECK(plan.totals.d2h == tight.totals.d2h);
    CHECK(plan.totals.arena_lower_bound <= plan.totals.arena);
    CHECK(plan.totals.gpu_peak <= plan.totals.arena_lower_bound);
  }
}
