// A WorkspaceSource backed by cuDNN for a described card, with the documented rule behind it
// (docs/workspaces.md). cuDNN is loaded at the first question that its cache does not answer; each
// distinct one is asked once.
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

/// Answers have at most this many engines (benchmark's plans are kept all): the first, those with
/// less workspace than all before them, the largest, and then as many of the rest as there is room
/// for; in cuDNN's order.
inline constexpr std::size_t most_engines = 8;

class CudnnWorkspaceSource final : public WorkspaceSource {
 public:
  /// Answers are kept in `cache_folder`; "": nowhere.
  explicit CudnnWorkspaceSource(const Card& card, std::string cache_folder = "");
  CudnnWorkspaceSource(const CudnnWorkspaceSource&) = delete;
  CudnnWorkspaceSource& operator=(const CudnnWorkspaceSource&) = delete;
  ~CudnnWorkspaceSource() override;  ///< writes the cache

  [[nodiscard]] WorkspaceAnswer engines(const ConvolutionQuery& query) override;
  [[nodiscard]] WorkspaceAnswer attention_engines(const AttentionQuery& query) override;

  /// What the answers so far came from; none before the first.
  [[nodiscard]] WorkspaceOrigin origin() const { return origin_; }
  /// Why the rule spoke, in the words of who refused first; "" where it did not.
  [[nodiscard]] const std::string& why_rule() const { return why_rule_; }
  /// Why cuDNN, which serves the card, cannot be asked at all; "" where it was not needed or can.
  [[nodiscard]] std::string why_no_cudnn() const {
    return why_no_session_.empty() ? "" : why_no_session_.front().message;
  }

 private:
  // Either kind of query.
  template <typename Query>
  WorkspaceAnswer answered(std::map<Query, WorkspaceAnswer>& known, const Query& query);
  template <typename Query>
  WorkspaceAnswer ask(const Query& query);
  /// Those that an answer keeps; maybe none. Errors: why cuDNN does not answer.
  template <typename Query>
  Result<WorkspaceAnswer> kept_answer(const Query& query);
  template <typename Query>
  Result<WorkspaceAnswer> ask_cudnn(const Query& query);

  std::string device_;
  double compute_capability_;
  std::string cache_folder_;
  std::unique_ptr<WorkspaceSource> rule_;
  std::optional<CudnnAnswerCache> cache_;  // from the first question on
  std::unique_ptr<CudnnSession> session_;  // null until it is needed, or where it cannot open
  Diagnostics why_no_session_;
  bool opened_ = false;
  WorkspaceOrigin origin_ = WorkspaceOrigin::none;
  std::string why_rule_;
  std::map<ConvolutionQuery, WorkspaceAnswer> answers_;
  std::map<AttentionQuery, WorkspaceAnswer> attention_answers_;
};

/// The engines of `all` that an answer keeps (above). Exposed for tests.
[[nodiscard]] std::vector<Engine> kept_engines(const std::vector<Engine>& all);

}  // namespace stowage
