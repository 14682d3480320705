#include "estimator/step/name_counts.hpp"

#include <algorithm>
#include <functional>

namespace stowage {

int NameCounts::count(std::string_view name) {
  if (2 * (used_ + 1) > hashes_.size()) grow();
  const std::uint64_t hash = std::max<std::uint64_t>(std::hash<std::string_view>()(name), 1);
  std::uint64_t& slot = hashes_[slot_of(hash)];
  if (slot == hash) return ++repeated_[hash];
  slot = hash;
  ++used_;
  return 0;
}

// Where the hash is, or the free slot where it belongs. The size is a power of two.
std::size_t NameCounts::slot_of(std::uint64_t hash) const {
  std::size_t slot = hash & (hashes_.size() - 1);
  while (hashes_[slot] != 0 && hashes_[slot] != hash) slot = (slot + 1) & (hashes_.size() - 1);
  return slot;
}

void NameCounts::grow() {
  const std::vector<std::uint64_t> old = std::move(hashes_);
  hashes_.assign(std::max<std::size_t>(2 * old.size(), 1024), 0);
  for (const std::uint64_t hash : old) {
    if (hash != 0) hashes_[slot_of(hash)] = hash;
  }
}

}  // namespace stowage
