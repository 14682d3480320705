#include "estimator/workspace/runtime_workspace_source.hpp"

namespace stowage {

WorkspaceAnswer RuntimeWorkspaceSource::engines(const ConvolutionQuery& query) {
  // dnn.conv.algo_fwd=small and algo_bwd_*=none: implicit products, without scratch but for a few
  // KiB of indices (docs/theano.md).
  if (runtime_ == Runtime::theano) {
    return {.engines = {{"theano's default", Bytes()}}, .origin = WorkspaceOrigin::rule};
  }
  WorkspaceAnswer answer = source_.engines(query);
  if (runtime_ != Runtime::tensorflow) return answer;
  return within_limit(std::move(answer), tensorflow_scratch_limit);
}

}  // namespace stowage
