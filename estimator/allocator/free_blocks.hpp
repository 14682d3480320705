// FreeBlocks: the free blocks of a pool in the order in which they are searched.
//
// A step of a large network has a hundred thousand of them at once and takes a million in and out.
// They stand sorted in runs of neighbours in memory, beside a list of each run's last:
//
//     last   [           d |           g |           m ]
//     runs   [ a b d ]     [ e f g ]     [ h k l m ]
//
// so that a search is one in the list and one in a run, and a change moves part of one run: no
// allocation a block, and several times faster than a tree.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/id.hpp"

namespace stowage {

using BlockId = Id<struct BlockTag>;    ///< none: what an allocation of no bytes gives
using StreamId = Id<struct StreamTag>;  ///< a CUDA stream

/// Ordered as best fit searches: of a stream's the smallest that is large enough comes first, of
/// equal ones the lowest.
struct FreeBlock {
  StreamId stream;
  Bytes size;
  std::int64_t address = 0;  ///< no two of a set have the same
  BlockId block = {};
  auto operator<=>(const FreeBlock&) const = default;
};

/// O(log blocks) an operation, and the moves within two short lists.
class FreeBlocks {
 public:
  void insert(const FreeBlock& block);  ///< precondition: it is not there
  void erase(const FreeBlock& block);   ///< precondition: it is there
  /// erase and insert; where nothing stands between the two, the one is written over the other.
  void replace(const FreeBlock& block, const FreeBlock& by);

  // Null: there is none. A pointer lasts until the next change.
  [[nodiscard]] const FreeBlock* first_after(const FreeBlock& place) const;
  [[nodiscard]] const FreeBlock* last_before(const FreeBlock& place) const;
  [[nodiscard]] const FreeBlock* last() const { return last_.empty() ? nullptr : &last_.back(); }

  [[nodiscard]] std::vector<FreeBlock> in_order() const;  ///< a copy

 private:
  using Run = std::vector<FreeBlock>;
  struct Place {
    std::size_t run = 0, index = 0;
  };
  [[nodiscard]] std::size_t run_for(const FreeBlock& block) const;
  [[nodiscard]] Place place_of(const FreeBlock& block) const;
  void erase(Place place);
  void split(std::size_t run);

  std::vector<Run> runs_;        // none is empty
  std::vector<FreeBlock> last_;  // of each run
  mutable Place found_;          // by the last search: most often what is changed next
};

}  // namespace stowage
