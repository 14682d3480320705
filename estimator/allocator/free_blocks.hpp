// FreeBlocks: the free blocks of a pool, sorted in the order of the best-fit search.
//
// A step of a large network has a hundred thousand free blocks at once and a million insertions and
// removals. The sorted sequence is cut into runs, each a vector, beside a list of the last element
// of each run:
//
//     last   [           d |           g |           m ]
//     runs   [ a b d ]     [ e f g ]     [ h k l m ]
//
// A search looks into the list and into one run, and a change moves part of one run. This needs no
// memory allocation per block and is several times faster than a tree.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/id.hpp"

namespace stowage {

using BlockId = Id<struct BlockTag>;    ///< none: the result of allocating 0 bytes
using StreamId = Id<struct StreamTag>;  ///< a CUDA stream

/// Ordered by stream, size and address, so that a search upward finds the smallest sufficient block
/// of a stream, and of equal sizes the lowest.
struct FreeBlock {
  StreamId stream;
  Bytes size;
  std::int64_t address = 0;  ///< unique within a set
  BlockId block = {};
  auto operator<=>(const FreeBlock&) const = default;
};

/// O(log blocks) an operation, plus moves within two short vectors.
class FreeBlocks {
 public:
  void insert(const FreeBlock& block);  ///< precondition: it is not there
  void erase(const FreeBlock& block);   ///< precondition: it is there
  /// Erases `block` and inserts `by`; if they are neighbours, `by` overwrites `block` in place.
  void replace(const FreeBlock& block, const FreeBlock& by);

  // These return null where there is no such block. A pointer is valid until the next change.
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
  mutable Place found_;  // result of the last search: usually the place that is changed next
};

}  // namespace stowage
