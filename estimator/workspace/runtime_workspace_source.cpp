#include "estimator/workspace/runtime_workspace_source.hpp"

namespace stowage {

WorkspaceAnswer RuntimeWorkspaceSource::engines(const ConvolutionQuery& query) {
  WorkspaceAnswer answer = source_.engines(query);
  if (runtime_ != Runtime::tensorflow) return answer;
  return within_limit(std::move(answer), tensorflow_scratch_limit);
}

}  // namespace stowage
