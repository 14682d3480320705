#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "cli/output/table.hpp"
#include "cli/report/picture_json.hpp"
#include "cli/report/step_report.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

// A lane has thousands of spans, so that times are whole multiples of this.
constexpr double lane_unit_seconds = 1e-7;

std::int64_t lane_time(double seconds) { return std::llround(seconds / lane_unit_seconds); }

Json::Array node_spans(const Plan& plan, const LaneTimeline& lanes, Device device) {
  Json::Array spans;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (device_of(plan, plan.nodes[i]) != device) continue;
    spans.emplace_back(Json::Array{static_cast<std::int64_t>(i), lane_time(lanes.nodes[i].begin),
                                   lane_time(lanes.nodes[i].end)});
  }
  return spans;
}

Json::Array copy_spans(const Plan& plan, const LaneTimeline& lanes, Direction direction) {
  Json::Array spans;
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const Transfer& transfer = plan.transfers[i];
    if (direction_of(plan, transfer) != direction) continue;
    const Storage& storage = plan.storage(transfer.storage);
    spans.emplace_back(Json::Array{storage.name, lane_time(lanes.transfers[i].begin),
                                   lane_time(lanes.transfers[i].end), plan.bytes(transfer.storage),
                                   to_string(storage.storage_class)});
  }
  return spans;
}

Json lanes_json(const Plan& plan, const LaneTimeline& lanes) {
  return Json::Object{{"unit_seconds", lane_unit_seconds},
                      {"step", lane_time(lanes.step_seconds)},
                      {"gpu", node_spans(plan, lanes, Device::gpu)},
                      {"cpu", node_spans(plan, lanes, Device::cpu)},
                      {"to_host", copy_spans(plan, lanes, Direction::d2h)},
                      {"to_gpu", copy_spans(plan, lanes, Direction::h2d)}};
}

Json::Array hooked_spans(const ProposedLanes& of, const std::vector<HookedSpan>& lane) {
  Json::Array spans;
  for (const HookedSpan& span : lane) {
    Json::Array row;
    if (span.node.valid()) {
      const KernelNode& node = of.graph->node(span.node);
      row = {node.name, lane_time(span.begin), lane_time(span.end), to_string(node.phase)};
    } else if (span.storage.valid()) {
      const Storage& storage = of.graph->storage(span.storage);
      row = {storage.name, lane_time(span.begin), lane_time(span.end),
             of.storage_bytes[span.storage.index()], to_string(storage.storage_class)};
    } else {
      row = {"optimizer.step()", lane_time(span.begin), lane_time(span.end),
             to_string(Phase::update)};
    }
    spans.emplace_back(std::move(row));
  }
  return spans;
}

Json hooked_lanes_json(const ProposedLanes& of) {
  return Json::Object{{"unit_seconds", lane_unit_seconds},
                      {"step", lane_time(of.seconds)},
                      {"gpu", hooked_spans(of, of.lanes.gpu)},
                      {"cpu", hooked_spans(of, of.lanes.cpu)},
                      {"to_host", hooked_spans(of, of.lanes.to_host)},
                      {"to_gpu", hooked_spans(of, of.lanes.from_host)}};
}

std::string_view where_word(StoredWhere where) {
  switch (where) {
    case StoredWhere::gpu:
      return "gpu";
    case StoredWhere::both_sides:
      return "both_sides";
    case StoredWhere::host:
      return "host";
  }
  return "gpu";
}

/// The largest by name, and of all of them the sums by class and side.
Json places_json(const Plan& plan, const std::vector<StorageSides>& places) {
  std::array<std::array<Bytes, 3>, storage_class_count> sums{};
  Json::Array listed;
  for (const StorageSides& place : places) {
    const Storage& storage = plan.storage(place.storage);
    sums[static_cast<std::size_t>(storage.storage_class)][static_cast<std::size_t>(place.where)] +=
        place.bytes;
    if (listed.size() == listed_tensors) continue;
    listed.emplace_back(Json::Array{storage.name, to_string(storage.storage_class),
                                    plan.step.graph->layer(storage.op), place.bytes,
                                    where_word(place.where), place.downloads, place.uploads});
  }
  Json::Array by_class;
  for (int c = 0; c < storage_class_count; ++c) {
    const auto& [gpu, both, host] = sums[static_cast<std::size_t>(c)];
    if (gpu + both + host == Bytes()) continue;
    by_class.emplace_back(Json::Object{{"key", to_string(static_cast<StorageClass>(c))},
                                       {"name", spaced(to_string(static_cast<StorageClass>(c)))},
                                       {"gpu_bytes", gpu},
                                       {"both_sides_bytes", both},
                                       {"host_bytes", host}});
  }
  return Json::Object{{"by_class", std::move(by_class)}, {"storages", std::move(listed)}};
}

Json frontier_json(const Frontier& frontier) {
  Json::Array points;
  for (const FrontierPoint& point : frontier.points) {
    points.emplace_back(
        Json::Object{{"budget_bytes", point.budget.bytes},
                     {"plan", point.plan},
                     {"step_seconds", point.step_seconds},
                     {"step_lower_bound_seconds", number_or_null(point.step_lower_bound_seconds)}});
  }
  return points;
}

/// Null: of a side on which nothing ever lies.
Json host_memory_json(const MemoryOverStep& memory) {
  return memory.peak_bytes() == Bytes() ? Json() : memory_json(memory, false);
}

std::string title_of(const PlanRequest& request) {
  return describe_step(summarise_step(request.document), request.batch.samples);
}

Json::Object beginning(std::string_view command, const PlanRequest& request) {
  return {{"command", command}, {"title", title_of(request)}, {"card", request.card.name}};
}

Json::Array offload_json(const PytorchPlan& plan) {
  Json::Array list;
  for (const OffloadedStorage& storage : plan.offload) {
    std::string keys;
    for (const SavedName& saved : storage.saved) {
      keys += keys.empty() ? saved.key : ", " + saved.key;
    }
    list.emplace_back(Json::Object{{"keys", std::move(keys)},
                                   {"bytes", Bytes(storage.bytes.at(plan.batch))},
                                   {"start", storage.start},
                                   {"release", storage.release},
                                   {"fetch", storage.fetch}});
  }
  return list;
}

}  // namespace

PageContent page_of(const PlanPage& page, const PlanAnswer& found, const Frontier* frontier,
                    const RenderedAnswer& answer) {
  const Plan& plan = found.plans[page.shown];
  PageContent content{.title = title_of(found.request),
                      .shown = beginning("plan", found.request),
                      .answer = answer};
  Json::Object& shown = content.shown;
  shown.emplace_back("plan", plan.name);
  shown.emplace_back("memory", memory_json(page.gpu));
  shown.emplace_back("pinned", host_memory_json(page.pinned));
  shown.emplace_back("pageable", host_memory_json(page.pageable));
  shown.emplace_back("room_bytes", plan.inputs.budget.bytes);
  shown.emplace_back("lanes", lanes_json(plan, page.lanes));
  shown.emplace_back("places", places_json(plan, page.places));
  shown.emplace_back("frontier", frontier != nullptr ? frontier_json(*frontier) : Json());
  return content;
}

PageContent page_of(const PytorchPlanPage& page, const PytorchAnswer& found,
                    const RenderedAnswer& answer) {
  const PytorchProposal& proposal = found.proposals[page.shown];
  PageContent content{.title = title_of(found.request) + ", for PyTorch",
                      .shown = beginning("plan-for-pytorch", found.request),
                      .answer = answer};
  content.shown.emplace_back("plan", proposal.name);
  content.shown.emplace_back("memory", memory_json(page.memory));
  content.shown.emplace_back("room_bytes", page.room);
  content.shown.emplace_back("lanes", hooked_lanes_json(proposal.lanes));
  content.shown.emplace_back("offload", offload_json(proposal.plan));
  return content;
}

PageContent page_without_plan(const PlanRequest& request, const RenderedAnswer& answer) {
  return {.title = title_of(request), .shown = beginning("no-plan", request), .answer = answer};
}

}  // namespace stowage
