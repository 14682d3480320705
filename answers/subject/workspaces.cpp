#include "answers/subject/workspaces.hpp"

#include <fmt/format.h>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "gpu_probe/cache/file_cache.hpp"

namespace stowage {

std::string answer_folder(bool keep_answers) { return keep_answers ? default_cache_folder() : ""; }

Workspaces Workspaces::of_cudnn(const Card& card, Runtime runtime, bool keep_answers) {
  Workspaces made;
  auto cudnn = std::make_unique<CudnnWorkspaceSource>(card, answer_folder(keep_answers));
  made.cudnn_ = cudnn.get();
  made.kernels_ = std::move(cudnn);
  made.as_run_ = std::make_unique<RuntimeWorkspaceSource>(*made.kernels_, runtime);
  return made;
}

Workspaces Workspaces::as_asked(const StepQuestion& question, const Card& card, Runtime runtime) {
  return question.asks_cudnn ? of_cudnn(card, runtime, question.keep_answers)
                             : by_rule(card, runtime);
}

Workspaces Workspaces::as_given(const Card& card, bool keep_answers) {
  return of_cudnn(card, executed_runtime, keep_answers);  // which takes them as they are
}

Workspaces Workspaces::by_rule(const Card& card, Runtime runtime) {
  Workspaces made;
  made.kernels_ = rule_workspace_source(card.compute_capability);
  made.as_run_ = std::make_unique<RuntimeWorkspaceSource>(*made.kernels_, runtime);
  return made;
}

Diagnostics Workspaces::notes() const {
  const std::string why = cudnn_ == nullptr ? "" : cudnn_->no_cudnn_reason();
  if (why.empty()) return {};
  return {
      {.severity = Severity::warning,
       .message = fmt::format("workspaces are by a rule and not cuDNN's own, which may differ by "
                              "hundreds of MiB: {}",
                              why),
       .hint = "no CUDA is needed: pip install nvidia-cudnn-cu13 in the active Python "
               "environment, or `cudnn` DIR"}};
}

}  // namespace stowage
