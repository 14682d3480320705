#include "gpu_probe/run/arena_places.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "estimator/arena/arena.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {
namespace {

static_assert(canary_bytes.count() % arena_alignment.count() == 0);

/// A residence or workspace that needs a place during some steps.
struct PlacedBlock {
  StepRange steps;
  Bytes bytes;
  Bytes* offset = nullptr;
};

/// Gives every block the lowest place that is free from its first step on. Places are aligned as in
/// a plan: cuBLAS refuses a workspace that is aligned less (seen on an H100). Returns the arena's
/// size.
Bytes place_in_order(std::vector<PlacedBlock> blocks) {
  std::stable_sort(blocks.begin(), blocks.end(), [](const PlacedBlock& a, const PlacedBlock& b) {
    return a.steps.begin < b.steps.begin;
  });
  struct Taken {
    Bytes until;
    std::int32_t end;
  };
  std::map<Bytes, Taken> taken;
  Bytes arena;
  for (const PlacedBlock& block : blocks) {
    std::erase_if(taken, [&](const auto& t) { return t.second.end <= block.steps.begin; });
    const Bytes room = round_up(block.bytes + 2 * canary_bytes, arena_alignment);
    Bytes at;
    for (const auto& [offset, other] : taken) {
      if (offset >= at + room) break;
      at = std::max(at, other.until);
    }
    taken[at] = {at + room, block.steps.end};
    *block.offset = at + canary_bytes;
    arena = std::max(arena, at + room);
  }
  return arena;
}

Bytes bytes_of(const Plan& plan, const Residence& residence) {
  return plan.bytes(residence.storage);
}

}  // namespace

ArenaPlaces exact_places(const Plan& plan) {
  ArenaPlaces places;
  places.gpu_arena = plan.totals.arena;
  for (const Residence& residence : residences_in(plan, MemoryKind::device))
    places.gpu.push_back(residence.offset);
  places.pinned = plan.totals.host_peak;
  for (const Residence& residence : residences_on(plan, Device::cpu)) {
    places.host.push_back(residence.offset);
    places.host_arena = std::max(places.host_arena, residence.offset + bytes_of(plan, residence));
  }
  for (const PlannedNode& node : plan.nodes) places.workspace.push_back(node.workspace_offset);
  return places;
}

ArenaPlaces padded_places(const Plan& plan) {
  ArenaPlaces places;
  const std::vector<Residence>& gpu = residences_in(plan, MemoryKind::device);
  const std::vector<Residence> host = residences_on(plan, Device::cpu);
  places.canary = canary_bytes;
  places.gpu.resize(gpu.size());
  places.host.resize(host.size());
  places.workspace.resize(plan.nodes.size());
  std::vector<PlacedBlock> on_gpu, pinned, pageable;
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    on_gpu.push_back({gpu[i].steps, bytes_of(plan, gpu[i]), &places.gpu[i]});
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const auto step = static_cast<std::int32_t>(i);
    if (plan.nodes[i].workspace == Bytes(0)) continue;
    on_gpu.push_back({StepRange::single(step), plan.nodes[i].workspace, &places.workspace[i]});
  }
  const std::size_t copied_to = residences_in(plan, MemoryKind::pinned).size();
  for (std::size_t i = 0; i < host.size(); ++i) {
    (i < copied_to ? pinned : pageable)
        .push_back({host[i].steps, bytes_of(plan, host[i]), &places.host[i]});
  }
  places.gpu_arena = place_in_order(std::move(on_gpu));
  places.pinned = place_in_order(std::move(pinned));
  places.host_arena = places.pinned + place_in_order(std::move(pageable));
  for (std::size_t i = copied_to; i < host.size(); ++i) places.host[i] += places.pinned;
  return places;
}

}  // namespace stowage
