#include "estimator/step/script_holds.hpp"

namespace stowage {

void ScriptHolds::set(StorageId storage, const ScriptHold& hold) {
  const bool is_last = entries_.empty() || entries_.back().storage < storage;
  const auto at =
      is_last ? entries_.end() : std::ranges::lower_bound(entries_, storage, {}, &Entry::storage);
  const bool is_known = at != entries_.end() && at->storage == storage;
  if (hold == nothing) {
    if (is_known) entries_.erase(at);
  } else if (is_known) {
    at->hold = hold;
  } else {
    entries_.insert(at, {storage, hold});
  }
}

void ScriptHolds::drop_from(StorageId end) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.storage >= end; });
}

}  // namespace stowage
