#include "estimator/memory/runtime_workspace_source.hpp"

#include <algorithm>
#include <functional>

namespace stowage {

WorkspaceAnswer RuntimeWorkspaceSource::engines(const ConvolutionQuery& query) {
  if (runtime_ != Runtime::tensorflow) return source_.engines(query);
  ConvolutionQuery timed = query;
  timed.settings.benchmark = true;
  WorkspaceAnswer answer = source_.engines(timed);
  if (!answer.benchmark.empty()) answer.engines = std::move(answer.benchmark);
  answer.benchmark.clear();
  // One engine a workspace: more cannot be told apart by their memory.
  std::ranges::stable_sort(answer.engines, std::greater<>(), &Engine::workspace);
  const auto [first, last] = std::ranges::unique(answer.engines, {}, &Engine::workspace);
  answer.engines.erase(first, last);
  return within_limit(std::move(answer), tensorflow_scratch_limit);
}

}  // namespace stowage
