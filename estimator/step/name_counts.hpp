// NameCounts: how often each name was asked for, so that names can be made unique.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace stowage {

/// Knows names by their hashes: the texts of a million storages would be a tenth of all memory.
/// Should two hashes ever agree, the second name counts as a repetition of the first.
class NameCounts {
 public:
  /// How often the name was counted before.
  int count(std::string_view name);

 private:
  [[nodiscard]] std::size_t slot_of(std::uint64_t hash) const;
  void grow();

  std::vector<std::uint64_t> hashes_;  // open addressing, at most half full; 0: free
  std::size_t used_ = 0;
  std::map<std::uint64_t, int> repeated_;  // few
};

}  // namespace stowage
