#include "estimator/allocator/free_blocks.hpp"

#include <algorithm>
#include <cassert>

namespace stowage {

namespace {

constexpr std::size_t longest_run = 64;

std::ptrdiff_t offset(std::size_t index) { return static_cast<std::ptrdiff_t>(index); }

}  // namespace

/// The first run that does not end before the block, or the last of all.
std::size_t FreeBlocks::run_for(const FreeBlock& block) const {
  const auto at = std::lower_bound(last_.begin(), last_.end(), block);
  return static_cast<std::size_t>(std::min(at, last_.end() - 1) - last_.begin());
}

void FreeBlocks::insert(const FreeBlock& block) {
  if (runs_.empty()) {
    runs_.emplace_back().reserve(longest_run);
    last_.emplace_back();
  }
  std::size_t at = run_for(block);
  if (runs_[at].size() == longest_run) {
    split(at);
    at = run_for(block);
  }
  Run& run = runs_[at];
  run.insert(std::lower_bound(run.begin(), run.end(), block), block);
  last_[at] = run.back();
}

void FreeBlocks::split(std::size_t run) {
  Run upper;
  upper.reserve(longest_run);
  upper.assign(runs_[run].begin() + offset(longest_run / 2), runs_[run].end());
  runs_[run].resize(longest_run / 2);
  last_.insert(last_.begin() + offset(run), runs_[run].back());
  runs_.insert(runs_.begin() + offset(run) + 1, std::move(upper));
}

FreeBlocks::Place FreeBlocks::place_of(const FreeBlock& block) const {
  const bool exists = found_.run < runs_.size() && found_.index < runs_[found_.run].size();
  if (exists && runs_[found_.run][found_.index] == block) return found_;
  const std::size_t at = run_for(block);
  const Run& run = runs_[at];
  const auto place = std::lower_bound(run.begin(), run.end(), block);
  assert(place != run.end() && *place == block);
  return {at, static_cast<std::size_t>(place - run.begin())};
}

void FreeBlocks::erase(const FreeBlock& block) { erase(place_of(block)); }

void FreeBlocks::erase(Place place) {
  Run& run = runs_[place.run];
  run.erase(run.begin() + offset(place.index));
  if (!run.empty()) {
    last_[place.run] = run.back();
    return;
  }
  runs_.erase(runs_.begin() + offset(place.run));
  last_.erase(last_.begin() + offset(place.run));
}

void FreeBlocks::replace(const FreeBlock& block, const FreeBlock& by) {
  const Place at = place_of(block);
  Run& run = runs_[at.run];
  const bool first = at.index == 0, last = at.index + 1 == run.size();
  const FreeBlock* const before = !first        ? &run[at.index - 1]
                                  : at.run == 0 ? nullptr
                                                : &last_[at.run - 1];
  const FreeBlock* const after = !last                        ? &run[at.index + 1]
                                 : at.run + 1 == runs_.size() ? nullptr
                                                              : &runs_[at.run + 1].front();
  if ((before == nullptr || *before < by) && (after == nullptr || by < *after)) {
    run[at.index] = by;
    last_[at.run] = run.back();
    return;
  }
  erase(at);
  insert(by);
}

const FreeBlock* FreeBlocks::first_after(const FreeBlock& place) const {
  const auto last = std::upper_bound(last_.begin(), last_.end(), place);
  if (last == last_.end()) return nullptr;
  found_.run = static_cast<std::size_t>(last - last_.begin());
  const Run& run = runs_[found_.run];
  const auto after = std::upper_bound(run.begin(), run.end(), place);
  found_.index = static_cast<std::size_t>(after - run.begin());
  return &*after;
}

const FreeBlock* FreeBlocks::last_before(const FreeBlock& place) const {
  if (runs_.empty()) return nullptr;
  const std::size_t at = run_for(place);
  const Run& run = runs_[at];
  const auto before = std::lower_bound(run.begin(), run.end(), place);
  if (before != run.begin()) return &*(before - 1);
  return at == 0 ? nullptr : &last_[at - 1];
}

std::vector<FreeBlock> FreeBlocks::in_order() const {
  std::vector<FreeBlock> all;
  for (const Run& run : runs_) all.insert(all.end(), run.begin(), run.end());
  return all;
}

}  // namespace stowage
