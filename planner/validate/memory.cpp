// Checks memory: no two blocks are at one place at one time, and the sums are those that the plan
// claims.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "estimator/arena/arena.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/validate/checks.hpp"

namespace stowage {

namespace {

/// A block in an arena, from boundary `begin` to boundary `end`.
struct Block {
  std::string label;
  StepRange steps;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

Block block_of(const Plan& plan, const Residence& residence) {
  return {storage_label(plan, residence.storage), residence.steps, residence.offset.count(),
          plan.bytes(residence.storage).count()};
}

std::vector<Block> gpu_blocks(const Plan& plan) {
  std::vector<Block> blocks;
  for (const Residence& residence : residences_in(plan, MemoryKind::device))
    blocks.push_back(block_of(plan, residence));
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    if (node.workspace == Bytes{}) continue;
    const auto step = static_cast<std::int32_t>(i);
    blocks.push_back({"workspace of " + step_label(plan, step),
                      {step, step + 1},
                      node.workspace_offset.count(),
                      node.workspace.count()});
  }
  return blocks;
}

std::vector<Block> host_blocks(const Plan& plan, MemoryKind kind) {
  std::vector<Block> blocks;
  for (const Residence& residence : residences_in(plan, kind))
    blocks.push_back(block_of(plan, residence));
  return blocks;
}

std::int64_t highest_end(const std::vector<Block>& blocks) {
  std::int64_t highest = 0;
  for (const Block& block : blocks) highest = std::max(highest, block.offset + block.bytes);
  return highest;
}

// The live bytes of every step, each block counted as a multiple of `granularity`.
std::vector<std::int64_t> live(const std::vector<Block>& blocks, std::size_t steps,
                               Bytes granularity) {
  std::vector<std::int64_t> change(steps + 1, 0);
  for (const Block& block : blocks) {
    const std::int64_t bytes = round_up(Bytes(block.bytes), granularity).count();
    change[static_cast<std::size_t>(block.steps.begin)] += bytes;
    change[static_cast<std::size_t>(block.steps.end)] -= bytes;
  }
  for (std::size_t t = 1; t < change.size(); ++t) change[t] += change[t - 1];
  change.pop_back();
  return change;
}

std::pair<std::int64_t, std::int32_t> largest(const std::vector<std::int64_t>& sums) {
  const auto at = std::max_element(sums.begin(), sums.end());
  return {*at, static_cast<std::int32_t>(at - sums.begin())};
}

// Walks the steps with the live blocks by offset, and compares each block that begins with its two
// neighbours.
void check_overlap(const Plan& plan, std::vector<Block>& blocks, Violations& wrong) {
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.steps.begin < b.steps.begin; });
  using ByOffset = std::map<std::int64_t, const Block*>;
  ByOffset there;
  std::vector<std::vector<const Block*>> leaving(plan.nodes.size() + 1);
  std::size_t next = 0;
  const auto clash = [&](const Block& a, const Block& b) {
    if (a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) return false;
    wrong.note([&] {
      return fmt::format("{} at [{}, {}) lies over {} at [{}, {}) from {} on", a.label, a.offset,
                         a.offset + a.bytes, b.label, b.offset, b.offset + b.bytes,
                         step_label(plan, std::max(a.steps.begin, b.steps.begin)));
    });
    return true;
  };
  for (std::size_t t = 0; t < plan.nodes.size(); ++t) {
    for (const Block* block : leaving[t]) there.erase(block->offset);
    for (; next < blocks.size() && blocks[next].steps.begin == static_cast<std::int32_t>(t);
         ++next) {
      const Block& block = blocks[next];
      if (block.bytes == 0) continue;
      const auto above = there.lower_bound(block.offset);
      bool clashes = above != there.end() && clash(block, *above->second);
      if (above != there.begin()) clashes = clash(block, *std::prev(above)->second) || clashes;
      if (clashes) continue;
      there.emplace(block.offset, &block);
      leaving[static_cast<std::size_t>(block.steps.end)].push_back(&block);
    }
  }
}

Check check_arena(const Plan& plan, std::string name, std::vector<Block> blocks, Bytes size) {
  Violations wrong;
  const std::int64_t highest = highest_end(blocks);
  const Bytes taken = round_up(Bytes(highest), arena_alignment);
  if (taken != size) {
    wrong.note([&] {
      return fmt::format("its blocks take {} bytes, not {}", taken.count(), size.count());
    });
  }
  for (const Block& block : blocks) {
    if (block.offset % arena_alignment.count() != 0) {
      wrong.note([&] {
        return fmt::format("{} at {} is not aligned to {} bytes", block.label, block.offset,
                           arena_alignment.count());
      });
    }
    if (block.offset + block.bytes > size.count()) {
      wrong.note([&] {
        return fmt::format("{} ends at {}, outside an arena of {} bytes", block.label,
                           block.offset + block.bytes, size.count());
      });
    }
  }
  check_overlap(plan, blocks, wrong);
  return verdict(std::move(name), wrong,
                 fmt::format("{} blocks lie apart within {}, the highest ends at {}", blocks.size(),
                             format_bytes(size), format_bytes(Bytes(highest))));
}

Check check_bound(const Plan& plan, const std::vector<Block>& blocks) {
  Violations wrong;
  const auto [sum, step] = largest(live(blocks, plan.nodes.size(), arena_alignment));
  const Bytes bound = plan.totals.arena_lower_bound;
  if (bound.count() != sum) {
    wrong.note([&, sum = sum, step = step] {
      return fmt::format("arena_lower_bound is {}, the largest live sum in granules {} (at {})",
                         bound.count(), sum, step_label(plan, step));
    });
  }
  if (bound > plan.totals.arena) {
    wrong.note([&] {
      return fmt::format("arena_lower_bound {} is above the arena's {}", bound.count(),
                         plan.totals.arena.count());
    });
  }
  return verdict("arena bound", wrong,
                 fmt::format("no packing of these blocks is smaller than {}", format_bytes(bound)));
}

Check check_peak(const Plan& plan, const std::vector<Block>& blocks) {
  Violations wrong;
  const auto [sum, step] = largest(live(blocks, plan.nodes.size(), 1_B));
  if (sum != plan.totals.gpu_peak.count()) {
    wrong.note([&, sum = sum, step = step] {
      return fmt::format("gpu_peak is {}, the largest live sum {} (at {})",
                         plan.totals.gpu_peak.count(), sum, step_label(plan, step));
    });
  }
  return verdict("GPU peak", wrong,
                 fmt::format("{} at {}", format_bytes(Bytes(sum)), step_label(plan, step)));
}

Check check_budget(const Plan& plan) {
  Violations wrong;
  const PlanInputs& inputs = plan.inputs;
  if (!inputs.budget.fits(plan.totals.arena)) {
    wrong.note([&] {
      return fmt::format("the arena's {} are more than the budget of {}", plan.totals.arena.count(),
                         inputs.budget.bytes.count());
    });
  }
  if (inputs.available != Bytes{} && inputs.budget.bytes > inputs.available) {
    wrong.note([&] {
      return fmt::format("the budget of {} is more than the {} available",
                         inputs.budget.bytes.count(), inputs.available.count());
    });
  }
  return verdict("budget", wrong,
                 fmt::format("an arena of {} within {}", format_bytes(plan.totals.arena),
                             format_bytes(inputs.budget.bytes)));
}

}  // namespace

std::vector<Check> check_memory(const Plan& plan) {
  const std::vector<Block> on_gpu = gpu_blocks(plan);
  return {
      check_arena(plan, "GPU arena", on_gpu, plan.totals.arena),
      check_arena(plan, "host arena", host_blocks(plan, MemoryKind::pinned), plan.totals.host_peak),
      check_arena(plan, "pageable arena", host_blocks(plan, MemoryKind::pageable),
                  plan.totals.pageable_peak),
      check_peak(plan, on_gpu),
      check_bound(plan, on_gpu),
      check_budget(plan)};
}

}  // namespace stowage
