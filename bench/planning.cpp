// What the planner's answers lose, and where: for each shipped model, budget, mode and precision
// the overhead gap of the solver's placement, of the plan that was made of it, and what packing
// cost.
//
//   planning [--all] [--seed N] [MODEL...]
//
// By default 200 of all combinations, chosen by a hash of their names. The problem is the additive
// one, with forward and backward on the GPU and updates where they cost least.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "estimator/base/hash.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/assemble/plan_within.hpp"
#include "planner/problem/rates.hpp"

namespace {

using namespace stowage;
using Clock = std::chrono::steady_clock;

constexpr std::size_t usual_count = 200;
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

/// The row, or why there is none.
Result<Row> measured(const Scenario& scenario) {
  const auto source = find_model(scenario.model, STOWAGE_SOURCE_DIR "/configs/models");
  if (!source) return tl::unexpected(source.error());
  ModelOptions options = source->options;
  options.precision = scenario.precision;
  const auto model = load_model(source->source, options);
  if (!model) return tl::unexpected(model.error());
  const auto card = find_card(scenario.card, STOWAGE_SOURCE_DIR "/configs/gpus");
  if (!card) return tl::unexpected(card.error());
  const auto chosen = choose_step(*model, {.mode = scenario.mode,
                                           .kernels = KernelSet::stowage,
                                           .compute_capability = card->card.compute_capability});
  if (!chosen) return tl::unexpected(chosen.error());
  auto document = make_document(*model, *chosen, Runtime::stowage, {}, step_alone);
  if (!document) return tl::unexpected(document.error());
  const auto workspaces = rule_workspace_source(card->card.compute_capability);
  Bytes parameters;
  for (const Storage& storage : document->graph->storages) {
    if (storage.storage_class == StorageClass::parameter) parameters += Bytes(storage.bytes.at(1));
  }
  const std::int64_t batch = parameters.count() > 4 * large_model ? 1 : 16;
  const auto step = size_step(document->graph, batch, *workspaces);
  if (!step) return tl::unexpected(step.error());
  const auto problem = make_problem(*step, make_rates(card->card, usual_host()), {});
  const Plan all =
      assemble_plan(*step, problem, all_gpu_placement(problem), {.budget = unlimited_arena});
  const Bytes budget(all.totals.arena_lower_bound.count() / 100 * scenario.percent);
  const auto start = Clock::now();
  const auto fitted = plan_within(*step, problem, problem, {.budget = budget});
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
  return row;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

void summarise(const char* what, const std::vector<double>& values) {
  fmt::print("{:<24} median {:6.2f}  90th percentile {:6.2f}  worst {:6.2f}\n", what,
             100 * quantile(values, 0.5), 100 * quantile(values, 0.9), 100 * quantile(values, 1));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> models;
  bool all = false;
  std::uint64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--all") {
      all = true;
    } else if (word == "--seed" && i + 1 < argc) {
      seed = std::stoull(argv[++i]);
    } else {
      models.push_back(word);
    }
  }
  std::vector<Scenario> scenarios = all_scenarios(models.empty() ? shipped_models() : models);
  if (!all && scenarios.size() > usual_count) {
    const auto rank = [&](const Scenario& s) {
      return hash_text(fmt::format("{} {}", seed, s.name()));
    };
    std::sort(scenarios.begin(), scenarios.end(),
              [&](const Scenario& a, const Scenario& b) { return rank(a) < rank(b); });
    scenarios.resize(usual_count);
  }
  std::vector<Row> rows;
  std::vector<std::string> without;
  fmt::print("{:>8} {:>8} {:>8} {:>7} {:>7}  scenario\n", "solver", "packing", "plan", "solves",
             "s");
  for (const Scenario& scenario : scenarios) {
    const auto row = measured(scenario);
    if (!row) {
      without.push_back(scenario.name() + ": " + row.error().front().message);
      continue;
    }
    fmt::print("{:7.2f}% {:7.2f}% {:7.2f}% {:>7} {:7.2f}  {}\n", 100 * row->solver_gap,
               100 * row->packing_loss, 100 * row->plan_gap, row->solves, row->seconds, row->name);
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
  return 0;
}
