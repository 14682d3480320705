#include "planner/assemble/arena_claims.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "estimator/base/live_sum.hpp"

namespace stowage {
namespace {

std::size_t place(std::int32_t index) { return static_cast<std::size_t>(index); }

std::int32_t add_request(ArenaClaims& claims, Bytes bytes) {
  claims.requests.push_back({{}, bytes});
  return static_cast<std::int32_t>(claims.requests.size()) - 1;
}

void add_residence(ArenaClaims& claims, std::int32_t request, StorageId storage, StepRange steps) {
  claims.requests[place(request)].live.push_back(steps);
  claims.residences.push_back({request, {storage, steps, Bytes()}});
}

Bytes bytes_of(const PlacedStep& placed, std::int32_t item) {
  return placed.problem.items[place(item)].bytes;
}
StorageId storage_of(const PlacedStep& placed, std::int32_t item) {
  return placed.problem.storage_of[place(item)];
}

void add_temporaries(const PlacedStep& placed, std::int32_t node, StepRange steps,
                     ArenaClaims& claims) {
  for (const StorageId id : placed.temporaries(node)) {
    add_residence(claims, add_request(claims, placed.step.bytes(id)), id, steps);
  }
}

/// The steps of a host copy: from what fills it to its last reader. One step more after an upload,
/// which may still read while a download that begins at its end writes.
StepRange host_range(const HostCopy& copy, const CopySchedule& schedule, std::int32_t steps) {
  StepRange range{copy.begin, 0};
  for (const std::int32_t user : copy.users) {
    range.end = std::max(range.end, schedule.windows[place(user)].end);
  }
  const bool is_made_here = !copy.at_start && copy.download < 0;
  if (is_made_here) range.begin = schedule.windows[place(copy.begin)].begin;
  if (copy.download >= 0) {
    const CopySpan& download = schedule.downloads[place(copy.download)];
    range.begin = std::min(download.begin, steps - 1);
    range.end = std::max(range.end, download.end);
  }
  for (const std::int32_t upload : copy.uploads) {
    range.end = std::max(range.end, std::min(schedule.uploads[place(upload)].end + 1, steps));
  }
  if (copy.to_next) range.end = steps;
  range.end = std::max(range.end, range.begin + 1);
  return range;
}

/// Versions whose ranges meet share a place; so do the first and the last range of an item that
/// wraps.
void add_versions(const PlacedStep& placed, std::int32_t item, std::vector<StepRange> ranges,
                  bool wraps, ArenaClaims& claims) {
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
    const bool second = wraps && from_start >= 0 && range.end == placed.steps();
    const std::int32_t request = second ? from_start : add_request(claims, bytes_of(placed, item));
    if (wraps && range.begin == 0) from_start = request;
    add_residence(claims, request, storage_of(placed, item), range);
  }
}

}  // namespace

ArenaClaims claim_gpu(const PlacedStep& placed, std::span<const StepRange> stays) {
  ArenaClaims claims;
  std::map<std::int32_t, std::int32_t> over_the_end;  // item -> request of its stay from 0
  for (std::size_t i = 0; i < stays.size(); ++i) {
    const GpuStay& stay = placed.moves.stays[i];
    const bool second = stay.to_next && !stay.from_previous;
    const std::int32_t request =
        second ? over_the_end.at(stay.item) : add_request(claims, bytes_of(placed, stay.item));
    if (stay.from_previous) over_the_end[stay.item] = request;
    add_residence(claims, request, storage_of(placed, stay.item), stays[i]);
  }
  for (std::int32_t t = 0; t < placed.steps(); ++t) {
    if (placed.on_gpu(t)) add_temporaries(placed, t, StepRange::single(t), claims);
  }
  for (std::int32_t t = 0; t < placed.steps(); ++t) {
    const Bytes workspace = placed.workspace(t);
    if (workspace.count() == 0) continue;
    claims.workspaces.emplace_back(add_request(claims, workspace), t);
    claims.requests.back().live = {StepRange::single(t)};
  }
  return claims;
}

HostClaims claim_host(const PlacedStep& placed, const CopySchedule& schedule) {
  HostClaims claims;
  const std::vector<HostCopy>& copies = placed.moves.copies;
  for (std::size_t first = 0, last = 0; first < copies.size(); first = last) {
    const std::int32_t item = copies[first].item;
    std::vector<StepRange> ranges;
    bool at_start = false, to_next = false, is_copied = false;
    for (; last < copies.size() && copies[last].item == item; ++last) {
      const HostCopy& copy = copies[last];
      at_start = at_start || copy.at_start;
      to_next = to_next || copy.to_next;
      is_copied = is_copied || copy.download >= 0 || !copy.uploads.empty();
      ranges.push_back(host_range(copy, schedule, placed.steps()));
    }
    add_versions(placed, item, std::move(ranges), at_start && to_next,
                 is_copied ? claims.pinned : claims.pageable);
  }
  for (std::int32_t t = 0; t < placed.steps(); ++t) {
    if (!placed.on_gpu(t)) add_temporaries(placed, t, schedule.windows[place(t)], claims.pageable);
  }
  return claims;
}

Bytes live_peak(const ArenaClaims& claims, std::int32_t steps) {
  LiveSum sum(steps);
  for (const ArenaRequest& request : claims.requests) {
    const Bytes bytes = round_up(request.bytes, arena_alignment);
    for (const StepRange& range : request.live) sum.add(range, bytes);
  }
  return peak(std::move(sum).by_step()).bytes;
}

std::vector<Bytes> excess_by_step(const ArenaClaims& claims, const ArenaPacking& packing,
                                  GpuBudget budget, std::int32_t steps) {
  std::vector<Bytes> beyond(place(steps));
  for (std::size_t i = 0; i < claims.requests.size(); ++i) {
    const ArenaRequest& request = claims.requests[i];
    const Bytes top = packing.offsets[i] + round_up(request.bytes, arena_alignment);
    if (budget.fits(top)) continue;
    for (const StepRange& live : request.live) {
      for (std::int32_t t = live.begin; t < live.end; ++t) {
        beyond[place(t)] = std::max(beyond[place(t)], budget.excess(top));
      }
    }
  }
  return beyond;
}

std::vector<Residence> residences(const ArenaClaims& claims, const ArenaPacking& packing) {
  std::vector<Residence> residences;
  for (const auto& [request, residence] : claims.residences) {
    residences.push_back({residence.storage, residence.steps, packing.offsets[place(request)]});
  }
  std::sort(residences.begin(), residences.end(), [](const Residence& a, const Residence& b) {
    return std::tuple(a.steps.begin, a.storage, a.steps.end) <
           std::tuple(b.steps.begin, b.storage, b.steps.end);
  });
  return residences;
}

}  // namespace stowage
