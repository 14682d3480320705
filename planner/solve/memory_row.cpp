#include "planner/solve/memory_row.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stowage {

namespace {

constexpr std::size_t most_terms = 4000;
constexpr std::size_t most_divisors = 24;

struct Candidate {
  MemoryTerm term;  // its weight: the bytes
  double share = 0;
};

// The places at a step that are neither certain nor ruled out, and the bytes that the certain ones
// leave of the limit.
struct Knapsack {
  std::vector<Candidate> candidates;
  std::int64_t room = 0;
};

std::int64_t least_workspace(const Operation& operation) {
  Bytes least = operation.engines.front().workspace;
  for (const EngineCost& engine : operation.engines) least = std::min(least, engine.workspace);
  return (least + operation.temporaries).count();
}

Knapsack knapsack_at(const CutModel& model, const PlacementIndex& index,
                     const Restrictions& restrictions, std::int32_t step,
                     const MixedPresence& mixture) {
  const ResidencyProblem& problem = *model.problem;
  const auto at = static_cast<std::size_t>(step);
  Knapsack knapsack;
  knapsack.room = model.limits[at].count();
  const Pin pin = restrictions.device[at];
  if (pin == Pin::gpu) knapsack.room -= least_workspace(problem.operations[at]);
  const auto consider = [&](MemoryTerm term, bool certain, bool ruled_out) {
    term.weight = problem.items[static_cast<std::size_t>(term.item)].bytes.count();
    if (certain)
      knapsack.room -= term.weight;
    else if (!ruled_out && term.weight > 0)
      knapsack.candidates.push_back({term, mixture.at(term)});
  };
  for (const TouchPlace& place : index.touches_of(step)) {
    const Item& item = problem.items[static_cast<std::size_t>(place.item)];
    const bool writes = item.touches[static_cast<std::size_t>(place.touch)].writes;
    consider({.item = place.item,
              .index = place.touch,
              .gap = false,
              .place = index.first_touch(place.item) + place.touch},
             pin == Pin::gpu, writes && pin == Pin::cpu);
  }
  std::vector<std::int32_t> over;
  index.gaps_over(step, over);
  for (const std::int32_t place : over) {
    const GapPlace& gap = index.gaps()[static_cast<std::size_t>(place)];
    const GapPin gap_pin =
        restrictions.gap[static_cast<std::size_t>(gap.item)][static_cast<std::size_t>(gap.gap)];
    consider({.item = gap.item, .index = gap.gap, .gap = true, .place = place},
             gap_pin == GapPin::resident, gap_pin == GapPin::dropped);
  }
  return knapsack;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

// Rounds by g. `kept`: the places whose absence is counted. The others are counted by their
// presence, which makes more of the kept ones leave.
LimitRow rounded(const Knapsack& knapsack, const std::vector<bool>& kept, std::int64_t g) {
  std::int64_t missing = -knapsack.room;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) missing += knapsack.candidates[i].term.weight;
  }
  LimitRow row;
  if (missing <= 0) return row;
  const std::int64_t k = (missing - 1) / g;
  const std::int64_t r = missing - k * g;
  const auto round = [&](std::int64_t bytes) {
    const std::int64_t i = floor_div(bytes, g);
    return i * r + std::min(r, bytes - i * g);
  };
  row.limit = -(k + 1) * r;
  row.source.divisor = g;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    MemoryTerm term = knapsack.candidates[i].term;
    term.weight = kept[i] ? round(term.weight) : -round(-term.weight);
    if (kept[i]) {
      row.limit += term.weight;
      row.source.counted.push_back({term.item, term.item});
    }
    if (term.weight > 0) row.terms.push_back(term);
  }
  if (row.limit < 0) row.terms.clear();  // nothing fits at all: tighten() says so
  return row;
}

double excess_for_length(const LimitRow& row, const std::vector<double>& share_of_place,
                         const Knapsack& knapsack) {
  double use = 0, square = 0;
  std::size_t i = 0;
  for (const MemoryTerm& term : row.terms) {
    while (knapsack.candidates[i].term.place != term.place ||
           knapsack.candidates[i].term.gap != term.gap) {
      ++i;
    }
    const auto weight = static_cast<double>(term.weight);
    use += weight * share_of_place[i];
    square += weight * weight;
  }
  const double excess = use - static_cast<double>(row.limit);
  return square > 0 && excess > 1e-6 * use ? excess / std::sqrt(square) : 0;
}

std::vector<std::int64_t> divisors(const Knapsack& knapsack) {
  std::vector<std::pair<double, std::int64_t>> sizes;  // the most in between first
  std::int64_t largest = 0;
  for (const Candidate& candidate : knapsack.candidates) {
    const double between = std::min(candidate.share, 1 - candidate.share);
    largest = std::max(largest, candidate.term.weight);
    if (between > 1e-6) {
      sizes.emplace_back(-between * static_cast<double>(candidate.term.weight),
                         candidate.term.weight);
    }
  }
  std::sort(sizes.begin(), sizes.end());
  std::vector<std::int64_t> result;
  const auto add = [&](std::int64_t g) {
    if (g > 0 && std::find(result.begin(), result.end(), g) == result.end()) result.push_back(g);
  };
  for (const auto& [ignored, size] : sizes) {
    if (result.size() >= most_divisors) break;
    add(size);
    add(size / 2);
  }
  add(largest + 1);
  return result;
}

}  // namespace

MixedPresence::MixedPresence(std::vector<std::pair<const PackedPlacement*, double>> placements)
    : placements_(std::move(placements)) {
  for (const auto& [ignored, weight] : placements_) total_ += weight;
}

double MixedPresence::at(const MemoryTerm& term) const {
  double sum = 0;
  for (const auto& [placement, weight] : placements_) {
    if (placement->holds(term)) sum += weight;
  }
  return total_ > 0 ? sum / total_ : 0;
}

double use_of(const LimitRow& row, const PackedPlacement& placement) {
  double use = 0;
  for (const MemoryTerm& term : row.terms) {
    if (placement.holds(term)) use += static_cast<double>(term.weight);
  }
  return use;
}

std::vector<LimitRow> rounded_rows(const CutModel& model, const PlacementIndex& index,
                                   const Restrictions& restrictions, std::int32_t step,
                                   const MixedPresence& mixture, std::size_t most) {
  const Knapsack knapsack = knapsack_at(model, index, restrictions, step, mixture);
  if (knapsack.candidates.size() > most_terms) return {};
  std::vector<double> share;
  for (const Candidate& candidate : knapsack.candidates) share.push_back(candidate.share);
  struct Found {
    double excess;
    LimitRow row;
  };
  std::vector<Found> found;
  for (const double above : {0.0, 0.5, 1 - 1e-6}) {
    std::vector<bool> kept;
    kept.reserve(share.size());
    for (const double part : share) kept.push_back(part > above);
    for (const std::int64_t g : divisors(knapsack)) {
      LimitRow row = rounded(knapsack, kept, g);
      const double excess = excess_for_length(row, share, knapsack);
      row.source.step = step;
      const bool known = std::any_of(found.begin(), found.end(), [&](const Found& other) {
        return std::abs(other.excess - excess) <= 1e-9 * excess;
      });
      if (excess > 0 && !known) found.push_back({excess, std::move(row)});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.excess > b.excess; });
  std::vector<LimitRow> rows;
  for (std::size_t i = 0; i < std::min(most, found.size()); ++i) {
    rows.push_back(std::move(found[i].row));
  }
  return rows;
}

}  // namespace stowage
