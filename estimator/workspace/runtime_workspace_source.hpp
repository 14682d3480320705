// RuntimeWorkspaceSource: filters another source's answers by what a runtime accepts.
//
// TensorFlow rejects engines that need more than 4 GiB (TF_CUDNN_WORKSPACE_LIMIT_IN_MB). It also
// times the candidates at a convolution's first call and keeps the fastest (TF_CUDNN_USE_AUTOTUNE,
// on by default); this is not simulated, and cuDNN's own order is used instead.
//
// For other runtimes the answers are unchanged.
#pragma once

#include "estimator/base/runtime.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

class RuntimeWorkspaceSource : public WorkspaceSource {
 public:
  /// `source` outlives it.
  RuntimeWorkspaceSource(WorkspaceSource& source, Runtime runtime)
      : source_(source), runtime_(runtime) {}
  [[nodiscard]] WorkspaceAnswer engines(const ConvolutionQuery& query) override;
  [[nodiscard]] WorkspaceAnswer attention_engines(const AttentionQuery& query) override {
    return source_.attention_engines(query);
  }

 private:
  WorkspaceSource& source_;
  Runtime runtime_;
};

}  // namespace stowage
