// WorkBudget: how much a search may do, counted in work and not in seconds.
//
// A search on a busy machine does as much as on an idle one, so that the same request gives the
// same plan on any machine. Each search counts what dominates its time by a rule over sizes: a
// minimum cut by the size of its network, a move, a simulated schedule by its steps, a packing by
// its comparisons of blocks. The rules stand beside the searches; bench/plan_effort.py compares
// them with processor time.
//
// A search that is divided gives each of its parts a share of what is left before the parts start:
// what one part finds does not depend on how far another one is. A part's work counts for the whole
// when the part's life ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

namespace stowage {

/// An amount of work. A unit is about what one core of a server of 2020 does in a microsecond.
struct Work {
  std::int64_t units = 0;
  auto operator<=>(const Work&) const = default;
};
[[nodiscard]] constexpr Work operator+(Work a, Work b) { return {a.units + b.units}; }
/// `share` of an amount, in steps of a thousandth.
[[nodiscard]] Work operator*(double share, Work of);

/// What a search for plans may do unless its caller says otherwise.
inline constexpr Work usual_work{7'000'000};

/// What ends a search before its work is spent. Polled, from any thread; empty: never. What is
/// found then depends on the machine.
struct SearchStops {
  std::function<bool()> cancelled;    ///< for example SIGINT: nothing more is begun
  std::function<bool()> out_of_time;  ///< a limit in seconds: a first plan is still searched for
};

/// One thread at a time spends from a budget. Searches in parallel take a part each.
class WorkBudget {
 public:
  /// Without a limit.
  WorkBudget() = default;
  explicit WorkBudget(Work limit, SearchStops stops = {});
  /// A part of `whole`, which outlives it.
  WorkBudget(WorkBudget& whole, Work limit);
  ~WorkBudget();
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  void spend(std::int64_t units) { spent_.units += units; }

  [[nodiscard]] Work limit() const { return limit_; }
  [[nodiscard]] Work spent() const { return spent_; }
  [[nodiscard]] Work left() const;
  /// A part with a share of what is left; where little is left, with a small share of the whole
  /// search, in which a search finds something.
  [[nodiscard]] WorkBudget part(double share);

  [[nodiscard]] bool is_spent() const { return spent_ >= limit_; }
  [[nodiscard]] bool is_cancelled() const { return stops_->cancelled && stops_->cancelled(); }
  /// Whether the search ends with what it has found.
  [[nodiscard]] bool is_over() const;

 private:
  Work limit_{std::int64_t{1} << 60};
  Work least_part_;  ///< by the limit of the whole search
  Work spent_;
  WorkBudget* whole_ = nullptr;
  SearchStops own_stops_;
  const SearchStops* stops_ = &own_stops_;
};

/// A part of `whole` for each of `count` searches in parallel, with `share` of what is left each.
[[nodiscard]] std::deque<WorkBudget> equal_parts(WorkBudget& whole, std::size_t count,
                                                 double share);

}  // namespace stowage
