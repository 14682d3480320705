#include "planner/assemble/spare_workspaces.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "planner/assemble/arena_claims.hpp"

namespace stowage {
namespace {

std::size_t index_of(std::int32_t number) { return static_cast<std::size_t>(number); }

/// The live blocks of a step, by offset; the steps are entered in order.
class LiveBlocks {
 public:
  LiveBlocks(std::span<const ArenaRequest> requests, std::span<const Bytes> offsets,
             std::int32_t steps)
      : requests_(requests), offsets_(offsets), begins_(index_of(steps)), ends_(begins_.size()) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].bytes.count() == 0) continue;
      for (const StepRange& live : requests[i].live) {
        if (live.empty()) continue;
        begins_[index_of(live.begin)].push_back(i);
        if (live.end < steps) ends_[index_of(live.end)].push_back(i);
      }
    }
  }

  /// Goes on to a step. Steps are entered in their order and none is left out.
  void enter(std::int32_t step) {
    for (const std::size_t block : ends_[index_of(step)]) end_of_.erase(offsets_[block]);
    for (const std::size_t block : begins_[index_of(step)]) {
      const Bytes begin = offsets_[block];
      end_of_[begin] = begin + round_up(requests_[block].bytes, arena_alignment);
    }
  }

  /// The offset of the lowest hole; none: no hole is large enough.
  [[nodiscard]] std::optional<Bytes> room_for(Bytes bytes, GpuBudget budget) const {
    Bytes free;
    for (const auto& [begin, end] : end_of_) {
      if (free + bytes <= begin) return free;
      free = std::max(free, end);
    }
    if (budget.fits(free + bytes)) return free;
    return std::nullopt;
  }

 private:
  std::span<const ArenaRequest> requests_;
  std::span<const Bytes> offsets_;
  std::vector<std::vector<std::size_t>> begins_, ends_;  // by step
  std::map<Bytes, Bytes> end_of_;                        // by offset, of what is live
};

}  // namespace

std::optional<Placement> with_least_workspaces(const ResidencyProblem& problem,
                                               const Placement& placement) {
  Placement result = placement;
  for (std::size_t t = 0; t < problem.operations.size(); ++t) {
    if (placement.device[t] != Device::gpu) continue;
    const std::vector<EngineCost>& engines = problem.operations[t].engines;
    const double seconds = engines[index_of(placement.engine[t])].seconds;
    for (std::size_t k = 0; k < engines.size(); ++k) {
      if (engines[k].seconds > seconds) continue;
      if (engines[k].workspace < engines[index_of(result.engine[t])].workspace) {
        result.engine[t] = static_cast<std::int32_t>(k);
      }
    }
  }
  if (result.engine == placement.engine) return std::nullopt;
  return result;
}

PackedStep with_preferred_workspaces(const SizedStep& step, const ResidencyProblem& problem,
                                     PackedStep packed, GpuBudget budget) {
  const PlacedStep placed(step, problem, packed.placement);
  const ArenaClaims claims = kept_claims(placed);
  // Requests of workspaces come last, at most one a step.
  const std::size_t others = claims.requests.size() - claims.workspaces.size();
  std::vector<Bytes> own(problem.operations.size());
  for (const auto& [request, node] : claims.workspaces) {
    own[index_of(node)] = packed.offsets[index_of(request)];
  }
  const std::vector<Bytes> offsets(packed.offsets.begin(),
                                   packed.offsets.begin() + static_cast<std::ptrdiff_t>(others));
  LiveBlocks live(std::span(claims.requests).first(others), offsets, placed.steps());
  std::vector<std::int32_t> engine = packed.placement.engine;
  packed.offsets = offsets;
  for (std::int32_t t = 0; t < placed.steps(); ++t) {
    live.enter(t);
    if (!placed.on_gpu(t)) continue;
    const std::vector<EngineCost>& engines = problem.operations[index_of(t)].engines;
    const EngineCost& now = engines[index_of(engine[index_of(t)])];
    Bytes workspace = now.workspace, offset = own[index_of(t)];
    for (std::size_t k = 0; k < index_of(engine[index_of(t)]); ++k) {
      if (engines[k].seconds > now.seconds) continue;
      const auto room = live.room_for(round_up(engines[k].workspace, arena_alignment), budget);
      if (!room) continue;
      engine[index_of(t)] = static_cast<std::int32_t>(k);
      workspace = engines[k].workspace;
      offset = *room;
      break;
    }
    if (workspace.count() > 0) packed.offsets.push_back(offset);
  }
  packed.placement.engine = std::move(engine);
  return packed;
}

}  // namespace stowage
