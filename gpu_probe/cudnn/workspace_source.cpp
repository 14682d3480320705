#include "gpu_probe/cudnn/workspace_source.hpp"

#include <algorithm>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include "estimator/workspace/attention_workspace.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "gpu_probe/cudnn/circumstances.hpp"

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

namespace {

// Adds what the frontend takes beside the engine. It is computed here and not kept: a kept answer
// holds cuDNN's own words, and stays true when this formula changes.
template <typename Query>
WorkspaceAnswer completed(WorkspaceAnswer answer, const Query& query) {
  if constexpr (std::is_same_v<Query, AttentionQuery>) {
    for (Engine& engine : answer.engines) engine.workspace += frontend_workspace(query);
  }
  return answer;
}

}  // namespace

CudnnWorkspaceSource::CudnnWorkspaceSource(const Card& card, std::string cache_folder)
    : device_(card.cudnn_device_json),
      compute_capability_(card.compute_capability),
      cache_folder_(std::move(cache_folder)),
      rule_(rule_workspace_source(card.compute_capability)) {
  if (device_.empty()) rule_reason_ = "cuDNN does not serve this card";
}

CudnnWorkspaceSource::~CudnnWorkspaceSource() {
  if (!cache_ || !session_) return;
  try {
    if (const auto parts = loaded_cudnn_parts()) cache_->write(*parts);
  } catch (const std::exception&) {
    // For example out of memory. The answers were given; they are asked again next time.
  }
}

WorkspaceAnswer CudnnWorkspaceSource::engines(const ConvolutionQuery& query) {
  return answered(answers_, query);
}

WorkspaceAnswer CudnnWorkspaceSource::attention_engines(const AttentionQuery& query) {
  if (!device_.empty() && !cudnn_has_attention(compute_capability_)) {
    return {.engines = {{"rule", Bytes()}}, .origin = WorkspaceOrigin::none};
  }
  return answered(attention_answers_, query);
}

template <typename Query>
WorkspaceAnswer CudnnWorkspaceSource::answered(std::map<Query, WorkspaceAnswer>& known,
                                               const Query& query) {
  const auto found = known.find(query);
  if (found != known.end()) return found->second;
  const WorkspaceAnswer answer = ask(query);
  const bool first = origin_ == WorkspaceOrigin::none;
  origin_ = first || origin_ == answer.origin ? answer.origin : WorkspaceOrigin::mixed;
  known.emplace(query, answer);
  return answer;
}

template <typename Query>
WorkspaceAnswer CudnnWorkspaceSource::ask(const Query& query) {
  if (!device_.empty()) {
    auto answer = kept_answer(query);
    if (answer && !answer->engines.empty()) return completed(*std::move(answer), query);
    if (rule_reason_.empty()) {
      rule_reason_ = answer ? "cuDNN has no engine for a convolution" : answer.error()[0].message;
    }
  }
  if constexpr (std::is_same_v<Query, AttentionQuery>) {
    return rule_->attention_engines(query);
  } else {
    return rule_->engines(query);
  }
}

template <typename Query>
Result<WorkspaceAnswer> CudnnWorkspaceSource::kept_answer(const Query& query) {
  if constexpr (std::is_same_v<Query, AttentionQuery>) {
    if (frontend_names_engine(query, compute_capability_)) {
      return failure("cuDNN is not asked where PyTorch names the engine of attention itself");
    }
  }
  const std::string sources_hash = cudnn_sources_hash();
  if (!cache_ && !cache_folder_.empty() && !sources_hash.empty()) {
    cache_.emplace(cache_folder_, cudnn_circumstances(sources_hash, device_));
  }
  if (cache_) {
    if (auto answer = cache_->find(question_bytes(query))) return *std::move(answer);
  }
  auto answer = ask_cudnn(query);
  if (answer) answer->engines = kept_engines(answer->engines);
  if (cache_ && answer) cache_->add(question_bytes(query), *answer);
  return answer;
}

template <typename Query>
Result<WorkspaceAnswer> CudnnWorkspaceSource::ask_cudnn(const Query& query) {
  if (!opened_) {
    auto session = open_cudnn_session(device_);
    if (session) session_ = std::move(*session);
    if (!session) no_session_reason_ = session.error();
    opened_ = true;
  }
  if (!session_) return tl::unexpected(no_session_reason_);
  if constexpr (std::is_same_v<Query, AttentionQuery>) {
    return session_->attention_engines(query);
  } else {
    return session_->engines(query);
  }
}

}  // namespace stowage
