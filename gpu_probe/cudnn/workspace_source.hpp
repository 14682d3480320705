// CudnnWorkspaceSource: asks cuDNN for workspaces on a described card, and uses the documented rule
// (docs/workspaces.md) where cuDNN cannot answer. cuDNN is loaded at the first question that its
// cache does not answer. Each distinct question is asked once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "estimator/card/card.hpp"
#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/cudnn/answer_cache.hpp"
#include "gpu_probe/cudnn/session.hpp"

namespace stowage {

/// Answers have at most this many engines, in cuDNN's order: the first, those with less workspace
/// than all before them, the largest, and then as many of the others as fit. (Benchmark's plans are
/// all kept.)
inline constexpr std::size_t most_engines = 8;

class CudnnWorkspaceSource final : public WorkspaceSource {
 public:
  /// `cache_folder`: where answers are kept; "": nowhere.
  explicit CudnnWorkspaceSource(const Card& card, std::string cache_folder = "");
  CudnnWorkspaceSource(const CudnnWorkspaceSource&) = delete;
  CudnnWorkspaceSource& operator=(const CudnnWorkspaceSource&) = delete;
  ~CudnnWorkspaceSource() override;  ///< writes the cache

  [[nodiscard]] WorkspaceAnswer engines(const ConvolutionQuery& query) override;
  [[nodiscard]] WorkspaceAnswer attention_engines(const AttentionQuery& query) override;

  /// Where the answers so far came from; `none` before the first.
  [[nodiscard]] WorkspaceOrigin origin() const { return origin_; }
  /// Why the rule was used instead of cuDNN, in the words of the first refusal; "" where it was
  /// not.
  [[nodiscard]] const std::string& rule_reason() const { return rule_reason_; }
  /// Why cuDNN, which serves the card, cannot be opened; "" where it was opened or not needed.
  [[nodiscard]] std::string no_cudnn_reason() const {
    return no_session_reason_.empty() ? "" : no_session_reason_.front().message;
  }

 private:
  // For both kinds of query.
  template <typename Query>
  WorkspaceAnswer answered(std::map<Query, WorkspaceAnswer>& known, const Query& query);
  template <typename Query>
  WorkspaceAnswer ask(const Query& query);
  /// From the cache, or else from cuDNN, with the engines that an answer keeps; there may be none.
  /// Errors: why cuDNN does not answer.
  template <typename Query>
  Result<WorkspaceAnswer> kept_answer(const Query& query);
  template <typename Query>
  Result<WorkspaceAnswer> ask_cudnn(const Query& query);

  std::string device_;
  double compute_capability_;
  std::string cache_folder_;
  std::unique_ptr<WorkspaceSource> rule_;
  std::optional<CudnnAnswerCache> cache_;  // from the first question on
  std::unique_ptr<CudnnSession> session_;  // null: not needed yet, or not opened
  Diagnostics no_session_reason_;
  bool opened_ = false;
  WorkspaceOrigin origin_ = WorkspaceOrigin::none;
  std::string rule_reason_;
  std::map<ConvolutionQuery, WorkspaceAnswer> answers_;
  std::map<AttentionQuery, WorkspaceAnswer> attention_answers_;
};

/// The engines of `all` that an answer keeps (most_engines). Exposed for tests.
[[nodiscard]] std::vector<Engine> kept_engines(const std::vector<Engine>& all);

}  // namespace stowage
