// A second BfcAllocator for the random traces: 21 bins, regions as vectors of chunks, linear
// searches, every figure counted anew. It shares no code with the first but settings and results.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/allocator/bfc_allocator.hpp"

namespace stowage {

class NaiveBfcAllocator {
 public:
  NaiveBfcAllocator(const BfcSettings& settings, Bytes total, Bytes in_use);

  int allocate(Bytes bytes);  ///< a handle; -1: refused
  void free(int handle);
  void reset_peaks() { statistics_.reset_peaks(); }
  [[nodiscard]] const AllocatorStatistics& statistics() const { return statistics_; }

 private:
  struct Chunk {
    std::int64_t size = 0;
    std::int64_t requested = 0;
    int handle = -1;  ///< none: free
  };
  struct Region {
    int age = 0;
    std::vector<Chunk> chunks;
  };

  bool place(std::int64_t asked, std::int64_t rounded);
  bool add_region(std::int64_t rounded);
  bool drop_free_regions(std::int64_t rounded);
  void observe();
  [[nodiscard]] std::int64_t pool() const;
  [[nodiscard]] std::int64_t device_free() const;

  BfcSettings settings_;
  std::int64_t total_, limit_, region_size_, excess_;
  std::vector<Region> regions_;
  int next_handle_ = 0, next_age_ = 0;
  AllocatorStatistics statistics_;
};

}  // namespace stowage
