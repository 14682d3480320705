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
  Bytes requested;                         ///< as the program asked, while active
  std::int64_t segment_begin = 0;          ///< the address of its segment
  std::int64_t searches_at_insertion = 0;  ///< BlockTable::searches when it became free
  BlockId prev, next;
  StreamId stream;
  std::int32_t pending_events = 0;  ///< freed, and so many streams may still use it
  BlockPool pool = BlockPool::large;
  bool allocated = false;
  bool mapped = true;
  bool expandable = false;
  bool used_elsewhere = false;  ///< on other streams, while allocated

  [[nodiscard]] bool is_split() const { return prev.valid() || next.valid(); }
  [[nodiscard]] bool is_available() const { return !allocated && pending_events == 0; }
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
  /// Room for so many blocks, which are moved where there are more.
  void reserve(std::size_t blocks) { blocks_.reserve(blocks); }

  /// A segment of one block, free and in no set. Segments get rising addresses: of two free blocks
  /// of equal size that of the older segment is the lower.
  BlockId add_segment(Bytes size, StreamId stream, BlockPool pool, bool expandable);
  /// Precondition: it has no neighbours and is in no set.
  void remove_segment(BlockId id);

  /// A reference lasts until a segment is added or a block is split.
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
  /// Takes a free block's lower `size` bytes out of the set; the rest becomes a block in its place.
  void take_lower(BlockId id, Bytes size);
  /// insert of a mapped block, with the neighbours that it may merge with. Gives the bytes gained.
  Bytes insert_merged(BlockId id);

  [[nodiscard]] const FreeBlocks& free_blocks(BlockPool pool) const {
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
