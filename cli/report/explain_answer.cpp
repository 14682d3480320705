#include "cli/report/explain_answer.hpp"

#include <fmt/format.h>

#include "cli/report/placement_report.hpp"

namespace stowage {

namespace {

bool fits(const ExplainAnswer& found, const AlternativeCost& cost) {
  return cost.gpu_peak <= found.plan.inputs.budget;
}

double added_seconds(const ExplainAnswer& found, const AlternativeCost& cost) {
  return cost.cost_seconds - found.costs.front().cost_seconds;
}

Table cost_table(const ExplainAnswer& found) {
  Table table{.one_size_scale = true,
              .columns = {{"Cost", "cost_seconds"},
                          {"Added", "added_seconds"},
                          {"PCIe", "pcie_bytes"},
                          {"GPU peak", "gpu_peak_bytes"},
                          {"Alternative", "alternative"}}};
  for (const AlternativeCost& cost : found.costs) {
    std::string words(to_string(cost.alternative));
    if (!fits(found, cost)) {
      words += fmt::format(": {} over the budget at '{}'",
                           format_bytes(cost.gpu_peak - found.plan.inputs.budget),
                           found.plan.kernel(NodeId{cost.peak_step}).name);
    }
    const bool planned = cost.alternative == Alternative::as_planned;
    table.rows.push_back(
        {{Duration{cost.cost_seconds}, planned ? Cell() : Duration{added_seconds(found, cost)},
          cost.h2d_bytes + cost.d2h_bytes, cost.gpu_peak, words}});
  }
  return table;
}

Json costs_json(const ExplainAnswer& found) {
  Json::Array rows;
  for (const AlternativeCost& cost : found.costs) {
    rows.emplace_back(Json::Object{{"alternative", to_string(cost.alternative)},
                                   {"cost_seconds", cost.cost_seconds},
                                   {"added_seconds", added_seconds(found, cost)},
                                   {"h2d_bytes", cost.h2d_bytes},
                                   {"d2h_bytes", cost.d2h_bytes},
                                   {"pcie_bytes", cost.h2d_bytes + cost.d2h_bytes},
                                   {"gpu_peak_bytes", cost.gpu_peak},
                                   {"fits", fits(found, cost)}});
  }
  return rows;
}

}  // namespace

RenderedAnswer rendered(const ExplainAnswer& found) {
  RenderedAnswer answer;
  Report& out = answer.report;
  out.json = {{"plan", found.plan.name},
              {"name", found.name},
              {"budget_bytes", found.plan.inputs.budget},
              {"placement", placement_json(found.placement)},
              {"alternatives", costs_json(found)}};
  out.say(fmt::format("'{}' in '{}' for {}: {} kernels, {} storages", found.name, found.plan.name,
                      found.plan.inputs.model_name, found.kernels, found.storages),
          Tone::heading);
  out.listing = placement_table(found.placement);
  out.show(out.listing);
  out.say(fmt::format("\nThe step's cost if {} were elsewhere and all else as planned:",
                      found.kernels + found.storages == 1 ? "it" : "they"));
  out.show(cost_table(found));
  out.say(
      "  Cost: kernels and copies added up, without overlap. GPU peak: without copies in flight.");
  return answer;
}

}  // namespace stowage
