#include "estimator/allocator/block_table.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stowage {

namespace {

constexpr Bytes address_alignment = 2_MiB;

UnmappedBlock unmapped_key(const MemoryBlock& block, BlockId id) {
  return {block.stream, block.address, id};
}

}  // namespace

BlockId BlockTable::add(MemoryBlock block) {
  if (spare_.empty()) {
    blocks_.push_back(std::move(block));
    return BlockId::of(blocks_.size() - 1);
  }
  const BlockId id = spare_.back();
  spare_.pop_back();
  blocks_[id.index()] = std::move(block);
  return id;
}

BlockId BlockTable::add_segment(Bytes size, StreamId stream, BlockPool pool, bool expandable) {
  MemoryBlock block;
  block.address = block.segment_begin = next_address_;
  block.size = size;
  block.stream = stream;
  block.pool = pool;
  block.expandable = expandable;
  block.mapped = !expandable;
  next_address_ = checked_add(next_address_, round_up(size, address_alignment).count());
  return add(std::move(block));
}

void BlockTable::remove_segment(BlockId id) {
  assert(!(*this)[id].is_split());
  (*this)[id] = MemoryBlock{};
  spare_.push_back(id);
}

BlockId BlockTable::split(BlockId id, Bytes size) {
  MemoryBlock rest = (*this)[id];
  assert(size > 0_B && size < rest.size && rest.is_available());
  rest.address += size.count();
  rest.size -= size;
  rest.prev = id;
  const BlockId upper = add(std::move(rest));
  MemoryBlock& lower = (*this)[id];
  lower.size = size;
  if (lower.next.valid()) (*this)[lower.next].prev = upper;
  lower.next = upper;
  return upper;
}

bool BlockTable::may_merge(BlockId id, BlockId neighbour) const {
  if (!neighbour.valid()) return false;
  const MemoryBlock& other = (*this)[neighbour];
  return other.is_available() && other.mapped == (*this)[id].mapped;
}

Bytes BlockTable::absorb(BlockId id, BlockId neighbour) {
  MemoryBlock& block = (*this)[id];
  const MemoryBlock& other = (*this)[neighbour];
  if (block.prev == neighbour) {
    block.address = other.address;
    block.prev = other.prev;
    if (block.prev.valid()) (*this)[block.prev].next = id;
  } else {
    assert(block.next == neighbour);
    block.next = other.next;
    if (block.next.valid()) (*this)[block.next].prev = id;
  }
  const Bytes gained = other.size;
  block.size += gained;
  (*this)[neighbour] = MemoryBlock{};
  spare_.push_back(neighbour);
  return gained;
}

Bytes BlockTable::merge(BlockId id, BlockId neighbour) {
  if (!may_merge(id, neighbour)) return {};
  erase(neighbour);
  return absorb(id, neighbour);
}

FreeBlock BlockTable::key_of(BlockId id) const {
  const MemoryBlock& block = (*this)[id];
  return {block.stream, block.size, block.address, id};
}

void BlockTable::insert(BlockId id) {
  MemoryBlock& block = (*this)[id];
  Pool& pool = pool_of(id);
  if (!block.mapped) {
    pool.unmapped.insert(unmapped_key(block, id));
    return;
  }
  block.searches_at_insertion = pool.searches;
  pool.free.insert(key_of(id));
}

void BlockTable::erase(BlockId id) {
  const MemoryBlock& block = (*this)[id];
  Pool& pool = pool_of(id);
  if (block.mapped) {
    pool.free.erase(key_of(id));
    return;
  }
  [[maybe_unused]] const std::size_t erased = pool.unmapped.erase(unmapped_key(block, id));
  assert(erased == 1);
}

void BlockTable::take_lower(BlockId id, Bytes size) {
  Pool& pool = pool_of(id);
  const FreeBlock whole = key_of(id);
  const BlockId rest = split(id, size);
  (*this)[rest].searches_at_insertion = pool.searches;
  pool.free.replace(whole, key_of(rest));
}

Bytes BlockTable::insert_merged(BlockId id) {
  assert((*this)[id].mapped);
  Bytes gained = merge(id, (*this)[id].next);
  const BlockId prev = (*this)[id].prev;
  if (!may_merge(id, prev)) {
    insert(id);
    return gained;
  }
  Pool& pool = pool_of(id);
  const FreeBlock smaller = key_of(prev);
  gained += absorb(id, prev);
  (*this)[id].searches_at_insertion = pool.searches;
  pool.free.replace(smaller, key_of(id));
  return gained;
}

std::vector<BlockId> BlockTable::by_address() const {
  std::vector<BlockId> all;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].size > 0_B) all.push_back(BlockId::of(i));
  }
  std::sort(all.begin(), all.end(),
            [&](BlockId a, BlockId b) { return (*this)[a].address < (*this)[b].address; });
  return all;
}

}  // namespace stowage
