#include "planner/assemble/schedule_copies.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <queue>
#include <tuple>

namespace stowage {
namespace {

// Times are those of compute alone, as if nothing ever stalled. A copy that cannot be hidden delays
// the nodes after it, so the lane counts as free again at the boundary that the copy delayed.
class Scheduler {
 public:
  Scheduler(const ResidencyProblem& problem, const ItemMoves& moves,
            std::span<const double> node_seconds, CopyRoom room)
      : problem_(problem), moves_(moves), room_(std::move(room)) {
    start_.assign(node_seconds.size() + 1, 0);
    std::partial_sum(node_seconds.begin(), node_seconds.end(), start_.begin() + 1);
    result_.downloads.resize(moves.downloads.size());
    result_.uploads.resize(moves.uploads.size());
    for (const GpuStay& stay : moves.stays) result_.stays.push_back(stay.steps);
    if (room_.stay_offset.empty()) return;
    free_.resize(moves.stays.size());
    in_flight_.resize(node_seconds.size());
  }

  CopySchedule run() {
    schedule_downloads();
    schedule_uploads();
    return std::move(result_);
  }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  [[nodiscard]] std::int32_t item_of(std::int32_t stay) const {
    return moves_.stays[at(stay)].item;
  }
  /// First boundary at or after a time.
  [[nodiscard]] std::int32_t boundary_after(double seconds) const {
    const auto found = std::lower_bound(start_.begin(), start_.end(), seconds);
    return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(
        found - start_.begin(), static_cast<std::ptrdiff_t>(start_.size()) - 1));
  }
  /// Last boundary at or before a time.
  [[nodiscard]] std::int32_t boundary_before(double seconds) const {
    const auto found = std::upper_bound(start_.begin(), start_.end(), seconds);
    return std::max(0, static_cast<std::int32_t>(found - start_.begin()) - 1);
  }
  /// Takes memory for a stay at one more step; false: there is none.
  bool take(std::int32_t step, std::int32_t stay) {
    const Bytes bytes = room_.item_bytes[at(item_of(stay))];
    if (room_.stay_offset.empty()) {
      Bytes& live = room_.live[at(step)];
      if (live + bytes > room_.limit) return false;
      live += bytes;
      return true;
    }
    const ArenaSpan place{room_.stay_offset[at(stay)], room_.stay_offset[at(stay)] + bytes};
    const StepRange& free = free_around(stay, place);
    if (step < free.begin || step >= free.end) return false;
    std::vector<ArenaSpan>& others = in_flight_[at(step)];
    if (std::ranges::any_of(others, [&](const ArenaSpan& o) { return o.overlaps(place); })) {
      return false;
    }
    others.push_back(place);
    return true;
  }

  /// The steps around the stay at which only copies in flight use its place.
  const StepRange& free_around(std::int32_t stay, const ArenaSpan& place) {
    StepRange& free = free_[at(stay)];
    if (!free.empty()) return free;
    const StepRange& own = moves_.stays[at(stay)].steps;
    free = {0, static_cast<std::int32_t>(in_flight_.size())};
    for (const TakenPlace& taken : room_.taken) {
      if (!taken.span.overlaps(place)) continue;
      if (taken.steps.end <= own.begin) free.begin = std::max(free.begin, taken.steps.end);
      if (taken.steps.begin >= own.end) free.end = std::min(free.end, taken.steps.begin);
    }
    return free;
  }

  /// The boundary by which a download must be off the GPU, or on the host.
  [[nodiscard]] std::int32_t deadline(std::int32_t download) const {
    const Download& job = moves_.downloads[at(download)];
    return std::min(job.latest, moves_.stays[at(job.stay)].steps.end);
  }

  /// Downloads whose version is written run in the order of their deadlines.
  void schedule_downloads() {
    std::vector<std::int32_t> waiting(moves_.downloads.size());
    std::iota(waiting.begin(), waiting.end(), 0);
    std::stable_sort(waiting.begin(), waiting.end(), [&](std::int32_t a, std::int32_t b) {
      return moves_.downloads[at(a)].earliest < moves_.downloads[at(b)].earliest;
    });
    using Entry = std::pair<std::int32_t, std::int32_t>;  // (deadline, download)
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    std::size_t next = 0;
    double lane = 0;
    std::int32_t begin = 0;
    while (next < waiting.size() || !ready.empty()) {
      if (ready.empty()) {
        lane = std::max(lane, start_[at(moves_.downloads[at(waiting[next])].earliest)]);
      }
      while (next < waiting.size() &&
             start_[at(moves_.downloads[at(waiting[next])].earliest)] <= lane) {
        ready.emplace(deadline(waiting[next]), waiting[next]);
        ++next;
      }
      const std::int32_t job = ready.top().second;
      ready.pop();
      begin = std::max(begin, moves_.downloads[at(job)].earliest);
      lane = place_download(job, begin, lane);
      result_.download_order.push_back(job);
    }
  }

  double place_download(std::int32_t download, std::int32_t begin, double lane) {
    const Download& job = moves_.downloads[at(download)];
    const std::int32_t item = item_of(job.stay);
    StepRange& stay = result_.stays[at(job.stay)];
    const double done = std::max(lane, start_[at(begin)]) + problem_.items[at(item)].d2h_seconds;
    const std::int32_t wanted = std::min(boundary_after(done), job.latest);
    std::int32_t end = std::min(job.latest, stay.end);
    while (end < wanted && take(end, job.stay)) ++end;
    stay.end = std::max(stay.end, end);
    // No download issued before had a later deadline, so none of their versions was written after
    // this one's.
    assert(begin <= end);
    result_.downloads[at(download)] = {begin, end};
    return std::min(done, std::max(lane, start_[at(end)]));
  }

  /// Uploads run as late as the lane allows, scheduled from the last need back to the first.
  void schedule_uploads() {
    std::vector<std::int32_t>& order = result_.upload_order;
    order.resize(moves_.uploads.size());
    std::iota(order.begin(), order.end(), 0);
    const auto need_then_index = [&](std::int32_t a, std::int32_t b) {
      return std::pair(moves_.uploads[at(a)].need, a) < std::pair(moves_.uploads[at(b)].need, b);
    };
    std::sort(order.begin(), order.end(), need_then_index);
    double lane = start_.back();
    for (std::size_t k = order.size(); k-- > 0;) lane = place_upload(order[k], lane);
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      const auto key = [&](std::int32_t i) {
        return std::tuple(result_.uploads[at(i)].begin, moves_.uploads[at(i)].need, i);
      };
      return key(a) < key(b);
    });
  }

  double place_upload(std::int32_t upload, double lane) {
    const Upload& job = moves_.uploads[at(upload)];
    const std::int32_t item = item_of(job.stay);
    std::int32_t earliest = job.earliest;
    if (job.download >= 0) {
      earliest = std::max(earliest, result_.downloads[at(job.download)].end);
    }
    if (job.previous_stay >= 0) {
      earliest = std::max(earliest, result_.stays[at(job.previous_stay)].end);
    }
    assert(earliest <= job.need);
    const double start =
        std::min(start_[at(job.need)], lane) - problem_.items[at(item)].h2d_seconds;
    const std::int32_t wanted = std::max(boundary_before(start), earliest);
    std::int32_t begin = job.need;
    while (begin > wanted && take(begin - 1, job.stay)) --begin;
    result_.stays[at(job.stay)].begin = begin;
    result_.uploads[at(upload)] = {begin, job.need};
    return std::max(start, start_[at(begin)]);
  }

  const ResidencyProblem& problem_;
  const ItemMoves& moves_;
  CopyRoom room_;
  std::vector<double> start_;                      // by boundary
  std::vector<StepRange> free_;                    // by stay; empty: not looked for yet
  std::vector<std::vector<ArenaSpan>> in_flight_;  // by step
  CopySchedule result_;
};

}  // namespace

CopySchedule schedule_copies(const ResidencyProblem& problem, const ItemMoves& moves,
                             std::span<const double> node_seconds, CopyRoom room) {
  return Scheduler(problem, moves, node_seconds, std::move(room)).run();
}

}  // namespace stowage
