#include "planner/assemble/stall_search.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "planner/assemble/fit_schedule.hpp"
#include "planner/assemble/lane_schedule.hpp"
#include "planner/plan/lanes.hpp"
#include "planner/solve/placement_search.hpp"

namespace stowage {
namespace {

constexpr double hidden_share = 0.05;  // of a copy's seconds, where no step waits for its lane
constexpr double least_gain = 1e-4;    // of the step: a smaller gain is none
constexpr std::size_t most_gaps = 24;  // copies, of one schedule

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// The copies of a schedule and their simulated times.
struct SimulatedCopies {
  PlacedCopies copies;
  LaneTimeline timeline;
};

SimulatedCopies simulate_copies(const PlacedStep& placed, GpuBudget budget) {
  const CopySchedule schedule = widest_schedule(placed, budget);
  SimulatedCopies result{copies_of(placed.problem, placed.moves, schedule), {}};
  result.timeline = simulate_lanes(placed.node_seconds, result.copies.transfers,
                                   result.copies.seconds, schedule.windows);
  return result;
}

/// The copies and lanes that the step waits for.
struct Waits {
  std::vector<double> of_copy;     ///< by transfer: seconds that the step waits for it
  std::vector<bool> uploads_wait;  ///< by boundary: whether such an upload is under way there
  std::vector<bool> downloads_wait;
};

class WaitFinder {
 public:
  explicit WaitFinder(const SimulatedCopies& of)
      : of_(of), boundaries_(of.timeline.arrivals.size()) {
    waits_.of_copy.assign(of.copies.transfers.size(), 0);
    waits_.uploads_wait.assign(boundaries_, false);
    waits_.downloads_wait.assign(boundaries_, false);
    before_.assign(of.copies.transfers.size(), -1);
    std::int32_t last[2] = {-1, -1};
    for (std::size_t i = 0; i < before_.size(); ++i) {
      std::int32_t& on_lane = last[of.copies.transfers[i].link.index()];
      before_[i] = std::exchange(on_lane, static_cast<std::int32_t>(i));
    }
  }

  Waits run() && {
    const LaneTimeline& timeline = of_.timeline;
    std::vector<std::int32_t> latest(boundaries_, -1);  // by boundary: the last copy to end there
    for (std::size_t i = 0; i < before_.size(); ++i) {
      std::int32_t& known = latest[at(of_.copies.transfers[i].end)];
      if (known < 0 || timeline.transfers[i].end > timeline.transfers[at(known)].end) {
        known = static_cast<std::int32_t>(i);
      }
    }
    for (std::size_t t = 0; t < boundaries_; ++t) {
      if (latest[t] < 0) continue;
      const double wait = timeline.transfers[at(latest[t])].end - timeline.arrivals[t];
      if (wait > 0) charge_wait(latest[t], wait);
    }
    return std::move(waits_);
  }

 private:
  void charge_wait(std::int32_t copy, double wait) {
    const std::vector<Span>& spans = of_.timeline.transfers;
    while (copy >= 0) {
      double& waited = waits_.of_copy[at(copy)];
      waited = std::min(waited + wait, of_.copies.seconds[at(copy)]);
      mark_waiting(copy);
      const std::int32_t before = before_[at(copy)];
      if (before < 0 || spans[at(before)].end < spans[at(copy)].begin) return;
      copy = before;
    }
  }

  void mark_waiting(std::int32_t copy) {
    const std::vector<double>& arrivals = of_.timeline.arrivals;
    const Span& span = of_.timeline.transfers[at(copy)];
    const bool is_up = of_.copies.transfers[at(copy)].link == upload_link;
    std::vector<bool>& waiting = is_up ? waits_.uploads_wait : waits_.downloads_wait;
    const auto first = std::ranges::lower_bound(arrivals, span.begin) - arrivals.begin();
    for (auto t = static_cast<std::size_t>(first); t < boundaries_ && arrivals[t] <= span.end;
         ++t) {
      waiting[t] = true;
    }
    waiting[at(of_.copies.transfers[at(copy)].end)] = true;
  }

  const SimulatedCopies& of_;
  std::size_t boundaries_;
  std::vector<std::int32_t> before_;  // by transfer: the one before it on its lane
  Waits waits_;
};

class StallSearch {
 public:
  StallSearch(const SizedStep& step, const ResidencyProblem& problem, Placement start,
              const StallSearchOptions& options)
      : step_(step),
        problem_(problem),
        options_(options),
        work_(options.work != nullptr ? *options.work : unlimited_),
        best_(std::move(start)) {
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      item_of_[problem.storage_of[i]] = static_cast<std::int32_t>(i);
    }
  }

  Placement run() && {
    while (improve()) {
    }
    return std::move(best_);
  }

 private:
  /// Shortens the step by one change; false: no change does.
  bool improve() {
    const PlacedStep placed(step_, problem_, best_);
    const SimulatedCopies now = simulate_copies(placed, options_.budget);
    const Waits waits = WaitFinder(now).run();
    const ResidencyProblem priced = priced_by(waits);
    const CutModel model =
        make_cut_model(priced, options_.budget.step_limits(problem_.operations.size()));
    const PlacementIndex index(model);
    work_.spend(work_of_schedule(placed));
    for (const std::int32_t gap : gaps_of_awaited_copies(now, waits, index)) {
      if (moves_ == options_.most_moves || work_.is_over()) return false;
      ++moves_;
      WorkBudget uncut;  // a move is finished once it is begun
      PlacementSearch search(model, index, best_, {}, 0, uncut);
      if (!search.flip_gap(gap)) continue;
      work_.spend(uncut.spent().units + work_of_schedule(placed));
      Placement flipped = search.state().placement();
      const double seconds =
          widest_step_seconds(PlacedStep(step_, problem_, flipped), options_.budget);
      if (seconds >= (1 - least_gain) * now.timeline.step_seconds) continue;
      best_ = std::move(flipped);
      return true;
    }
    return false;
  }

  /// The gaps of the copies that the step waits for, the longest wait first.
  std::vector<std::int32_t> gaps_of_awaited_copies(const SimulatedCopies& now, const Waits& waits,
                                                   const PlacementIndex& index) const {
    std::vector<std::pair<double, std::int32_t>> ranked;
    for (std::size_t i = 0; i < waits.of_copy.size(); ++i) {
      if (waits.of_copy[i] <= 0) continue;
      const std::int32_t gap = gap_of(now.copies.transfers[i]);
      if (gap < 0) continue;
      const std::int32_t item = item_of_.at(now.copies.transfers[i].storage);
      ranked.emplace_back(-waits.of_copy[i], index.first_gap(item) + gap);
    }
    std::ranges::sort(ranked);
    std::vector<std::int32_t> gaps;
    for (const auto& [ignored, gap] : ranked) {
      if (gaps.size() == most_gaps) break;
      if (std::ranges::find(gaps, gap) == gaps.end()) gaps.push_back(gap);
    }
    return gaps;
  }

  /// The item's gap that an upload ends or a download begins; -1: none.
  std::int32_t gap_of(const Transfer& copy) const {
    const Item& item = problem_.items[at(item_of_.at(copy.storage))];
    const std::vector<Touch>& touches = item.touches;
    if (copy.link == upload_link) {
      const auto first = std::ranges::lower_bound(touches, copy.end, {}, &Touch::step);
      return gap_before(item, static_cast<std::int32_t>(first - touches.begin()));
    }
    const auto next = std::ranges::lower_bound(touches, copy.begin, {}, &Touch::step);
    const auto gap = static_cast<std::int32_t>(next - touches.begin()) - 1;
    return gap < gap_count(item) ? gap : -1;
  }

  /// The problem in which copies cost their full time only where the step waits for their lane.
  ResidencyProblem priced_by(const Waits& waits) const {
    ResidencyProblem priced = problem_;
    for (Item& item : priced.items) {
      double read = 0, written = 0, reads_waiting = 0, writes_waiting = 0;
      for (const Touch& touch : item.touches) {
        if (touch.reads) {
          ++read;
          reads_waiting += waits.uploads_wait[at(touch.step)] ? 1 : 0;
        }
        if (touch.writes) {
          ++written;
          writes_waiting += waits.downloads_wait[at(touch.step) + 1] ? 1 : 0;
        }
      }
      const auto share = [](double waiting, double all) {
        return hidden_share + (1 - hidden_share) * (all > 0 ? waiting / all : 0);
      };
      item.h2d_seconds *= share(reads_waiting, read);
      item.d2h_seconds *= share(writes_waiting, written);
    }
    return priced;
  }

  const SizedStep& step_;
  const ResidencyProblem& problem_;
  const StallSearchOptions& options_;
  WorkBudget unlimited_;
  WorkBudget& work_;
  Placement best_;
  std::map<StorageId, std::int32_t> item_of_;
  int moves_ = 0;
};

}  // namespace

Placement reduce_stalls(const SizedStep& step, const ResidencyProblem& problem, Placement start,
                        const StallSearchOptions& options) {
  return StallSearch(step, problem, std::move(start), options).run();
}

}  // namespace stowage
