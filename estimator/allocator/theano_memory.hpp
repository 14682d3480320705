// TheanoMemory: how Theano's flags (THEANO_FLAGS) use a card's memory.
//
// Two backends have a pool. `device=gpuN` is the old one (theano.sandbox.cuda, up to 0.9): with
// lib.cnmem, CNMeM takes a share of the card; without it, every tensor is a driver allocation.
// `device=cudaN` is the new one (gpuarray, 0.9 and 1.0), whose libgpuarray always caches, unless
// gpuarray.preallocate is negative. Sources: theano/configdefaults.py, gpuarray/__init__.py
// (init_dev), sandbox/cuda/cuda_ndarray.cu (CudaNdarray_gpu_init), in Theano 1.0 and 0.9.
#pragma once

#include <string_view>

#include "estimator/allocator/best_fit_allocator.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

enum class TheanoBackend { gpuarray, cuda };

struct TheanoMemory {
  TheanoBackend backend = TheanoBackend::gpuarray;
  /// gpuarray.preallocate or lib.cnmem: up to 1 a share of the card (at most 0.95 is used), above 1
  /// a number of MiB. 0: nothing is preallocated. Negative: no cache.
  double preallocate = 0;
  /// allow_gc=False: a function's intermediate results are kept until it runs again.
  bool keeps_intermediates = false;
  bool operator==(const TheanoMemory&) const = default;
};

/// Reads "device=cuda,lib.cnmem=0.8", the syntax of the variable THEANO_FLAGS. `source`: what
/// messages call the text. Errors: flags that are unknown, that contradict each other, or whose
/// effect on memory is not known.
[[nodiscard]] Result<TheanoMemory> parse_theano_flags(std::string_view text,
                                                      std::string_view source);

/// The bytes that the pool takes from the driver before the first computation; 0 without
/// preallocation.
[[nodiscard]] Bytes theano_preallocation(const TheanoMemory& memory, Bytes total);

/// "CNMeM", "libgpuarray's cache", or "the driver" where nothing is cached.
[[nodiscard]] std::string_view theano_pool_name(const TheanoMemory& memory);

/// The settings of the pool.
[[nodiscard]] BestFitSettings theano_pool(const TheanoMemory& memory, Bytes total);

}  // namespace stowage
