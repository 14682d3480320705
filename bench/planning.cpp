// The loss of the planner's plans against their bounds, for each shipped model, budget, mode and
// precision.
//
// It prints the overhead gap of the solver's placement and of the plan that was made of it, and the
// loss by packing. It also prints the simulated step: its gap to the bound, its ratio to the rules
// that people and papers swap by (planner/assemble/swap_policies.hpp) through the same assembler,
// and the ratio of the recommended plan to checkpointing by segments of sqrt(n) layers
// (planner/recompute/checkpoint_segments.hpp), where that fits the budget.
//
//   planning [--all] [--count N] [--seed N] [--only ROW]... [--additive]
//            [--work UNITS] [MODEL...]
//
// By default 200 of all combinations, chosen by a hash of their names; --only takes rows by the
// names that are printed ("vgg16 a100-40gb train fp32 80"). The problem has forward and backward on
// the GPU and updates where they cost least. --additive leaves the step out.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/quantile.hpp"
#include "bench/shipped_step.hpp"
#include "estimator/base/hash.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/assemble/plan_within.hpp"
#include "planner/assemble/swap_policies.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/rates.hpp"
#include "planner/propose/proposals.hpp"
#include "planner/propose/rewritten_steps.hpp"
#include "planner/propose/step_plans.hpp"
#include "planner/recompute/checkpoint_segments.hpp"

namespace {

using namespace stowage;
using Clock = std::chrono::steady_clock;

constexpr std::size_t usual_count = 200;
constexpr Work cost_work{10'000'000};              // for the plan of least cost
constexpr Work step_work{60'000'000};              // for the shortest step: no row comes near
constexpr std::int64_t large_model = 300'000'000;  // parameters, past which one sample is planned

struct Scenario {
  std::string model, card;
  Mode mode = Mode::train;
  Precision precision = Precision::fp32;
  int percent = 0;

  [[nodiscard]] std::string name() const {
    return fmt::format("{} {} {} {} {}", model, card, to_string(mode), to_string(precision),
                       percent);
  }
};

struct Row {
  std::string name;
  double solver_gap = 0, plan_gap = 0;  // of the overhead
  double plan_gap_of_cost = 0;          // of the whole cost
  double packing_loss = 0;              // of the overhead
  double seconds = 0;
  int solves = 0;
  // Of the plan with the shortest step.
  double step_seconds = 0;
  std::optional<double> step_gap;
  double over_best_rule = 0;  // its step over the shortest of any rule's, less 1; 0: no rule fits
  std::string best_rule;
  double step_search_seconds = 0;
  /// The recommended plan's step over that of sqrt(n) checkpointing, less 1; none: the latter does
  /// not keep within the budget, or nothing trains.
  std::optional<double> over_checkpointing;
};

std::vector<std::string> shipped_models() {
  std::vector<std::string> names;
  for (const auto& file :
       std::filesystem::directory_iterator(STOWAGE_SOURCE_DIR "/configs/models")) {
    if (file.path().extension() == ".yaml") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Scenario> all_scenarios(const std::vector<std::string>& models) {
  std::vector<Scenario> all;
  for (const std::string& model : models) {
    for (const char* card : {"rtx3060", "a100-40gb"}) {
      for (const Mode mode : {Mode::train, Mode::inference}) {
        for (const Precision precision : {Precision::fp32, Precision::amp_bf16}) {
          for (const int percent : {25, 40, 60, 80, 95}) {
            all.push_back({model, card, mode, precision, percent});
          }
        }
      }
    }
  }
  return all;
}

Host usual_host() {
  Host host;
  host.name = "bench";
  host.cpu_flops = 2e11;
  host.memory_bandwidth = 2e10;
  return host;
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// The step of sqrt(n) checkpointing with all else on the GPU; none: it does not fit.
std::optional<double> checkpointed_step(const Planning& planning) {
  const StepGraph& graph = *planning.document.graph;
  if (graph.settings.mode != Mode::train) return std::nullopt;
  auto rewritten = with_checkpoints(graph, sqrt_segments(graph));
  if (!rewritten) return std::nullopt;
  auto of = make_case(planning, std::make_shared<const StepGraph>(*std::move(rewritten)));
  if (!of) return std::nullopt;
  const GpuBudget& budget = planning.request.budget;
  const Plan plan = assemble_plan(of->step, of->on_gpu, all_gpu_placement(of->on_gpu, budget),
                                  {.budget = budget, .last_effort = 20});
  if (!budget.fits(plan.totals.arena)) return std::nullopt;
  return plan.totals.step_seconds;
}

/// The shortest step of the plans that leave the training as it is.
double recommended_step(const PlanRequest& request, WorkspaceSource& workspaces,
                        const ProposalOptions& options, double cheapest) {
  const auto plans = make_plans(request, workspaces, options);
  if (!plans) return cheapest;
  double best = cheapest;
  for (const Plan& plan : *plans) {
    const StepGraph& graph = *plan.step.graph;
    if (graph.settings.micro_batches > 1 && changes_training_in_parts(graph)) continue;
    best = std::min(best, plan.totals.step_seconds);
  }
  return best;
}

Result<void> measure_step(const PlanRequest& request, WorkspaceSource& workspaces, Row& row) {
  const ProposalOptions options{.work = step_work};
  const Planning planning(request, workspaces, options);
  auto of = make_case(planning, planning.document.graph);
  if (!of) return tl::unexpected(of.error());
  const auto start = Clock::now();
  const auto plan = cheapest_plan(planning, *of);
  if (!plan) return tl::unexpected(plan.error());
  row.step_search_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  row.step_seconds = plan->totals.step_seconds;
  row.step_gap = plan->totals.step_gap();
  double best = 0;
  for (const SwapPolicy policy : swap_policies) {
    const auto placement = placed_by(policy, of->step, of->placed, request.budget);
    if (!placement) continue;
    const Plan by_rule =
        assemble_plan(of->step, of->placed, *placement, {.budget = request.budget});
    if (!request.budget.fits(by_rule.totals.arena)) continue;
    if (best > 0 && by_rule.totals.step_seconds >= best) continue;
    best = by_rule.totals.step_seconds;
    row.best_rule = to_string(policy);
  }
  if (best > 0) row.over_best_rule = plan->totals.step_seconds / best - 1;
  if (const auto checkpointed = checkpointed_step(planning)) {
    double step = plan->totals.step_seconds;
    // The recommended plan is no slower than this one.
    if (step > *checkpointed) step = recommended_step(request, workspaces, options, step);
    row.over_checkpointing = step / *checkpointed - 1;
  }
  return {};
}

/// The row, or why there is none.
Result<Row> measured(const Scenario& scenario, bool with_step, Work limit) {
  auto shipped =
      shipped_step(scenario.model, scenario.card, {.mode = scenario.mode}, scenario.precision);
  if (!shipped) return tl::unexpected(shipped.error());
  auto& [description, card, document] = *shipped;
  const auto workspaces = rule_workspace_source(card.compute_capability);
  Bytes parameters;
  for (const Storage& storage : document.graph->storages) {
    if (storage.storage_class == StorageClass::parameter) parameters += Bytes(storage.bytes.at(1));
  }
  const std::int64_t batch = parameters.count() > 4 * large_model ? 1 : 16;
  const auto step = size_step(document.graph, batch, *workspaces);
  if (!step) return tl::unexpected(step.error());
  const auto problem = make_problem(*step, make_rates(card, usual_host()), {});
  const Plan all =
      assemble_plan(*step, problem, all_gpu_placement(problem), {.budget = GpuBudget::unlimited()});
  const Bytes budget(all.totals.arena_lower_bound.count() / 100 * scenario.percent);
  const auto start = Clock::now();
  WorkBudget work(limit);
  const auto fitted = plan_within(*step, problem, problem, {.budget = budget, .work = &work});
  if (!fitted) return tl::unexpected(fitted.error());
  Row row{.name = scenario.name(), .solves = fitted->solves};
  row.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const Solution& solution = fitted->solution;
  const double solved = solution.evaluation.cost_seconds, bound = solution.cost_lower_bound_seconds;
  const double cost = evaluate(problem, fitted->placement).cost_seconds;
  const auto gap = [&](double of) {
    const double above = of - bound;
    return above <= 1e-9 * of ? 0 : share(above, of - solution.all_gpu_cost_seconds);
  };
  row.solver_gap = gap(solved);
  row.plan_gap = gap(cost);
  row.plan_gap_of_cost = share(cost - bound, cost);
  row.packing_loss = share(cost - solved, cost - solution.all_gpu_cost_seconds);
  if (with_step) {
    PlanRequest request{.document = std::move(document),
                        .batch = WholeBatch(batch),
                        .card = card,
                        .host = usual_host(),
                        .budget = budget,
                        .levers = {.operators = false}};
    if (auto step_measured = measure_step(request, *workspaces, row); !step_measured) {
      return tl::unexpected(step_measured.error());
    }
  }
  return row;
}

void summarise(const char* what, const std::vector<double>& values) {
  fmt::print("{:<24} median {:6.2f}  90th percentile {:6.2f}  worst {:6.2f}\n", what,
             100 * quantile(values, 0.5), 100 * quantile(values, 0.9), 100 * quantile(values, 1));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> models, only;
  bool all = false, with_step = true;
  std::size_t count = usual_count;
  std::uint64_t seed = 1;
  Work work = cost_work;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--all") {
      all = true;
    } else if (word == "--additive") {
      with_step = false;
    } else if (word == "--only" && i + 1 < argc) {
      only.emplace_back(argv[++i]);
    } else if (word == "--count" && i + 1 < argc) {
      count = std::stoul(argv[++i]);
    } else if (word == "--work" && i + 1 < argc) {
      work.units = std::stoll(argv[++i]);
    } else if (word == "--seed" && i + 1 < argc) {
      seed = std::stoull(argv[++i]);
    } else {
      models.push_back(word);
    }
  }
  std::vector<Scenario> scenarios = all_scenarios(models.empty() ? shipped_models() : models);
  if (!only.empty()) {
    std::erase_if(scenarios, [&](const Scenario& s) {
      return std::ranges::find(only, s.name()) == only.end();
    });
  } else if (!all && scenarios.size() > count) {
    const auto rank = [&](const Scenario& s) {
      return hash_text(fmt::format("{} {}", seed, s.name()));
    };
    std::sort(scenarios.begin(), scenarios.end(),
              [&](const Scenario& a, const Scenario& b) { return rank(a) < rank(b); });
    scenarios.resize(count);
  }
  std::vector<Row> rows;
  std::vector<std::string> without;
  fmt::print("{:>8} {:>8} {:>8} {:>7} {:>7} {:>9} {:>8} {:>9} {:>7} {:>9}  scenario\n", "solver",
             "packing", "plan", "solves", "s", "step ms", "step gap", "over rule", "s", "sqrt(n)");
  for (const Scenario& scenario : scenarios) {
    const auto row = measured(scenario, with_step, work);
    if (!row) {
      without.push_back(scenario.name() + ": " + row.error().front().message);
      continue;
    }
    const std::string over_checkpointing =
        row->over_checkpointing ? fmt::format("{:.2f}%", 100 * *row->over_checkpointing) : "-";
    fmt::print(
        "{:7.2f}% {:7.2f}% {:7.2f}% {:>7} {:7.2f} {:9.3f} {:7.2f}% {:8.2f}% {:7.2f} {:>9}  {} {}\n",
        100 * row->solver_gap, 100 * row->packing_loss, 100 * row->plan_gap, row->solves,
        row->seconds, 1e3 * row->step_seconds, 100 * row->step_gap.value_or(0),
        100 * row->over_best_rule, row->step_search_seconds, over_checkpointing, row->name,
        row->best_rule);
    std::fflush(stdout);
    rows.push_back(*row);
  }
  for (const std::string& why : without) fmt::print("no plan: {}\n", why);
  const auto column = [&](double Row::*value) {
    std::vector<double> values;
    values.reserve(rows.size());
    for (const Row& row : rows) values.push_back(row.*value);
    return values;
  };
  fmt::print("{} plans, {} scenarios without; percent:\n", rows.size(), without.size());
  summarise("solver's overhead gap", column(&Row::solver_gap));
  summarise("lost in packing", column(&Row::packing_loss));
  summarise("plan's overhead gap", column(&Row::plan_gap));
  summarise("plan's gap of the cost", column(&Row::plan_gap_of_cost));
  if (with_step) {
    std::vector<double> gaps;
    gaps.reserve(rows.size());
    for (const Row& row : rows) gaps.push_back(row.step_gap.value_or(0));
    summarise("step gap", gaps);
    summarise("step over the best rule", column(&Row::over_best_rule));
    std::vector<double> checkpointing;
    for (const Row& row : rows) {
      if (row.over_checkpointing) checkpointing.push_back(*row.over_checkpointing);
    }
    fmt::print("sqrt(n) checkpointing fits in {}:\n", checkpointing.size());
    summarise("step over sqrt(n)", checkpointing);
    const std::vector<double> seconds = column(&Row::step_search_seconds);
    fmt::print("{:<24} median {:6.2f}  90th percentile {:6.2f}  worst {:6.2f} s\n", "search",
               quantile(seconds, 0.5), quantile(seconds, 0.9), quantile(seconds, 1));
  }
  return 0;
}
