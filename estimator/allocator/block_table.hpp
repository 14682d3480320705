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
// This file knows structure alone; caching_allocator.hpp has the rules and the figures.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/id.hpp"

namespace stowage {

using BlockId = Id<struct BlockTag>;    ///< none: what an allocation of no bytes gives
using StreamId = Id<struct StreamTag>;  ///< a CUDA stream

inline constexpr StreamId default_stream{0};

enum class BlockPool { small, large };

/// The order in which free blocks are searched: the smallest that is large enough comes first, of
/// equal ones the lowest.
struct FreeBlock {
  StreamId stream;
  Bytes size;
  std::int64_t address = 0;
  BlockId block;
  auto operator<=>(const FreeBlock&) const = default;
};

struct MemoryBlock {
  std::int64_t address = 0;
  Bytes size;
  Bytes requested;  ///< as the program asked, while active
  StreamId stream;
  BlockPool pool = BlockPool::large;
  std::int64_t segment_begin = 0;  ///< the address of its segment
  BlockId prev, next;
  bool allocated = false;
  bool mapped = true;
  bool expandable = false;
  int pending_events = 0;                    ///< freed, and so many streams may still use it
  std::int64_t searches_at_insertion = 0;    ///< BlockTable::searches when it became free
  std::vector<StreamId> used_on;             ///< other streams, while allocated
  std::set<FreeBlock>::iterator place = {};  ///< while in the set of free blocks: where

  [[nodiscard]] bool is_split() const { return prev.valid() || next.valid(); }
  [[nodiscard]] bool is_available() const {
    return !allocated && pending_events == 0 && used_on.empty();
  }
  [[nodiscard]] std::int64_t end() const { return address + size.count(); }
};

struct UnmappedBlock {
  StreamId stream;
  std::int64_t address = 0;
  BlockId block;
  auto operator<=>(const UnmappedBlock&) const = default;
};

class BlockTable {
 public:
  /// A segment of one block, free and in no set. Segments get rising addresses: of two free blocks
  /// of equal size that of the older segment is the lower.
  BlockId add_segment(Bytes size, StreamId stream, BlockPool pool, bool expandable);
  /// Precondition: it has no neighbours and is in no set.
  void remove_segment(BlockId id);

  [[nodiscard]] MemoryBlock& operator[](BlockId id) { return blocks_[id.index()]; }
  [[nodiscard]] const MemoryBlock& operator[](BlockId id) const { return blocks_[id.index()]; }

  /// The block keeps the lower `size` bytes; gives the rest, in no set. Neither may be empty.
  BlockId split(BlockId id, Bytes size);
  /// Takes the neighbour (or none) into the block where it may be: it is available, and mapped or
  /// not as the block is. Gives the bytes gained. The block itself must be in no set.
  Bytes merge(BlockId id, BlockId neighbour);

  /// Into the set of the free or of the unmapped blocks, and out of it.
  void insert(BlockId id);
  void erase(BlockId id);

  [[nodiscard]] const std::set<FreeBlock>& free_blocks(BlockPool pool) const {
    return pools_[static_cast<std::size_t>(pool)].free;
  }
  [[nodiscard]] const std::set<UnmappedBlock>& unmapped_blocks(BlockPool pool) const {
    return pools_[static_cast<std::size_t>(pool)].unmapped;
  }

  /// Searches are the clock by which free blocks age.
  void count_search(BlockPool pool) { ++pools_[static_cast<std::size_t>(pool)].searches; }
  [[nodiscard]] std::int64_t age(const MemoryBlock& block) const {
    return pools_[static_cast<std::size_t>(block.pool)].searches - block.searches_at_insertion;
  }

  /// All blocks by address. O(blocks log blocks).
  [[nodiscard]] std::vector<BlockId> by_address() const;

 private:
  struct Pool {
    std::set<FreeBlock> free;
    std::set<FreeBlock>::node_type spare;  ///< of the last that was erased, for the next
    std::set<UnmappedBlock> unmapped;
    std::int64_t searches = 0;
  };

  BlockId add(MemoryBlock block);

  std::deque<MemoryBlock> blocks_;  ///< references to blocks stay good when others are added
  std::vector<BlockId> spare_;
  std::array<Pool, 2> pools_;
  std::int64_t next_address_ = 0;
};

}  // namespace stowage
