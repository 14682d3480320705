// BlockTable: the blocks of a caching allocator, their neighbours, and which of them are free.
//
// A segment is a piece of device memory cut into blocks without gaps:
//
//     segment  |  a: 8 MiB, allocated  |  b: 4 MiB, free  |  c: 8 MiB, allocated  |
//                        next ->           <- prev next ->          <- prev
//
// prev and next never leave a segment, so that free blocks of two segments never merge, though
// their addresses may touch. A block with a neighbour is called split. In an expandable segment
// some blocks are unmapped: addresses with no memory behind them.
//
// BlockTable knows only this structure; the allocators have the rules and the statistics.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "estimator/allocator/free_blocks.hpp"
#include "estimator/base/bytes.hpp"

namespace stowage {

inline constexpr StreamId default_stream{0};

enum class BlockPool : std::uint8_t { small, large };

struct MemoryBlock {
  std::int64_t address = 0;
  Bytes size;
  Bytes requested;                         ///< size that the program requested, while active
  std::int64_t segment_begin = 0;          ///< the address of its segment
  std::int64_t searches_at_insertion = 0;  ///< BlockTable::searches when it became free
  BlockId prev, next;
  StreamId stream;
  std::int32_t pending_events = 0;  ///< freed blocks: how many streams may still use it
  BlockPool pool = BlockPool::large;
  bool allocated = false;
  bool mapped = true;
  bool expandable = false;
  bool used_on_other_streams = false;  ///< used on other streams while allocated

  [[nodiscard]] bool is_split() const { return prev.valid() || next.valid(); }
  [[nodiscard]] bool is_available() const { return !allocated && pending_events == 0; }
  [[nodiscard]] std::int64_t end() const { return address + size.count(); }
};

/// A block of an expandable segment that has no memory behind it, ordered by stream and address.
struct UnmappedBlock {
  StreamId stream;
  std::int64_t address = 0;
  BlockId block;
  auto operator<=>(const UnmappedBlock&) const = default;
};

/// Owns the blocks. O(log blocks) an operation unless it says otherwise.
class BlockTable {
 public:
  /// Reserves room for that many blocks; the table grows past it.
  void reserve(std::size_t blocks) { blocks_.reserve(blocks); }

  /// Adds a segment of one free block that is in neither set. Segments get rising addresses, so of
  /// two free blocks of equal size the one of the older segment is lower.
  BlockId add_segment(Bytes size, StreamId stream, BlockPool pool, bool expandable);
  /// Removes the segment of one block. Precondition: the block has no neighbours and is in neither
  /// set.
  void remove_segment(BlockId id);

  /// A reference lasts until a segment is added or a block is split.
  [[nodiscard]] MemoryBlock& operator[](BlockId id) { return blocks_[id.index()]; }
  [[nodiscard]] const MemoryBlock& operator[](BlockId id) const { return blocks_[id.index()]; }

  /// Cuts the block: it keeps the lower `size` bytes, and the rest becomes a new block, which is
  /// returned and is in neither set. Neither part may be empty.
  BlockId split(BlockId id, Bytes size);
  /// Merges the neighbour (or none) into the block if it is available and both are mapped or both
  /// unmapped. Returns the bytes gained. Precondition: the block itself is in neither set.
  Bytes merge(BlockId id, BlockId neighbour);

  /// Inserts the block into the set of free blocks, or of unmapped ones, and erases it from there.
  void insert(BlockId id);
  void erase(BlockId id);
  /// Cuts a free block: its lower `size` bytes leave the set, and the rest takes its place there as
  /// a new block.
  void take_lower(BlockId id, Bytes size);
  /// Merges a mapped block with its free neighbours and inserts the result. Returns the bytes
  /// gained.
  Bytes insert_merged(BlockId id);

  [[nodiscard]] const FreeBlocks& free_blocks(BlockPool pool) const {
    return pools_[static_cast<std::size_t>(pool)].free;
  }
  [[nodiscard]] const std::set<UnmappedBlock>& unmapped_blocks(BlockPool pool) const {
    return pools_[static_cast<std::size_t>(pool)].unmapped;
  }

  /// Counts a search of the pool: a free block's age is counted in searches.
  void count_search(BlockPool pool) { ++pools_[static_cast<std::size_t>(pool)].searches; }
  [[nodiscard]] std::int64_t age(const MemoryBlock& block) const {
    return pools_[static_cast<std::size_t>(block.pool)].searches - block.searches_at_insertion;
  }

  /// All blocks by address. O(blocks log blocks).
  [[nodiscard]] std::vector<BlockId> by_address() const;

 private:
  struct Pool {
    FreeBlocks free;
    std::set<UnmappedBlock> unmapped;
    std::int64_t searches = 0;
  };

  BlockId add(MemoryBlock block);
  [[nodiscard]] bool may_merge(BlockId id, BlockId neighbour) const;
  Bytes absorb(BlockId id, BlockId neighbour);
  [[nodiscard]] FreeBlock key_of(BlockId id) const;
  [[nodiscard]] Pool& pool_of(BlockId id) {
    return pools_[static_cast<std::size_t>((*this)[id].pool)];
  }

  std::vector<MemoryBlock> blocks_;
  std::vector<BlockId> spare_;
  std::array<Pool, 2> pools_;
  std::int64_t next_address_ = 0;
};

}  // namespace stowage
