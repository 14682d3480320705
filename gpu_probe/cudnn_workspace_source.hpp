// A WorkspaceSource backed by cuDNN for a described card, with the documented rule behind it
// (docs/workspaces.md). cuDNN is loaded at the first question; each distinct one is asked once.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "estimator/memory/card.hpp"
#include "estimator/memory/workspace_source.hpp"
#include "gpu_probe/cudnn_session.hpp"

namespace stowage {

/// Answers have at most this many engines: the first, those with less workspace than all before
/// them, the largest, and then as many of the rest as there is room for; in cuDNN's order.
inline constexpr std::size_t most_engines = 8;

class CudnnWorkspaceSource final : public WorkspaceSource {
 public:
  explicit CudnnWorkspaceSource(const Card& card);

  [[nodiscard]] WorkspaceAnswer engines(const ConvolutionQuery& query) override;

  /// What the answers so far came from; none before the first.
  [[nodiscard]] WorkspaceOrigin origin() const { return origin_; }
  /// Why the rule spoke, in the words of who refused first; "" where it did not.
  [[nodiscard]] const std::string& why_rule() const { return why_rule_; }

 private:
  WorkspaceAnswer ask(const ConvolutionQuery& query);

  std::string device_;
  std::unique_ptr<WorkspaceSource> rule_;
  std::unique_ptr<CudnnSession> session_;  // null until the first question, or where it cannot open
  bool opened_ = false;
  WorkspaceOrigin origin_ = WorkspaceOrigin::none;
  std::string why_rule_;
  std::map<ConvolutionQuery, WorkspaceAnswer> answers_;
};

/// The engines of `all` that an answer keeps (above). Exposed for tests.
[[nodiscard]] std::vector<Engine> kept_engines(const std::vector<Engine>& all);

}  // namespace stowage
