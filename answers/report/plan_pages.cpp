#include "answers/report/plan_pages.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "answers/subject/workspaces.hpp"
#include "estimator/check/batch_search.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/validate/node_seconds.hpp"

namespace stowage {

LaneTimeline lanes_of(const Plan& plan) {
  std::vector<double> nodes;
  nodes.reserve(plan.nodes.size());
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) nodes.push_back(node_seconds(plan, i));
  std::vector<double> copies;
  copies.reserve(plan.transfers.size());
  for (const Transfer& transfer : plan.transfers) {
    copies.push_back(copy_seconds(plan, transfer.storage, plan.machine.link(transfer.link)));
  }
  return simulate_lanes(nodes, plan.transfers, copies, cpu_windows(plan));
}

std::vector<StorageSides> storage_places(const Plan& plan) {
  std::vector<StorageSides> places;
  const std::size_t count = plan.step.storage_bytes.size();
  std::vector<StorageSides> by_storage(count);
  std::vector<bool> is_on_gpu(count), is_anywhere(count);
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::pageable}) {
    for (const Residence& residence : residences_in(plan, kind)) {
      is_anywhere[residence.storage.index()] = true;
      if (kind == MemoryKind::device) is_on_gpu[residence.storage.index()] = true;
    }
  }
  for (const Transfer& transfer : plan.transfers) {
    StorageSides& place = by_storage[transfer.storage.index()];
    ++(direction_of(plan, transfer) == Direction::h2d ? place.uploads : place.downloads);
  }
  for (std::size_t i = 0; i < count; ++i) {
    StorageSides place = by_storage[i];
    place.storage = StorageId::of(i);
    place.bytes = plan.bytes(place.storage);
    if (!is_anywhere[i] || place.bytes == Bytes()) continue;
    const bool moves = place.uploads + place.downloads > 0;
    place.where = moves          ? StoredWhere::both_sides
                  : is_on_gpu[i] ? StoredWhere::gpu
                                 : StoredWhere::host;
    places.push_back(place);
  }
  std::ranges::stable_sort(places, std::greater<>(), &StorageSides::bytes);
  return places;
}

PlanPage plan_page(const PlanAnswer& found) {
  PlanPage page{.shown = found.chosen.value_or(0)};
  const Plan& plan = found.plans[page.shown];
  page.gpu = memory_over_step(plan, MemoryKind::device);
  page.pinned = memory_over_step(plan, MemoryKind::pinned);
  page.pageable = memory_over_step(plan, MemoryKind::pageable);
  page.lanes = lanes_of(plan);
  page.places = storage_places(plan);
  return page;
}

Result<PytorchPlanPage> pytorch_plan_page(const PlanQuestion& question,
                                          const PytorchAnswer& found) {
  PytorchPlanPage page{.shown = found.chosen.value_or(0), .room = found.request.available};
  const PytorchProposal& proposal = found.proposals[page.shown];
  const Card& card = found.request.card;
  const std::shared_ptr<const StepGraph>& graph = proposal.report.footprint.graph;
  // As the search has checked it.
  CheckSettings settings = found.process;
  if (proposal.plan.expandable_segments) settings.allocator.expandable_segments = true;
  if (proposal.name != unchanged_step) settings.reserve += usual_margin(*graph, card, settings);
  const Workspaces workspaces = Workspaces::as_asked(question.step, card, settings.runtime);
  const std::int64_t parts = proposal.plan.chunks ? proposal.plan.chunks->parts : 1;
  const auto step = size_step(graph, proposal.plan.batch / parts, workspaces.source());
  if (!step) return tl::unexpected(step.error());
  page.memory = memory_over_step(*step, card, settings, proposal.report.run);
  return page;
}

}  // namespace stowage
