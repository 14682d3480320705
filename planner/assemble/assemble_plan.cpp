#include "planner/assemble/assemble_plan.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>

#include "estimator/arena/arena.hpp"
#include "estimator/base/live_sum.hpp"
#include "planner/assemble/item_moves.hpp"
#include "planner/assemble/lane_schedule.hpp"
#include "planner/assemble/schedule_copies.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

const EngineCost& engine_of(const ResidencyProblem& problem, const Placement& placement,
                            std::size_t node) {
  return problem.operations[node].engines[at(placement.engine[node])];
}

std::vector<double> node_seconds(const ResidencyProblem& problem, const Placement& placement) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < problem.operations.size(); ++i) {
    seconds.push_back(placement.device[i] == Device::gpu ? engine_of(problem, placement, i).seconds
                                                         : problem.operations[i].cpu_seconds);
  }
  return seconds;
}

/// What wants a place in an arena, and which residences or workspaces the place is for.
struct Claims {
  std::vector<ArenaRequest> requests;
  std::vector<std::pair<std::int32_t, Residence>> residences;     ///< (request, without offset)
  std::vector<std::pair<std::int32_t, std::int32_t>> workspaces;  ///< (request, node)

  std::int32_t request(Bytes bytes) {
    requests.push_back({{}, bytes});
    return static_cast<std::int32_t>(requests.size()) - 1;
  }
  void residence(std::int32_t request, StorageId storage, StepRange steps) {
    requests[at(request)].live.push_back(steps);
    residences.push_back({request, {storage, steps, Bytes()}});
  }
};

class Assembly {
 public:
  Assembly(const SizedStep& step, const ResidencyProblem& problem, const Placement& placement,
           const AssemblyOptions& options)
      : step_(step),
        problem_(problem),
        placement_(placement),
        options_(options),
        steps_(static_cast<std::int32_t>(problem.operations.size())),
        moves_(make_moves(problem, placement)) {
    assert(problem.storage_of.size() == problem.items.size());
  }

  /// Of what the placement keeps, before copies are in flight.
  [[nodiscard]] ArenaBound bound() {
    for (const GpuStay& stay : moves_.stays) schedule_.stays.push_back(stay.steps);
    return bound_arena(claim_gpu().requests, options_.budget);
  }

  Plan run() {
    describe();
    if (!schedule_and_pack()) return std::move(plan_);
    const HostClaims host = claim_host();
    const ArenaPacking pinned = pack(host.pinned, Bytes()), pageable = pack(host.pageable, Bytes());
    plan_.in(pinned_memory) = residences(host.pinned, pinned);
    plan_.in(pageable_memory) = residences(host.pageable, pageable);
    plan_.totals.host_peak = pinned.peak;
    plan_.totals.pageable_peak = pageable.peak;
    plan_.totals.gpu_peak = gpu_peak();
    add_transfers();
    plan_.totals.step_seconds = step_seconds();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] StorageId storage_of(std::int32_t item) const {
    return problem_.storage_of[at(item)];
  }
  [[nodiscard]] Bytes bytes_of(std::int32_t item) const { return problem_.items[at(item)].bytes; }
  [[nodiscard]] Bytes workspace(std::int32_t node) const {
    return placement_.device[at(node)] == Device::gpu
               ? engine_of(problem_, placement_, at(node)).workspace
               : Bytes();
  }
  [[nodiscard]] const std::vector<StorageId>& temporaries(std::int32_t node) const {
    return step_.graph->nodes[at(node)].temporaries;
  }

  void describe() {
    plan_.step = step_;
    plan_.step.engines.assign(step_.engines.size(), {});
    plan_.step.benchmark.clear();
    plan_.step.workspace_origin = WorkspaceOrigin::none;
    for (std::int32_t i = 0; i < steps_; ++i) {
      const bool on_gpu = placement_.device[at(i)] == Device::gpu;
      PlannedNode node{on_gpu ? gpu_processor : cpu_processor, "", workspace(i), Bytes()};
      const auto& engines = step_.engines[at(i)];
      if (on_gpu && !engines.empty()) node.engine = engines[at(placement_.engine[at(i)])].name;
      plan_.nodes.push_back(std::move(node));
    }
  }

  /// What the placement keeps is packed first: where that is above the budget, no copies need to
  /// be placed for `must_fit`. Then copies placed by what is left of the budget; where no packing
  /// of that is within the budget, copies take what is free at their items' places. False:
  /// unfinished.
  bool schedule_and_pack() {
    const std::vector<double> seconds = node_seconds(problem_, placement_);
    const CopyRoom room = room_by_sums();
    if (options_.longest_step < std::numeric_limits<double>::infinity() &&
        simulated(seconds, room) >= options_.longest_step) {
      plan_.totals.arena = unlimited_arena;
      return false;
    }
    schedule_.stays.clear();
    for (const GpuStay& stay : moves_.stays) schedule_.stays.push_back(stay.steps);
    Claims claims = claim_gpu();
    ArenaPacking packing;
    if (!pack_kept(claims, packing) && options_.must_fit) {
      plan_.totals.arena = packing.peak;
      return false;
    }
    if (packing.peak > options_.budget || !schedule_by_sums(seconds, room, claims, packing)) {
      schedule_ = schedule_lanes(problem_, placement_, moves_, seconds,
                                 room_by_places(room, claims, packing));
      claims = claim_gpu();
      packing.lower_bound = live_peak(claims);
    }
    plan_.in(gpu_memory) = residences(claims, packing);
    for (const auto& [request, node] : claims.workspaces) {
      plan_.nodes[at(node)].workspace_offset = packing.offsets[at(request)];
    }
    take_windows();
    plan_.totals.arena = packing.peak;
    plan_.totals.arena_lower_bound = packing.lower_bound;
    return true;
  }

  void take_windows() {
    for (std::int32_t t = 0; t < steps_; ++t) {
      const StepRange& window = schedule_.windows[at(t)];
      if (window != StepRange::single(t)) plan_.nodes[at(t)].window = window;
    }
  }

  /// The step with copies where the sums allow them, packed or not.
  double simulated(const std::vector<double>& seconds, const CopyRoom& room) {
    CopyRoom whole = room;
    whole.limit = options_.budget;
    schedule_ = schedule_lanes(problem_, placement_, moves_, seconds, std::move(whole));
    add_transfers();
    take_windows();
    const double result = step_seconds();
    plan_.transfers.clear();
    for (PlannedNode& node : plan_.nodes) node.window = {};
    plan_.totals = {};
    return result;
  }

  [[nodiscard]] double step_seconds() const {
    const PlanSeconds seconds = plan_seconds(problem_, placement_, plan_);
    return simulate_lanes(seconds.nodes, plan_.transfers, seconds.transfers, cpu_windows(plan_))
        .step_seconds;
  }

  /// Without copies in flight. What is known to fit in no arena within the budget is packed without
  /// effort, or not at all where nobody wants it.
  bool pack_kept(const Claims& claims, ArenaPacking& packing) const {
    if (options_.budget == unlimited_arena) {
      packing.peak = live_peak(claims);
      return true;
    }
    const Bytes least = bound_arena(claims.requests, options_.budget).least_peak;
    const bool may_fit = least <= options_.budget;
    if (!may_fit && options_.must_fit) {
      packing.peak = least;
      return false;
    }
    packing = pack(claims, options_.budget, may_fit ? options_.last_effort : 0);
    return packing.peak <= options_.budget;
  }

  /// Copies where the sums allow them, or a little less than that; what packs. False: neither does.
  bool schedule_by_sums(const std::vector<double>& seconds, const CopyRoom& room, Claims& claims,
                        ArenaPacking& packing) {
    const bool is_limited = options_.budget != unlimited_arena;
    for (const std::int64_t part : {std::int64_t{0}, options_.budget.count() / 64}) {
      CopyRoom less = room;
      less.limit = options_.budget - Bytes(part);
      CopySchedule schedule =
          schedule_lanes(problem_, placement_, moves_, seconds, std::move(less));
      std::swap(schedule_, schedule);
      Claims wanted = claim_gpu();
      const Bytes enough = is_limited ? options_.budget : Bytes();
      if (!is_limited || bound_arena(wanted.requests, enough).least_peak <= enough) {
        ArenaPacking packed = pack(wanted, enough);
        if (packed.peak <= options_.budget) {
          packing = std::move(packed);
          claims = std::move(wanted);
          return true;
        }
      }
      std::swap(schedule_, schedule);
    }
    return false;
  }

  [[nodiscard]] CopyRoom room_by_sums() const {
    CopyRoom room;
    for (const Item& item : problem_.items) {
      room.item_bytes.push_back(round_up(item.bytes, arena_alignment));
    }
    LiveSum sum(steps_);
    for (const GpuStay& stay : moves_.stays) sum.add(stay.steps, room.item_bytes[at(stay.item)]);
    room.live = std::move(sum).by_step();
    for (std::int32_t t = 0; t < steps_; ++t) {
      if (placement_.device[at(t)] != Device::gpu) continue;
      room.live[at(t)] += round_up(workspace(t), arena_alignment);
      for (const StorageId id : temporaries(t)) {
        room.live[at(t)] += round_up(step_.bytes(id), arena_alignment);
      }
    }
    return room;
  }

  [[nodiscard]] CopyRoom room_by_places(const CopyRoom& sums, const Claims& claims,
                                        const ArenaPacking& packing) const {
    CopyRoom room;
    room.item_bytes = sums.item_bytes;
    for (std::size_t i = 0; i < claims.requests.size(); ++i) {
      const Bytes begin = packing.offsets[i];
      const ArenaSpan span{begin, begin + round_up(claims.requests[i].bytes, arena_alignment)};
      for (const StepRange& live : claims.requests[i].live) room.taken.push_back({span, live});
    }
    // claim_gpu claims the stays first, in their order.
    for (std::size_t i = 0; i < moves_.stays.size(); ++i) {
      room.stay_offset.push_back(packing.offsets[at(claims.residences[i].first)]);
    }
    return room;
  }

  /// The largest live sum of what is claimed.
  [[nodiscard]] Bytes live_peak(const Claims& claims) const {
    LiveSum sum(steps_);
    for (const ArenaRequest& request : claims.requests) {
      const Bytes bytes = round_up(request.bytes, arena_alignment);
      for (const StepRange& range : request.live) sum.add(range, bytes);
    }
    return peak(std::move(sum).by_step()).bytes;
  }

  void claim_temporaries(Claims& claims, Device device) const {
    for (std::int32_t t = 0; t < steps_; ++t) {
      if (placement_.device[at(t)] != device) continue;
      for (const StorageId id : temporaries(t)) {
        const StepRange steps =
            device == Device::gpu ? StepRange::single(t) : schedule_.windows[at(t)];
        claims.residence(claims.request(step_.bytes(id)), id, steps);
      }
    }
  }

  [[nodiscard]] Claims claim_gpu() const {
    Claims claims;
    std::map<std::int32_t, std::int32_t> over_the_end;  // item -> request of its stay from 0
    for (std::size_t i = 0; i < moves_.stays.size(); ++i) {
      const GpuStay& stay = moves_.stays[i];
      const bool second = stay.to_next && !stay.from_previous;
      const std::int32_t request =
          second ? over_the_end.at(stay.item) : claims.request(bytes_of(stay.item));
      if (stay.from_previous) over_the_end[stay.item] = request;
      claims.residence(request, storage_of(stay.item), schedule_.stays[i]);
    }
    claim_temporaries(claims, Device::gpu);
    for (std::int32_t t = 0; t < steps_; ++t) {
      if (workspace(t).count() == 0) continue;
      claims.workspaces.emplace_back(claims.request(workspace(t)), t);
      claims.requests.back().live = {StepRange::single(t)};
    }
    return claims;
  }

  /// From what fills the copy to its last reader; an upload may still read while a download that
  /// begins at its end writes, hence one step more.
  [[nodiscard]] StepRange host_range(const HostCopy& copy) const {
    StepRange range{copy.begin, 0};
    for (const std::int32_t user : copy.users) {
      range.end = std::max(range.end, schedule_.windows[at(user)].end);
    }
    const bool is_made_here = !copy.at_start && copy.download < 0;
    if (is_made_here) range.begin = schedule_.windows[at(copy.begin)].begin;
    if (copy.download >= 0) {
      const CopySpan& download = schedule_.downloads[at(copy.download)];
      range.begin = std::min(download.begin, steps_ - 1);
      range.end = std::max(range.end, download.end);
    }
    for (const std::int32_t upload : copy.uploads) {
      range.end = std::max(range.end, std::min(schedule_.uploads[at(upload)].end + 1, steps_));
    }
    if (copy.to_next) range.end = steps_;
    range.end = std::max(range.end, range.begin + 1);
    return range;
  }

  /// What a copy reaches is pinned, whatever else it is for; the rest need not be.
  struct HostClaims {
    Claims pinned, pageable;
  };
  [[nodiscard]] HostClaims claim_host() const {
    HostClaims claims;
    for (std::size_t first = 0, last = 0; first < moves_.copies.size(); first = last) {
      const std::int32_t item = moves_.copies[first].item;
      std::vector<StepRange> ranges;
      bool at_start = false, to_next = false, is_copied = false;
      for (; last < moves_.copies.size() && moves_.copies[last].item == item; ++last) {
        const HostCopy& copy = moves_.copies[last];
        at_start = at_start || copy.at_start;
        to_next = to_next || copy.to_next;
        is_copied = is_copied || copy.download >= 0 || !copy.uploads.empty();
        ranges.push_back(host_range(copy));
      }
      claim_ranges(is_copied ? claims.pinned : claims.pageable, item, std::move(ranges),
                   at_start && to_next);
    }
    claim_temporaries(claims.pageable, Device::cpu);
    return claims;
  }

  /// Versions that meet share a place; so do the first and the last range of what wraps.
  void claim_ranges(Claims& claims, std::int32_t item, std::vector<StepRange> ranges,
                    bool wraps) const {
    std::sort(ranges.begin(), ranges.end());
    std::vector<StepRange> merged;
    for (const StepRange& range : ranges) {
      if (!merged.empty() && range.begin <= merged.back().end) {
        merged.back().end = std::max(merged.back().end, range.end);
      } else {
        merged.push_back(range);
      }
    }
    std::int32_t from_start = -1;
    for (const StepRange& range : merged) {
      const bool second = wraps && from_start >= 0 && range.end == steps_;
      const std::int32_t request = second ? from_start : claims.request(bytes_of(item));
      if (wraps && range.begin == 0) from_start = request;
      claims.residence(request, storage_of(item), range);
    }
  }

  [[nodiscard]] ArenaPacking pack(const Claims& claims, Bytes enough) const {
    return pack(claims, enough, options_.arena_effort);
  }
  [[nodiscard]] static ArenaPacking pack(const Claims& claims, Bytes enough, int effort) {
    return pack_arena(claims.requests,
                      {.alignment = arena_alignment, .effort = effort, .enough = enough});
  }

  static std::vector<Residence> residences(const Claims& claims, const ArenaPacking& packing) {
    std::vector<Residence> residences;
    for (const auto& [request, residence] : claims.residences) {
      residences.push_back({residence.storage, residence.steps, packing.offsets[at(request)]});
    }
    std::sort(residences.begin(), residences.end(), [](const Residence& a, const Residence& b) {
      return std::tuple(a.steps.begin, a.storage, a.steps.end) <
             std::tuple(b.steps.begin, b.storage, b.steps.end);
    });
    return residences;
  }

  [[nodiscard]] Bytes gpu_peak() const {
    LiveSum sum(steps_);
    for (const Residence& residence : plan_.in(gpu_memory)) {
      sum.add(residence.steps, step_.bytes(residence.storage));
    }
    for (std::int32_t t = 0; t < steps_; ++t) sum.add(StepRange::single(t), workspace(t));
    return peak(std::move(sum).by_step()).bytes;
  }

  void add_transfers() {
    plan_.transfers = copies_of(problem_, moves_, schedule_).transfers;
    for (const Transfer& transfer : plan_.transfers) {
      const bool up = transfer.link == upload_link;
      (up ? plan_.totals.h2d : plan_.totals.d2h) += step_.bytes(transfer.storage);
    }
  }

  const SizedStep& step_;
  const ResidencyProblem& problem_;
  const Placement& placement_;
  AssemblyOptions options_;
  std::int32_t steps_;
  ItemMoves moves_;
  CopySchedule schedule_;
  Plan plan_;
};

/// The item stays in every gap where its pins and its operations' let it, but for a copy that no
/// operation on the GPU will read.
void place_with_room(const Item& item, Placement& placement) {
  const std::size_t touches = item.touches.size();
  const std::size_t gaps = touches - (item.wraps ? 0 : 1);
  const auto on_cpu = [&](std::size_t touch) {
    return placement.device[at(item.touches[touch].step)] == Device::cpu;
  };
  std::vector<bool> on_gpu(touches), resident(gaps);
  for (std::size_t i = 0; i < touches; ++i) on_gpu[i] = !on_cpu(i);
  const auto kept_beside = [&](std::size_t touch) {  // a CPU reader with a gap on either side
    const bool before = touch > 0 ? resident[touch - 1] : item.wraps && resident[gaps - 1];
    return before && touch < gaps && resident[touch];
  };
  for (std::size_t gap = 0; gap < gaps; ++gap) {
    const std::size_t next = (gap + 1) % touches;
    const bool holds =
        !(on_cpu(gap) && item.touches[gap].writes) && !(on_cpu(next) && item.touches[next].writes);
    resident[gap] = holds && gap_pin(item, static_cast<std::int32_t>(gap)) != GapPin::dropped;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t gap = 0; gap < gaps; ++gap) {
      const std::size_t next = (gap + 1) % touches;
      const bool idle = (on_cpu(gap) && !kept_beside(gap)) || (on_cpu(next) && !kept_beside(next));
      if (!resident[gap] || !idle ||
          gap_pin(item, static_cast<std::int32_t>(gap)) == GapPin::resident) {
        continue;
      }
      resident[gap] = false;
      changed = true;
    }
  }
  for (std::size_t gap = 0; gap < gaps; ++gap) {
    if (resident[gap]) on_gpu[gap] = on_gpu[(gap + 1) % touches] = true;
  }
  placement.on_gpu.push_back(std::move(on_gpu));
  placement.resident.push_back(std::move(resident));
}

}  // namespace

Plan assemble_plan(const SizedStep& step, const ResidencyProblem& problem,
                   const Placement& placement, const AssemblyOptions& options) {
  return Assembly(step, problem, placement, options).run();
}

ArenaBound bound_placement(const SizedStep& step, const ResidencyProblem& problem,
                           const Placement& placement, Bytes budget) {
  return Assembly(step, problem, placement, {.budget = budget}).bound();
}

Placement all_gpu_placement(const ResidencyProblem& problem, Bytes budget) {
  Placement placement;
  for (const Operation& operation : problem.operations) {
    placement.device.push_back(operation.pin == Pin::cpu ? Device::cpu : Device::gpu);
  }
  placement.engine.assign(problem.operations.size(), 0);
  for (const Item& item : problem.items) place_with_room(item, placement);
  const std::vector<Bytes> memory = evaluate(problem, placement).memory;
  for (std::size_t i = 0; i < problem.operations.size(); ++i) {
    const std::vector<EngineCost>& engines = problem.operations[i].engines;
    if (memory[i] <= budget || placement.device[i] == Device::cpu) continue;
    const Bytes others = memory[i] - engines.front().workspace;
    auto taken = std::find_if(engines.begin(), engines.end(), [&](const EngineCost& engine) {
      return others + engine.workspace <= budget;
    });
    if (taken == engines.end()) {
      taken = std::min_element(
          engines.begin(), engines.end(),
          [](const EngineCost& a, const EngineCost& b) { return a.workspace < b.workspace; });
    }
    placement.engine[i] = static_cast<std::int32_t>(taken - engines.begin());
  }
  return placement;
}

PlanSeconds plan_seconds(const ResidencyProblem& problem, const Placement& placement,
                         const Plan& plan) {
  std::map<StorageId, const Item*> item_of;
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    item_of[problem.storage_of[i]] = &problem.items[i];
  }
  PlanSeconds seconds{node_seconds(problem, placement), {}};
  for (const Transfer& transfer : plan.transfers) {
    const Item& item = *item_of.at(transfer.storage);
    seconds.transfers.push_back(transfer.link == upload_link ? item.h2d_seconds : item.d2h_seconds);
  }
  return seconds;
}

}  // namespace stowage
