// Workspaces: where a question's answer has its kernels' workspaces from.
//
//   cuDNN for the described card, or the documented rule  ->  as the runtime makes use of them
#pragma once

#include <memory>
#include <string>

#include "estimator/base/diagnostic.hpp"
#include "estimator/base/runtime.hpp"
#include "estimator/card/card.hpp"
#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"

namespace stowage {

/// Where cuDNN's answers are kept; "" where they are not to be, or with STOWAGE_NO_CACHE.
[[nodiscard]] std::string answer_folder(bool keep_answers);

class Workspaces {
 public:
  /// cuDNN's own answers where it serves the card and can be asked, else the documented rule's.
  [[nodiscard]] static Workspaces of_cudnn(const Card& card, Runtime runtime, bool keep_answers);
  /// As above, as cuDNN gives them: what plans are made and checked with.
  [[nodiscard]] static Workspaces as_given(const Card& card, bool keep_answers) {
    return of_cudnn(card, Runtime::stowage, keep_answers);
  }
  /// The documented rule's, whatever cuDNN would say.
  [[nodiscard]] static Workspaces by_rule(const Card& card, Runtime runtime);

  /// Lives as long as this, wherever this is moved to. Not for concurrent use.
  [[nodiscard]] WorkspaceSource& source() const { return *as_run_; }

  /// A warning where cuDNN serves the card and cannot be asked: the workspaces are then by rule.
  /// Empty before the first question.
  [[nodiscard]] Diagnostics notes() const;

 private:
  std::unique_ptr<WorkspaceSource> kernels_;
  const CudnnWorkspaceSource* cudnn_ = nullptr;  // kernels_; null: by rule
  std::unique_ptr<WorkspaceSource> as_run_;      // what the runtime makes of kernels_
};

}  // namespace stowage
