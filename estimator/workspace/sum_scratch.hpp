// The memory that PyTorch's sums allocate on the GPU while they run, for example for the gradient
// of a bias or of a learned scale.
//
// A sum of many values into few outputs is split across thread blocks, which exchange partial sums
// through a buffer. Its size depends on the number of threads that the card runs at once. Source:
// ATen/native/cuda/Reduce.cuh of PyTorch 2.11 and 2.15 (setReduceConfig, global_memory_size), over
// the axes as TensorIterator.cpp orders and joins them.
//
//   3,152 rows of 3,072 floats, an H100: 24 blocks of 32 x 4 threads, 4 outputs a thread, go over
//   the columns. Each thread has 788 values, more than 256, so the rows are split into 50 parts:
//   50 parts x 3,072 outputs x 4 bytes x (32 x 4) = 75 MiB, as measured on an H100.
//
// Not modelled: a counter of 4 bytes per block of the grid, which is allocated besides the buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/data_type.hpp"

namespace stowage {

/// The number of threads that a card runs at once.
struct ThreadCapacity {
  std::int64_t multiprocessors = 0;
  std::int64_t threads = 0;  ///< resident on each
};

/// An axis of the tensor that is summed.
struct SummedAxis {
  std::int64_t size = 1;
  std::int64_t stride = 1;  ///< in elements
  bool summed = false;      ///< false: the result has the axis
};

/// A sum of floating-point values over some of the axes.
struct TensorSum {
  DataType type = DataType::float32;
  std::int64_t offset = 0;       ///< in elements
  std::vector<SummedAxis> axes;  ///< outermost first
};

/// 0: each block sums by itself. Tensors larger than 2 GiB are split in halves recursively, and the
/// larger halves stand for all. Throws ArithmeticOverflow.
[[nodiscard]] Bytes sum_scratch(const TensorSum& sum, const ThreadCapacity& room);

}  // namespace stowage
