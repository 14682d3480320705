// Group: a group of threads that share one index. On a device it is a block; on the host it is one
// thread, or in tests several with a barrier between them.
//
// Every thread of a group calls the same functions of it in the same order: a call may not stand in
// a branch that only some threads take. The order of a sum depends only on the group's size, so the
// same inputs give the same bits.
#pragma once

#include "gpu_probe/kernels/bodies/device.hpp"

#ifndef __CUDACC_RTC__
#include <barrier>
#include <cstddef>
#include <vector>
#endif

namespace stowage::body {

/// The most threads in a group; on a device their number is a multiple of 32.
constexpr int largest_group = 1024;
/// The largest size of a value that threads exchange.
constexpr int largest_value = 16;
/// Bytes of memory that a group shares: what a device gives a block by default.
#ifdef __CUDACC_RTC__
constexpr int largest_shared = 48 << 10;
#else
constexpr int largest_shared = 96 << 10;
#endif

struct Sum {
  template <class T>
  STOWAGE_BODY T operator()(T a, T b) const {
    return a + b;
  }
};
/// The larger of two numbers; NaN if one is, as in PyTorch.
struct Maximum {
  template <class T>
  STOWAGE_BODY T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};

#ifdef __CUDACC_RTC__

class Group {
 public:
  STOWAGE_BODY Index rank() const { return threadIdx.x; }
  STOWAGE_BODY Index size() const { return blockDim.x; }
  STOWAGE_BODY void synchronize() const { __syncthreads(); }

  /// Combines the values of all threads; every thread gets the same result. `combine` is
  /// commutative.
  template <class Value, class Combine>
  STOWAGE_BODY Value combined(Value value, Combine combine) const {
    for (int mask = 16; mask > 0; mask /= 2) value = combine(value, from_lane(value, mask));
    const int warps = blockDim.x / 32;
    if (warps == 1) return value;
    Value* const slots = scratch<Value>();
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
    __syncthreads();
    value = slots[0];
    for (int warp = 1; warp < warps; ++warp) value = combine(value, slots[warp]);
    __syncthreads();
    return value;
  }

  /// The sum over the threads whose rank has the same remainder modulo `across`. Threads below
  /// `across` get it.
  template <class Value>
  STOWAGE_BODY Value summed_across(Value value, Index across) const {
    Value* const slots = scratch<Value>();
    slots[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x < across) {
      for (Index i = threadIdx.x + across; i < blockDim.x; i += across) value = value + slots[i];
    }
    __syncthreads();
    return value;
  }

  /// Calls work(memory) with a Memory that all threads of the group share. It is uninitialised, and
  /// lost when the body returns. At most once in a body. A thread that reads what others write
  /// there calls synchronize() before.
  template <class Memory, class Work>
  STOWAGE_BODY void sharing(Work work) const {
    static_assert(sizeof(Memory) <= largest_shared);
    __shared__ Memory memory;
    work(memory);
  }

 private:
  template <class Value>
  STOWAGE_BODY static Value from_lane(Value value, int mask) {
    static_assert(sizeof(Value) % 4 == 0 && sizeof(Value) <= largest_value);
    Word32 words[sizeof(Value) / 4];
    memcpy(words, &value, sizeof value);
    for (Word32& word : words) word = __shfl_xor_sync(0xffffffffU, word, mask);
    memcpy(&value, words, sizeof value);
    return value;
  }
  template <class Value>
  STOWAGE_BODY static Value* scratch() {
    static_assert(sizeof(Value) <= largest_value);
    __shared__ double2 slots[largest_group];
    return reinterpret_cast<Value*>(slots);
  }
};

#else

class Group {
 public:
  /// What the threads of a group of several threads share.
  struct Shared {
    explicit Shared(Index size)
        : barrier(size),
          slots(static_cast<std::size_t>(size * largest_value)),
          memory(largest_shared / sizeof(std::max_align_t)) {}
    std::barrier<> barrier;
    std::vector<unsigned char> slots;
    std::vector<std::max_align_t> memory;
  };

  Group() = default;  ///< a group of one thread
  Group(Index rank, Index size, Shared& shared) : rank_(rank), size_(size), shared_(&shared) {}

  [[nodiscard]] Index rank() const { return rank_; }
  [[nodiscard]] Index size() const { return size_; }
  void synchronize() const {
    if (size_ > 1) shared_->barrier.arrive_and_wait();
  }

  template <class Value, class Combine>
  [[nodiscard]] Value combined(Value value, Combine combine) const {
    if (size_ == 1) return value;
    put(value);
    Value result = get<Value>(0);
    for (Index i = 1; i < size_; ++i) result = combine(result, get<Value>(i));
    synchronize();
    return result;
  }

  template <class Value>
  [[nodiscard]] Value summed_across(Value value, Index across) const {
    if (size_ == 1) return value;
    put(value);
    for (Index i = rank_ + across; rank_ < across && i < size_; i += across) {
      value = value + get<Value>(i);
    }
    synchronize();
    return value;
  }

  template <class Memory, class Work>
  void sharing(Work work) const {
    static_assert(sizeof(Memory) <= largest_shared);
    if (size_ > 1) return work(*reinterpret_cast<Memory*>(shared_->memory.data()));
    Memory memory;
    work(memory);
  }

 private:
  template <class Value>
  void put(Value value) const {
    static_assert(sizeof(Value) <= largest_value);
    std::memcpy(&shared_->slots[static_cast<std::size_t>(rank_ * largest_value)], &value,
                sizeof value);
    synchronize();
  }
  template <class Value>
  [[nodiscard]] Value get(Index i) const {
    Value value;
    std::memcpy(&value, &shared_->slots[static_cast<std::size_t>(i * largest_value)], sizeof value);
    return value;
  }

  Index rank_ = 0, size_ = 1;
  Shared* shared_ = nullptr;
};

#endif

template <class Value>
STOWAGE_BODY Value sum_of(const Group& group, Value value) {
  return group.combined(value, Sum{});
}

template <class Real>
struct Pair {
  Real first, second;
  STOWAGE_BODY Pair operator+(Pair other) const {
    return {first + other.first, second + other.second};
  }
};

/// Sums over the columns of `rows` rows, for bodies whose index is a tile of columns. Adds up
/// `value(row, column)`; one thread for each column calls `store(column, sum)`. Neighbouring
/// threads read neighbouring columns of a row, as a device prefers it.
constexpr Index columns_a_tile = 32;
STOWAGE_BODY Index tiles_of(Index columns) {
  return (columns + columns_a_tile - 1) / columns_a_tile;
}
template <class Value, class At, class Store>
STOWAGE_BODY void sum_columns(const Group& group, Index tile, Index columns, Index rows, At at,
                              Store store) {
  const Index first = tile * columns_a_tile, last = least(columns, first + columns_a_tile);
  if (group.size() == 1) {
    Value sums[columns_a_tile] = {};
    for (Index row = 0; row < rows; ++row) {
      for (Index c = first; c < last; ++c) sums[c - first] = sums[c - first] + at(row, c);
    }
    for (Index c = first; c < last; ++c) store(c, sums[c - first]);
    return;
  }
  const Index across = least(group.size(), columns_a_tile);
  const Index lane = group.rank() / across, lanes = group.size() / across;
  for (Index begin = first; begin < last; begin += across) {
    const Index column = begin + group.rank() % across;
    Value sum{};
    for (Index row = lane; column < last && row < rows; row += lanes) sum = sum + at(row, column);
    sum = group.summed_across(sum, across);
    if (lane == 0 && column < last) store(column, sum);
  }
}

}  // namespace stowage::body
