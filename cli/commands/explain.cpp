#include <fmt/format.h>

#include <cmath>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "cli/report/placement_report.hpp"
#include "cli/requested/requested_plan.hpp"
#include "planner/explain/alternatives.hpp"
#include "planner/explain/find_name.hpp"

namespace stowage {

namespace {

Selection selection_of(const PlannedProblem& planned, const NamedParts& things) {
  Selection selection;
  for (const NodeId node : things.nodes) {
    selection.operations.push_back(static_cast<std::int32_t>(node.index()));
  }
  for (const StorageId storage : things.storages) {
    const std::int32_t item = planned.item_of[storage.index()];
    if (item >= 0) selection.items.push_back(item);
  }
  return selection;
}

struct ToldCosts {
  Table table;
  Json::Array json;
};

ToldCosts told_costs(const Plan& plan, const std::vector<AlternativeCost>& costs) {
  ToldCosts told;
  told.table = {.one_size_scale = true,
                .columns = {{"Cost", "cost_seconds"},
                            {"Added", "added_seconds"},
                            {"PCIe", "pcie_bytes"},
                            {"GPU peak", "gpu_peak_bytes"},
                            {"Alternative", "alternative"}}};
  for (const AlternativeCost& cost : costs) {
    const bool planned = cost.alternative == Alternative::as_planned;
    const double added = cost.cost_seconds - costs.front().cost_seconds;
    const bool fits = plan.inputs.budget.fits(cost.gpu_peak);
    std::string words(to_string(cost.alternative));
    if (!fits) {
      words += fmt::format(": {} over the budget at '{}'",
                           format_bytes(plan.inputs.budget.excess(cost.gpu_peak)),
                           plan.kernel(NodeId{cost.peak_step}).name);
    }
    told.table.rows.push_back({{Duration{cost.cost_seconds}, planned ? Cell() : Duration{added},
                                cost.h2d_bytes + cost.d2h_bytes, cost.gpu_peak, words}});
    told.json.emplace_back(Json::Object{{"alternative", to_string(cost.alternative)},
                                        {"cost_seconds", cost.cost_seconds},
                                        {"added_seconds", added},
                                        {"h2d_bytes", cost.h2d_bytes},
                                        {"d2h_bytes", cost.d2h_bytes},
                                        {"pcie_bytes", cost.h2d_bytes + cost.d2h_bytes},
                                        {"gpu_peak_bytes", cost.gpu_peak},
                                        {"fits", fits}});
  }
  return told;
}

std::string heading(const Plan& plan, const std::string& name, const NamedParts& things) {
  return fmt::format("'{}' in '{}' for {}: {} kernels, {} storages", name, plan.name,
                     plan.inputs.model_name, things.nodes.size(), things.storages.size());
}

}  // namespace

Result<Answer> run_explain(const ExplainRequest& request) {
  const auto plan = requested_plan(request.plan);
  if (!plan) return tl::unexpected(plan.error());
  auto things = find_name(*plan, request.name);
  if (!things) {
    things.error().front().span = command_line_error("").span;
    return tl::unexpected(std::move(things.error()));
  }
  const auto planned = planned_problem(*plan);
  if (!planned) return tl::unexpected(planned.error());

  ToldPlacement placement = told_placement(*plan, *planned, *things);
  ToldCosts costs = told_costs(*plan, alternative_costs(*planned, selection_of(*planned, *things)));
  Answer answer;
  Report& out = answer.report;
  out.json = {{"plan", plan->name},
              {"name", request.name},
              {"budget_bytes", plan->inputs.budget.bytes},
              {"placement", std::move(placement.json)},
              {"alternatives", std::move(costs.json)}};
  out.say(heading(*plan, request.name, *things), Tone::heading);
  out.listing = placement.table;
  out.show(std::move(placement.table));
  out.say(fmt::format("\nThe step's cost if {} were elsewhere and all else as planned:",
                      things->nodes.size() + things->storages.size() == 1 ? "it" : "they"));
  out.show(std::move(costs.table));
  out.say(
      "  Cost: kernels and copies added up, without overlap. GPU peak: without copies in flight.");
  return answer;
}

}  // namespace stowage
