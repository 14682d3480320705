#include "estimator/arena/arena_search.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "estimator/arena/arena_tree.hpp"
#include "estimator/base/live_sum.hpp"

namespace stowage {
namespace {

using Order = std::vector<std::int32_t>;

/// Which blocks are ever live together: a bit a pair.
class Overlaps {
 public:
  explicit Overlaps(const ArenaBlocks& blocks)
      : words_((blocks.count() + 63) / 64), bits_(words_ * blocks.count()) {
    struct Piece {
      StepRange steps;
      std::int32_t block;
    };
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < blocks.count(); ++i) {
      for (const StepRange& range : blocks.live[i]) {
        pieces.push_back({range, static_cast<std::int32_t>(i)});
      }
    }
    std::stable_sort(pieces.begin(), pieces.end(),
                     [](const Piece& a, const Piece& b) { return a.steps.begin < b.steps.begin; });
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (std::size_t j = i + 1; j < pieces.size() && pieces[j].steps.begin < pieces[i].steps.end;
           ++j) {
        set(pieces[i].block, pieces[j].block);
        set(pieces[j].block, pieces[i].block);
      }
    }
  }

  [[nodiscard]] const std::uint64_t* row(std::int32_t block) const {
    return bits_.data() + words_ * static_cast<std::size_t>(block);
  }
  [[nodiscard]] static bool test(const std::uint64_t* row, std::int32_t block) {
    return (row[block >> 6] >> (block & 63)) & 1U;
  }

 private:
  void set(std::int32_t a, std::int32_t b) {
    bits_[words_ * static_cast<std::size_t>(a) + static_cast<std::size_t>(b >> 6)] |=
        std::uint64_t{1} << (b & 63);
  }
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// First fit in a given order, on buffers that are kept from one order to the next.
class FirstFit {
 public:
  explicit FirstFit(const ArenaBlocks& blocks) : blocks_(blocks), overlaps_(blocks) {
    placed_.reserve(blocks.count());
    offset_.resize(blocks.count());
  }

  /// The peak, or a number above `limit` as soon as it is known to be above it.
  std::int64_t pack(const Order& order, std::int64_t limit) {
    placed_.clear();
    std::int64_t peak = 0;
    for (const std::int32_t block : order) {
      const auto i = static_cast<std::size_t>(block);
      const std::int64_t size = blocks_.size[i];
      const std::int64_t offset = lowest_gap(block, size);
      peak = std::max(peak, offset + size);
      if (peak > limit) return peak;
      offset_[i] = offset;
      const Placed entry{offset, offset + size, block};
      placed_.insert(
          std::upper_bound(placed_.begin(), placed_.end(), entry,
                           [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
          entry);
    }
    return peak;
  }

  [[nodiscard]] const std::vector<std::int64_t>& offsets() const { return offset_; }
  [[nodiscard]] std::int64_t work() const { return work_; }
  [[nodiscard]] bool overlap(std::int32_t a, std::int32_t b) const {
    return Overlaps::test(overlaps_.row(a), b);
  }

 private:
  struct Placed {
    std::int64_t begin, end;
    std::int32_t block;
  };

  std::int64_t lowest_gap(std::int32_t block, std::int64_t size) {
    const std::uint64_t* row = overlaps_.row(block);
    std::int64_t floor = 0;
    std::size_t seen = 0;
    for (; seen < placed_.size(); ++seen) {
      const Placed& other = placed_[seen];
      if (other.end <= floor || !Overlaps::test(row, other.block)) continue;
      if (other.begin - floor >= size) break;
      floor = other.end;
    }
    work_ += static_cast<std::int64_t>(seen) + 8;
    return floor;
  }

  const ArenaBlocks& blocks_;
  Overlaps overlaps_;
  std::vector<Placed> placed_;  // ascending begin
  std::vector<std::int64_t> offset_;
  std::int64_t work_ = 0;
};

template <typename Key>
Order descending(std::size_t count, Key key) {
  Order order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return key(static_cast<std::size_t>(a)) > key(static_cast<std::size_t>(b));
  });
  return order;
}

std::vector<Order> greedy_orders(const ArenaBlocks& blocks) {
  const std::size_t n = blocks.count();
  std::vector<std::int64_t> duration(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (const StepRange& range : blocks.live[i]) duration[i] += range.length();
  }
  const auto area = [&](std::size_t i) {
    return static_cast<double>(blocks.size[i]) * static_cast<double>(duration[i]);
  };
  const auto begin = [&](std::size_t i) { return blocks.live[i].front().begin; };
  return {
      descending(n, [&](std::size_t i) { return std::pair(blocks.size[i], duration[i]); }),
      descending(n, [&](std::size_t i) { return std::pair(area(i), blocks.size[i]); }),
      descending(n, [&](std::size_t i) { return std::pair(duration[i], blocks.size[i]); }),
      descending(n, [&](std::size_t i) { return std::pair(-begin(i), blocks.size[i]); }),
      descending(n, [&](std::size_t i) { return std::pair(blocks.live[i].back().end, area(i)); }),
  };
}

Order by_offset(const std::vector<std::int64_t>& offset) {
  return descending(offset.size(), [&](std::size_t i) { return -offset[i]; });
}

/// Iterated re-insertion: take a block that makes the peak (or one beneath it) and place it
/// earlier.
class Improvement {
 public:
  Improvement(const ArenaBlocks& blocks, FirstFit& fit, BlockOffsets start)
      : blocks_(blocks), fit_(fit), best_(std::move(start)), random_(blocks.count()) {}

  BlockOffsets run(std::int64_t enough, std::int64_t work) {
    work += fit_.work();
    current_ = best_;
    order_ = by_offset(current_.offset);
    int stuck = 0;
    const int patience = 60 + static_cast<int>(blocks_.count()) / 4;
    while (fit_.work() < work && best_.peak > enough) {
      Order candidate = order_;
      if (stuck < patience) {
        raise(candidate);
      } else {
        stuck = 0;
        candidate = by_offset(best_.offset);
        for (int i = 0; i < 4; ++i) reinsert(candidate, pick(candidate.size()), 0);
      }
      const bool kick = stuck == 0;
      const std::int64_t limit = kick ? std::numeric_limits<std::int64_t>::max() : current_.peak;
      const std::int64_t peak = fit_.pack(candidate, limit);
      ++stuck;
      if (peak > limit) continue;
      if (peak < current_.peak) stuck = 1;
      current_ = {fit_.offsets(), peak};
      order_ = by_offset(current_.offset);
      if (peak < best_.peak) best_ = current_;
    }
    return best_;
  }

 private:
  std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>(random_() % static_cast<std::uint32_t>(count));
  }

  /// Moves the block at `from` to a random earlier place, not before `lowest`.
  void reinsert(Order& order, std::size_t from, std::size_t lowest) {
    if (from <= lowest) return;
    const std::size_t to = lowest + pick(from - lowest);
    const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
    std::rotate(at(to), at(from), at(from) + 1);
  }

  void raise(Order& order) {
    std::vector<std::size_t> tops;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto block = static_cast<std::size_t>(order[i]);
      if (current_.offset[block] + blocks_.size[block] == current_.peak) tops.push_back(i);
    }
    std::size_t chosen = tops[pick(tops.size())];
    // Go down a random number of blocks through what the chosen one rests on.
    while (pick(3) == 0) {
      std::vector<std::size_t> beneath;
      for (std::size_t i = 0; i < chosen; ++i) {
        if (fit_.overlap(order[chosen], order[i])) beneath.push_back(i);
      }
      if (beneath.empty()) break;
      chosen = beneath[pick(beneath.size())];
    }
    reinsert(order, chosen, 0);
  }

  const ArenaBlocks& blocks_;
  FirstFit& fit_;
  BlockOffsets best_, current_;
  Order order_;
  std::mt19937 random_;
};

/// By the fullest step of a block's life, then by its duration or its area.
std::vector<Order> tree_preferences(const ArenaBlocks& blocks) {
  const std::vector<Bytes> live = live_bytes(blocks);
  std::vector<std::int64_t> duration(blocks.count()), fullest(blocks.count());
  for (std::size_t i = 0; i < blocks.count(); ++i) {
    for (const StepRange& range : blocks.live[i]) {
      duration[i] += range.length();
      for (std::int32_t t = range.begin; t < range.end; ++t) {
        fullest[i] = std::max(fullest[i], live[static_cast<std::size_t>(t)].count());
      }
    }
  }
  const auto area = [&](std::size_t i) {
    return static_cast<double>(blocks.size[i]) * static_cast<double>(duration[i]);
  };
  const std::size_t n = blocks.count();
  return {
      descending(n, [&](std::size_t i) { return std::tuple(fullest[i], duration[i], area(i)); }),
      descending(n, [&](std::size_t i) { return std::tuple(fullest[i], area(i), duration[i]); }),
      descending(n, [&](std::size_t i) { return std::tuple(area(i), fullest[i], duration[i]); }),
  };
}

/// Capacities from `enough` upwards, each with a share of the work, until one is met, they reach
/// what is known already, or the work is spent.
void search_trees(const ArenaBlocks& blocks, std::int64_t enough, std::int64_t work,
                  BlockOffsets& best) {
  const BlockSections sections = make_sections(blocks);
  const std::vector<Order> preferences = tree_preferences(blocks);
  // One way down without a step back costs a few comparisons a pair of blocks.
  const auto n = static_cast<std::int64_t>(blocks.count());
  const std::int64_t all = work;
  const std::int64_t dive = 4 * n * n;
  if (best.peak <= enough) {  // good enough; the bound for the price of one way down is better
    std::int64_t left = std::min(dive, work);
    auto found = tree_packing(blocks, sections, blocks.lower_bound, preferences.front(), left);
    if (found) best = std::move(*found);
    return;
  }
  for (std::int64_t capacity = enough, step = enough / 512 + 1; capacity < best.peak;
       capacity += step, step += step) {
    // The least capacity is the one that is wanted most.
    const std::int64_t share = std::max(all / (capacity == enough ? 10 : 30), dive);
    for (const Order& preference : preferences) {
      if (work <= 0) return;
      std::int64_t left = std::min(share, work);
      work -= left;
      auto found = tree_packing(blocks, sections, capacity, preference, left);
      work += std::max<std::int64_t>(left, 0);
      if (found) {
        best = std::move(*found);
        return;
      }
    }
  }
}

}  // namespace

std::vector<Bytes> live_bytes(const ArenaBlocks& blocks) {
  LiveSum sum(blocks.steps);
  for (std::size_t i = 0; i < blocks.count(); ++i) {
    for (const StepRange& range : blocks.live[i]) sum.add(range, Bytes(blocks.size[i]));
  }
  return std::move(sum).by_step();
}

BlockOffsets search_packing(const ArenaBlocks& blocks, std::int64_t enough, std::int64_t work) {
  if (blocks.count() == 0) return {};
  enough = std::max(enough, blocks.lower_bound);
  FirstFit fit(blocks);
  BlockOffsets best{{}, std::numeric_limits<std::int64_t>::max()};
  for (const Order& order : greedy_orders(blocks)) {
    const std::int64_t peak = fit.pack(order, best.peak - 1);
    if (peak < best.peak) best = {fit.offsets(), peak};
    if (best.peak == blocks.lower_bound) return best;
  }
  if (work <= 0) return best;
  search_trees(blocks, enough, work, best);
  if (best.peak <= enough) return best;
  return Improvement(blocks, fit, std::move(best)).run(enough, work / 2);
}

BlockOffsets sweep_packing(const ArenaBlocks& blocks) {
  // A block with several ranges keeps its place between them.
  const std::size_t n = blocks.count();
  std::vector<std::vector<std::int32_t>> starting(static_cast<std::size_t>(blocks.steps) + 1),
      ending(static_cast<std::size_t>(blocks.steps) + 1);
  for (std::size_t i = 0; i < n; ++i) {
    starting[static_cast<std::size_t>(blocks.live[i].front().begin)].push_back(
        static_cast<std::int32_t>(i));
    ending[static_cast<std::size_t>(blocks.live[i].back().end)].push_back(
        static_cast<std::int32_t>(i));
  }
  BlockOffsets result{std::vector<std::int64_t>(n), 0};
  std::map<std::int64_t, std::int64_t> free_at;                  // offset -> size
  std::set<std::pair<std::int64_t, std::int64_t>> free_by_size;  // (size, offset)
  const auto add_free = [&](std::int64_t offset, std::int64_t size) {
    free_at.emplace(offset, size);
    free_by_size.emplace(size, offset);
  };
  const auto take_free = [&](std::map<std::int64_t, std::int64_t>::iterator span) {
    free_by_size.erase({span->second, span->first});
    return free_at.erase(span);
  };
  for (std::size_t t = 0; t < starting.size(); ++t) {
    for (const std::int32_t block : ending[t]) {
      std::int64_t offset = result.offset[static_cast<std::size_t>(block)];
      std::int64_t size = blocks.size[static_cast<std::size_t>(block)];
      auto after = free_at.lower_bound(offset);
      if (after != free_at.end() && after->first == offset + size) {
        size += after->second;
        after = take_free(after);
      }
      if (after != free_at.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == offset) {
          offset = before->first;
          size += before->second;
          take_free(before);
        }
      }
      add_free(offset, size);
    }
    std::stable_sort(starting[t].begin(), starting[t].end(), [&](std::int32_t a, std::int32_t b) {
      return blocks.size[static_cast<std::size_t>(a)] > blocks.size[static_cast<std::size_t>(b)];
    });
    for (const std::int32_t block : starting[t]) {
      const std::int64_t size = blocks.size[static_cast<std::size_t>(block)];
      std::int64_t& offset = result.offset[static_cast<std::size_t>(block)];
      const auto fit = free_by_size.lower_bound({size, 0});
      if (fit != free_by_size.end()) {
        offset = fit->second;
        const std::int64_t left = fit->first - size;
        take_free(free_at.find(offset));
        if (left > 0) add_free(offset + size, left);
        continue;
      }
      // Grow at the top, from the free span that reaches it if there is one.
      offset = result.peak;
      if (!free_at.empty()) {
        const auto last = std::prev(free_at.end());
        if (last->first + last->second == result.peak) {
          offset = last->first;
          take_free(last);
        }
      }
      result.peak = offset + size;
    }
  }
  return result;
}

}  // namespace stowage
