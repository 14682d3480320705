#include "gpu_probe/cudnn_workspace_source.hpp"

#include <algorithm>
#include <vector>

#include "estimator/memory/rule_workspace_source.hpp"

namespace stowage {

std::vector<Engine> kept_engines(const std::vector<Engine>& all) {
  if (all.size() <= most_engines) return all;
  std::vector<std::size_t> kept;
  const auto keep = [&](std::size_t i) {
    if (kept.size() < most_engines && std::ranges::find(kept, i) == kept.end()) kept.push_back(i);
  };
  const auto by_workspace = [&](std::size_t a, std::size_t b) {
    return all[a].workspace < all[b].workspace;
  };
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) order[i] = i;
  keep(0);
  keep(*std::ranges::min_element(order, by_workspace));
  keep(*std::ranges::max_element(order, by_workspace));
  Bytes least = all.front().workspace;
  for (const std::size_t i : order) {
    if (all[i].workspace >= least) continue;
    least = all[i].workspace;
    keep(i);
  }
  for (const std::size_t i : order) keep(i);
  std::ranges::sort(kept);
  std::vector<Engine> engines;
  for (const std::size_t i : kept) engines.push_back(all[i]);
  return engines;
}

CudnnWorkspaceSource::CudnnWorkspaceSource(const Card& card)
    : device_(card.cudnn_device_json), rule_(rule_workspace_source(card.compute_capability)) {
  if (device_.empty()) why_rule_ = "cuDNN does not serve this card";
}

WorkspaceAnswer CudnnWorkspaceSource::engines(const ConvolutionQuery& query) {
  const auto known = answers_.find(query);
  if (known != answers_.end()) return known->second;
  const WorkspaceAnswer answer = ask(query);
  const bool first = origin_ == WorkspaceOrigin::none;
  origin_ = first || origin_ == answer.origin ? answer.origin : WorkspaceOrigin::mixed;
  answers_.emplace(query, answer);
  return answer;
}

WorkspaceAnswer CudnnWorkspaceSource::ask(const ConvolutionQuery& query) {
  Diagnostics why;
  if (!opened_ && !device_.empty()) {
    auto session = open_cudnn_session(device_);
    if (session) session_ = std::move(*session);
    if (!session) why = session.error();
    opened_ = true;
  }
  if (session_) {
    const auto engines = session_->engines(query);
    if (engines && !engines->empty()) return {kept_engines(*engines), WorkspaceOrigin::cudnn};
    why = engines ? Diagnostics{{.message = "cuDNN has no engine for a convolution"}}
                  : engines.error();
  }
  if (why_rule_.empty() && !why.empty()) why_rule_ = why.front().message;
  return rule_->engines(query);
}

}  // namespace stowage
