// CudnnHandle: cuDNN on one device, and the execution of plans on its streams.
#pragma once

#include <memory>

#include "estimator/base/diagnostic.hpp"
#include "gpu_probe/cudnn/library.hpp"
#include "gpu_probe/cudnn/target.hpp"

namespace stowage {

/// Owns one handle of cuDNN. Not thread-safe. What was made for it (CudnnTarget) is destroyed
/// first.
class CudnnHandle {
 public:
  /// In the current context. The library outlives this. Errors: cuDNN's own words.
  [[nodiscard]] static Result<std::unique_ptr<CudnnHandle>> open(const CudnnLibrary& library);
  /// As open(); throws LibraryFailure.
  explicit CudnnHandle(const CudnnLibrary& library);
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  ~CudnnHandle();

  [[nodiscard]] const CudnnLibrary& library() const { return library_; }
  /// For graphs and plans that this handle executes.
  [[nodiscard]] CudnnTarget target() const { return {.handle = handle_}; }

  /// Queues an execution plan with its tensors (variant_pack) on a stream. Throws LibraryFailure.
  void execute(const CudnnDescriptor& plan, const CudnnDescriptor& tensors, void* stream) const;

 private:
  const CudnnLibrary& library_;
  void* handle_ = nullptr;
};

}  // namespace stowage
