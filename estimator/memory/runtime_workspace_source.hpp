// RuntimeWorkspaceSource: another source's answers as a runtime makes use of them.
//
// TensorFlow times every engine of a convolution at its first call (TF_CUDNN_USE_AUTOTUNE, on by
// default), each in scratch memory of its own from the pool, and keeps the fastest. Engines that
// want more than 4 GiB are left out (TF_CUDNN_WORKSPACE_LIMIT_IN_MB). Only a timing knows the
// winner; the largest stands first, which is what the pool has to have room for if it is to be
// timed at all, and the conservative choice for the steps that follow.
//
// For the other runtimes the answers are passed on as they are.
#pragma once

#include "estimator/memory/runtime.hpp"
#include "estimator/memory/workspace_source.hpp"

namespace stowage {

class RuntimeWorkspaceSource : public WorkspaceSource {
 public:
  /// `source` outlives it.
  RuntimeWorkspaceSource(WorkspaceSource& source, Runtime runtime)
      : source_(source), runtime_(runtime) {}
  [[nodiscard]] WorkspaceAnswer engines(const ConvolutionQuery& query) override;

 private:
  WorkspaceSource& source_;
  Runtime runtime_;
};

}  // namespace stowage
