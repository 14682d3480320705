// RuntimeWorkspaceSource: another source's answers as a runtime makes use of them.
//
// TensorFlow leaves out engines that want more than 4 GiB (TF_CUDNN_WORKSPACE_LIMIT_IN_MB). It also
// times the candidates at a convolution's first call (TF_CUDNN_USE_AUTOTUNE, on by default) and
// keeps the fastest, which only a timing knows: here cuDNN's own order stands for it.
//
// For the other runtimes the answers are passed on as they are.
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
