// What Theano's flags say of a card's memory.
//
// Two backends had a pool. `device=gpuN` is the old one (theano.sandbox.cuda, up to 0.9): with
// lib.cnmem it takes a share of the card for CNMeM, without it every tensor is the driver's own.
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
  /// gpuarray.preallocate or lib.cnmem: up to 1 a share of the card (at most 0.95 of it), above it
  /// MiB. 0: nothing at the start. Negative: no cache.
  double preallocate = 0;
  /// allow_gc=False: what a function computes is kept until it runs again.
  bool keeps_intermediates = false;
  bool operator==(const TheanoMemory&) const = default;
};

/// "device=cuda,floatX=float32,lib.cnmem=0.8", as the variable THEANO_FLAGS has them. `floatX` must
/// be `float_x`, the step's own. `source`: what to call the text in an error. Errors: flags that
/// are unknown, that contradict each other, or whose effect on memory is not known.
[[nodiscard]] Result<TheanoMemory> parse_theano_flags(std::string_view text,
                                                      std::string_view source);

/// What is taken from the driver before anything is computed; none where nothing is preallocated.
[[nodiscard]] Bytes theano_preallocation(const TheanoMemory& memory, Bytes total);

/// "CNMeM", "libgpuarray's cache", or "the driver" where nothing is cached.
[[nodiscard]] std::string_view theano_pool_name(const TheanoMemory& memory);

/// The pool's rules.
[[nodiscard]] BestFitSettings theano_pool(const TheanoMemory& memory, Bytes total);

}  // namespace stowage
