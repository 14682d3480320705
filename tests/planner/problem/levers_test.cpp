#include "planner/problem/levers.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "planner/solve/solve.hpp"
#include "tests/support/pinned_plans.hpp"

namespace stowage {
namespace {

ResidencyProblem problem_with(const ProblemOptions& options) {
  const PlanRequest request = testing::small_request(64_MiB);
  const auto workspaces = rule_workspace_source(8.6);
  const auto step = size_step(request.document.graph, request.batch.samples, *workspaces);
  REQUIRE(step.has_value());
  return make_problem(*step, make_rates(request.card, request.host), options);
}

const Item& item_named(const ResidencyProblem& problem, std::string_view name) {
  const auto found = std::ranges::find(problem.items, name, &Item::name);
  REQUIRE(found != problem.items.end());
  return *found;
}

bool is_always_kept(const Item& item) {
  for (std::size_t gap = 0; gap < item.gap_pins.size(); ++gap) {
    if (item.touches[(gap + 1) % item.touches.size()].reads &&
        item.gap_pins[gap] != GapPin::resident) {
      return false;
    }
  }
  return !item.gap_pins.empty();
}

}  // namespace

TEST_CASE("levers are read from a list, and written as one") {
  const auto both = parse_levers("activations,optimizer");
  REQUIRE(both.has_value());
  CHECK(*both == Levers{.operators = false, .saved = false, .weights = false, .recompute = false});
  CHECK(to_string(*both) == "activations,optimizer");
  CHECK(parse_levers("all").value() == Levers{});
  CHECK(parse_levers("weights,all").value() == Levers{});
  CHECK(to_string(Levers{}) == "all");
  CHECK(parse_levers("recompute").value() == Levers{false, false, false, false, false, true});
  CHECK(to_string(parse_levers("saved,recompute").value()) == "saved,recompute");
}

TEST_CASE("what is no lever gets a suggestion") {
  const auto error = [](std::string_view text) {
    const auto levers = parse_levers(text);
    REQUIRE_FALSE(levers.has_value());
    return levers.error().front().message + " / " + levers.error().front().hint;
  };
  CHECK(error("activation").starts_with("'activation' is no means of placement / "));
  CHECK(error("activation").find("activations") != std::string::npos);
  CHECK(error("").starts_with("'' is no means of placement / it is all, or of: all, operators"));
  CHECK(error("all,").starts_with("'' is no means"));
}

TEST_CASE("a lever that is off keeps its storages where operations cannot leave the GPU") {
  const ResidencyProblem free = problem_with({.compute_on_gpu = true});
  CHECK(item_named(free, "relu1").gap_pins.empty());
  const ResidencyProblem kept =
      problem_with({.compute_on_gpu = true, .keep_activations = true, .keep_weights = true});
  CHECK(is_always_kept(item_named(kept, "relu1")));
  CHECK(item_named(kept, "conv1.weight.exp_avg").gap_pins.empty());
  // Its update may run on the CPU: the gaps beside that are free, the one before backward is not.
  const Item& weight = item_named(kept, "conv2.weight");
  CHECK(std::ranges::count(weight.gap_pins, GapPin::resident) >= 1);
  CHECK(weight.gap_pins.back() == GapPin::free);
  const ResidencyProblem state = problem_with({.all_on_gpu = true, .keep_state = true});
  CHECK(is_always_kept(item_named(state, "conv1.weight.exp_avg")));
}

TEST_CASE("what autograd alone keeps may leave between forward and backward, and nothing else") {
  const ResidencyProblem problem = problem_with(
      {.all_on_gpu = true, .keep_unsaved = true, .keep_weights = true, .keep_state = true});
  CHECK(is_always_kept(item_named(problem, "conv2.weight")));
  CHECK(is_always_kept(item_named(problem, "conv1.weight.exp_avg")));
  const Item& saved = item_named(problem, "relu1");
  CHECK(std::ranges::count(saved.gap_pins, GapPin::free) == 1);
  // An input is a variable of the script.
  CHECK(is_always_kept(item_named(problem, "image")));
}

TEST_CASE("a problem with fewer levers has no cheaper plan") {
  const ProblemOptions all{.compute_on_gpu = false};
  const ProblemOptions sets[] = {{.compute_on_gpu = true},
                                 {.compute_on_gpu = true, .keep_weights = true},
                                 {.compute_on_gpu = true, .keep_weights = true, .keep_state = true},
                                 {.all_on_gpu = true}};
  constexpr Bytes budget = 3_MiB;
  const auto best = solve(problem_with(all), {.budget = budget});
  REQUIRE(best.has_value());
  for (const ProblemOptions& options : sets) {
    const auto solution = solve(problem_with(options), {.budget = budget});
    REQUIRE(solution.has_value());
    CHECK(solution->evaluation.cost_seconds >= best->cost_lower_bound_seconds);
  }
  // Nothing may leave: the floor is all that is ever needed at once.
  CHECK_FALSE(solve(problem_with({.all_on_gpu = true,
                                  .keep_activations = true,
                                  .keep_weights = true,
                                  .keep_state = true}),
                    {.budget = budget})
                  .has_value());
}

}  // namespace stowage
