#include "planner/assemble/packed_blocks.hpp"

#include <algorithm>
#include <limits>

#include "estimator/arena/arena.hpp"
#include "planner/assemble/arena_claims.hpp"

namespace stowage {
namespace {

constexpr double not_possible = std::numeric_limits<double>::infinity();

std::size_t entry(std::int32_t index) { return static_cast<std::size_t>(index); }

bool overlap(const std::vector<StepRange>& a, const std::vector<StepRange>& b) {
  return std::ranges::any_of(a, [&](const StepRange& one) {
    return std::ranges::any_of(b, [&](const StepRange& other) { return one.overlaps(other); });
  });
}

/// The ranges sorted, with those that overlap or meet merged.
std::vector<StepRange> merged_ranges(std::vector<StepRange> ranges) {
  std::ranges::sort(ranges);
  std::vector<StepRange> merged;
  for (const StepRange& range : ranges) {
    if (!merged.empty() && range.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, range.end);
    } else if (!range.empty()) {
      merged.push_back(range);
    }
  }
  return merged;
}

}  // namespace

/// A block that is live together with the block to be placed, and the cost of moving it out of the
/// way.
struct PackedBlocks::Obstacle {
  std::size_t block = 0;
  std::int64_t begin = 0, end = 0;
  double price = not_possible;                    // of leaving the GPU meanwhile
  std::array<std::int64_t, 2> elsewhere{-1, -1};  // where it could lie; -1: nowhere

  [[nodiscard]] bool can_leave(std::int64_t from, std::int64_t to) const {
    return std::ranges::any_of(elsewhere, [&](std::int64_t place) {
      return place >= 0 && (place + end - begin <= from || to <= place);
    });
  }
};

struct PackedBlocks::Window {
  double price = not_possible;
  std::int64_t offset = 0;
};

bool ArenaBlock::is_live(std::int32_t step) const {
  return std::ranges::any_of(live, [&](const StepRange& range) { return range.contains(step); });
}

PackedBlocks::PackedBlocks(const SizedStep& step, const ResidencyProblem& problem,
                           const Placement& placement, GpuBudget budget)
    : step_(step),
      problem_(problem),
      budget_(budget.bytes.count() / arena_alignment.count() * arena_alignment.count()),
      model_(make_cut_model(problem, budget.step_limits(problem.operations.size()))),
      index_(model_),
      state_(model_, index_, placement) {
  rebuild_blocks();
}

/// Makes the blocks of the state's placement. A block that was part of one before keeps that one's
/// place.
void PackedBlocks::rebuild_blocks() {
  const Placement placement = state_.placement();
  const PlacedStep placed(step_, problem_, placement);
  const ArenaClaims claims = kept_claims(placed);
  const std::vector<ArenaBlock> before = std::exchange(blocks_, {});
  std::vector<std::vector<std::size_t>> of_item(problem_.items.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].item >= 0) of_item[entry(before[i].item)].push_back(i);
  }
  for (const ArenaRequest& request : claims.requests) {
    blocks_.push_back({.item = -1,
                       .live = request.live,
                       .size = round_up(request.bytes, arena_alignment).count()});
  }
  for (std::size_t i = 0; i < placed.moves.stays.size(); ++i) {
    blocks_[entry(claims.residences[i].first)].item = placed.moves.stays[i].item;
  }
  const auto keep = [](const ArenaBlock& from, ArenaBlock& to) {
    to.offset = from.offset;
    to.has_moved = from.has_moved;
  };
  // Blocks without an item are the same ones, in the same order, behind all others.
  for (std::size_t i = blocks_.size(), j = before.size(); i-- > 0 && j-- > 0;) {
    if (blocks_[i].item >= 0 || before[j].item >= 0) break;
    keep(before[j], blocks_[i]);
  }
  for (ArenaBlock& block : blocks_) {
    if (block.item < 0) continue;
    for (const std::size_t i : of_item[entry(block.item)]) {
      if (before[i].is_live(block.live.front().begin)) keep(before[i], block);
    }
  }
}

std::optional<std::size_t> PackedBlocks::largest_without_place() const {
  std::optional<std::size_t> largest;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const ArenaBlock& block = blocks_[i];
    if (block.is_placed() || block.size == 0 || block.live.empty()) continue;
    if (!largest || block.size > blocks_[*largest].size) largest = i;
  }
  return largest;
}

void PackedBlocks::place(std::size_t block, std::int64_t offset) {
  ArenaBlock& placed = blocks_[block];
  placed.offset = offset + placed.size <= budget_ ? offset : -1;
  placed.has_moved = false;
}

bool PackedBlocks::place_cheapest(std::size_t block) {
  const ArenaBlock& wanted = blocks_[block];
  const auto obstacles = this->obstacles(wanted.live, !wanted.has_moved, -1);
  const Window window = cheapest_window(wanted.size, obstacles);
  const auto [own_price, own_gap] = cheapest_own_gap(wanted);
  if (own_price < window.price) {
    state_.flip(index_.gaps()[own_gap]);
    rebuild_blocks();
    return true;
  }
  if (window.price == not_possible) return false;
  const std::vector<std::size_t> gaps =
      clear_window(window.offset, window.offset + wanted.size, wanted.live, obstacles);
  blocks_[block].offset = window.offset;
  for (const std::size_t gap : gaps) state_.flip(index_.gaps()[gap]);
  if (!gaps.empty()) rebuild_blocks();
  return true;
}

double PackedBlocks::in_seconds(Capacity units) const {
  return static_cast<double>(units) * model_.unit();
}

/// The placed blocks that are live together with `live`, by ascending offset, without those of
/// `item`.
std::vector<PackedBlocks::Obstacle> PackedBlocks::obstacles(const Ranges& live, bool may_move,
                                                            std::int32_t item) {
  by_offset_.clear();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].is_placed() && blocks_[i].size > 0) by_offset_.push_back(i);
  }
  std::ranges::stable_sort(by_offset_, {}, [&](std::size_t i) { return blocks_[i].offset; });
  work_ += static_cast<std::int64_t>(2 * blocks_.size());
  std::vector<Obstacle> found;
  for (const std::size_t i : by_offset_) {
    const ArenaBlock& other = blocks_[i];
    if ((item >= 0 && other.item == item) || !overlap(live, other.live)) continue;
    Obstacle obstacle{i, other.offset, other.end(), price_of_absence(other, live)};
    if (may_move && !other.has_moved) {
      obstacle.elsewhere = free_places(i);
      work_ += static_cast<std::int64_t>(by_offset_.size());
    }
    found.push_back(obstacle);
  }
  return found;
}

/// The gaps that a block has to leave the GPU in to be away during some steps; none where it is
/// used then.
std::vector<std::size_t> PackedBlocks::gaps_during(const ArenaBlock& block,
                                                   const Ranges& steps) const {
  if (block.item < 0) return {};
  const Item& item = problem_.items[entry(block.item)];
  for (const Touch& touch : item.touches) {
    if (block.is_live(touch.step) && overlap({StepRange::single(touch.step)}, steps)) return {};
  }
  std::vector<std::size_t> gaps;
  for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
    const std::size_t place = entry(index_.first_gap(block.item) + gap);
    const GapPlace& at = index_.gaps()[place];
    if (!state_.resident(at) || !overlap({at.inside.within, at.inside.wrapped}, steps)) continue;
    if (state_.must_be_resident(at)) return {};
    gaps.push_back(place);
  }
  return gaps;
}

double PackedBlocks::price_of_absence(const ArenaBlock& block, const Ranges& steps) {
  const std::vector<std::size_t> gaps = gaps_during(block, steps);
  if (gaps.empty()) return not_possible;
  Capacity price = 0;
  for (const std::size_t gap : gaps) price += state_.flip_cost(index_.gaps()[gap]);
  return in_seconds(price);
}

/// The lowest and the highest place that is free for the whole life of the block at the moment.
std::array<std::int64_t, 2> PackedBlocks::free_places(std::size_t index) const {
  const ArenaBlock& block = blocks_[index];
  std::array<std::int64_t, 2> places{-1, -1};
  std::int64_t floor = 0;
  const auto look = [&](std::int64_t ceiling) {
    if (ceiling - floor < block.size) return;
    if (places[0] < 0) places[0] = floor;
    places[1] = ceiling - block.size;
  };
  for (const std::size_t i : by_offset_) {
    const ArenaBlock& other = blocks_[i];
    if (i == index || other.end() <= floor || !overlap(block.live, other.live)) continue;
    look(other.offset);
    floor = other.end();
  }
  look(budget_);
  return places;
}

PackedBlocks::Window PackedBlocks::cheapest_window(std::int64_t size,
                                                   const std::vector<Obstacle>& obstacles) {
  std::vector<std::int64_t> offsets{0, budget_ - size};
  for (const Obstacle& obstacle : obstacles) {
    offsets.push_back(obstacle.end);
    offsets.push_back(obstacle.begin - size);
  }
  std::ranges::sort(offsets);
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  work_ += static_cast<std::int64_t>(offsets.size() * obstacles.size() / 2);
  Window best;
  for (const std::int64_t offset : offsets) {
    if (offset < 0 || offset + size > budget_) continue;
    double price = 0;
    for (const Obstacle& obstacle : obstacles) {
      if (obstacle.end <= offset || offset + size <= obstacle.begin) continue;
      if (!obstacle.can_leave(offset, offset + size)) price += obstacle.price;
      if (price >= best.price) break;
    }
    if (price < best.price) best = {price, offset};
  }
  return best;
}

std::pair<double, std::size_t> PackedBlocks::cheapest_own_gap(const ArenaBlock& block) {
  std::pair<double, std::size_t> cheapest{not_possible, 0};
  if (block.item < 0) return cheapest;
  const Item& item = problem_.items[entry(block.item)];
  for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
    const std::size_t place = entry(index_.first_gap(block.item) + gap);
    const GapPlace& at = index_.gaps()[place];
    if (!state_.resident(at) || state_.must_be_resident(at)) continue;
    if (!overlap({at.inside.within, at.inside.wrapped}, block.live)) continue;
    cheapest = std::min(cheapest, {in_seconds(state_.flip_cost(at)), place});
  }
  return cheapest;
}

/// Blocks that can move lose their place and get another one later. Returns the gaps to drop.
std::vector<std::size_t> PackedBlocks::clear_window(std::int64_t begin, std::int64_t end,
                                                    const Ranges& live,
                                                    const std::vector<Obstacle>& obstacles) {
  std::vector<std::size_t> gaps;
  for (const Obstacle& obstacle : obstacles) {
    if (obstacle.end <= begin || end <= obstacle.begin) continue;
    ArenaBlock& block = blocks_[obstacle.block];
    if (obstacle.can_leave(begin, end)) {
      block.offset = -1;
      block.has_moved = true;
      continue;
    }
    for (const std::size_t gap : gaps_during(block, live)) gaps.push_back(gap);
  }
  return gaps;
}

int PackedBlocks::fill(std::int64_t most) {
  std::vector<std::pair<Capacity, std::size_t>> chances;
  for (std::size_t gap = 0; gap < index_.gaps().size(); ++gap) {
    const GapPlace& at = index_.gaps()[gap];
    if (state_.resident(at) || !state_.may_be_resident(at)) continue;
    const Capacity cost = state_.flip_cost(at);
    if (cost < 0) chances.emplace_back(cost, gap);
  }
  std::ranges::sort(chances);
  int taken = 0;
  for (const auto& [ignored, gap] : chances) {
    if (work_ > most) break;
    taken += restore_gap(gap) ? 1 : 0;
  }
  return taken;
}

bool PackedBlocks::restore_gap(std::size_t gap) {
  const GapPlace& at = index_.gaps()[gap];
  if (state_.resident(at) || !state_.may_be_resident(at)) return false;
  const double saved = -in_seconds(state_.flip_cost(at));
  if (saved <= 0) return false;
  const Item& item = problem_.items[entry(at.item)];
  const std::int32_t first = item.touches[entry(at.gap)].step;
  const std::int32_t last = item.touches[(entry(at.gap) + 1) % item.touches.size()].step;
  Ranges live{StepRange::single(first), StepRange::single(last), at.inside.within,
              at.inside.wrapped};
  for (const ArenaBlock& block : blocks_) {
    if (block.item != at.item || !(block.is_live(first) || block.is_live(last))) continue;
    live.insert(live.end(), block.live.begin(), block.live.end());
  }
  live = merged_ranges(std::move(live));
  const auto obstacles = this->obstacles(live, false, at.item);
  const Window window = cheapest_window(item.bytes.count(), obstacles);
  if (window.price >= saved) return false;
  const std::vector<ArenaBlock> before = blocks_;
  const std::size_t mark = state_.mark();
  const Capacity cost = state_.cost();
  for (const std::size_t given :
       clear_window(window.offset, window.offset + item.bytes.count(), live, obstacles)) {
    state_.flip(index_.gaps()[given]);
  }
  state_.flip(at);
  rebuild_blocks();
  for (ArenaBlock& block : blocks_) {
    if (block.item == at.item && block.is_live(first)) block.offset = window.offset;
  }
  if (state_.cost() < cost && state_.excess() <= 0 && !largest_without_place()) return true;
  state_.undo_to(mark);
  blocks_ = before;
  return false;
}

}  // namespace stowage
