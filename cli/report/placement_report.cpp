#include "cli/report/placement_report.hpp"

#include <fmt/format.h>

#include <string>

#include "planner/explain/placement_log.hpp"
#include "planner/problem/step_names.hpp"

namespace stowage {

namespace {

constexpr std::string_view node_kind = "operator", variable_kind = "variable",
                           other_kind = "storage";

void tell(ToldPlacement& told, Json::Array& rows, std::string_view kind, std::string_view device,
          const std::string& name, Bytes bytes, const PlacementReason& reason) {
  const std::string words = in_words(reason);
  told.table.rows.push_back({{std::string(device), std::string(kind),
                              bytes > Bytes() ? Cell(bytes) : Cell(), words, name}});
  rows.emplace_back(Json::Object{{"name", name},
                                 {"kind", kind},
                                 {"device", device},
                                 {"bytes", kind == node_kind ? Json() : Json(bytes)},
                                 {"cause", to_string(reason.cause)},
                                 {"pin", reason.pin.empty() ? Json() : Json(reason.pin)},
                                 {"seconds", reason.seconds},
                                 {"reason", words}});
}

}  // namespace

std::string_view device_word(Device device) { return device == Device::gpu ? "gpu" : "cpu"; }

NamedParts logged_things(const Plan& plan, const PlannedProblem& planned) {
  NamedParts things{.is_scope = true};
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) things.nodes.push_back(NodeId::of(i));
  for (std::size_t i = 0; i < plan.step.graph->storages.size(); ++i) {
    const StorageId id = StorageId::of(i);
    const StorageState state = state_of(planned, id);
    if (!is_placeable(plan.storage(id)) || state == StorageState::unused) continue;
    const bool pinned = plan.pins.of(id) != Pin::free;
    if (is_variable(plan.storage(id)) || state != StorageState::on_gpu || pinned) {
      things.storages.push_back(id);
    }
  }
  return things;
}

ToldPlacement told_placement(const Plan& plan, const PlannedProblem& planned,
                             const NamedParts& things) {
  ToldPlacement told;
  told.table.columns = {{"Device", "device"},
                        {"Kind", "kind"},
                        {"Size", "bytes"},
                        {"Reason", "reason"},
                        {"Name", "name"}};
  Json::Array rows;
  for (const NodeId node : things.nodes) {
    tell(told, rows, node_kind, device_word(planned.placement.device[node.index()]),
         plan.kernel(node).name, Bytes(), reason_of(plan, planned, node));
  }
  for (const StorageId storage : things.storages) {
    const Storage& described = plan.storage(storage);
    tell(told, rows, is_variable(described) ? variable_kind : other_kind,
         to_string(state_of(planned, storage)), described.name, plan.bytes(storage),
         reason_of(plan, planned, storage));
  }
  told.json = std::move(rows);
  return told;
}

Result<void> add_placement_log(const Plan& plan, Report& report) {
  const auto planned = planned_problem(plan);
  if (!planned) return tl::unexpected(planned.error());
  ToldPlacement told = told_placement(plan, *planned, logged_things(plan, *planned));
  report.json.emplace_back("placement", std::move(told.json));
  report.say(fmt::format("\nPlacement of '{}': operators, variables, and what else leaves the GPU",
                         plan.name),
             Tone::heading);
  report.listing = told.table;
  report.show(std::move(told.table));
  return {};
}

}  // namespace stowage
