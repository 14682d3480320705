#include "estimator/workspace/runtime_workspace_source.hpp"

#include <fmt/format.h>

namespace stowage {

WorkspaceAnswer RuntimeWorkspaceSource::engines(const ConvolutionQuery& query) {
  const std::optional<Bytes> limit = traits(runtime_).convolution_scratch;
  if (!limit) return source_.engines(query);
  if (*limit == Bytes()) {
    return {.engines = {{fmt::format("{}'s default", to_string(runtime_)), Bytes()}},
            .origin = WorkspaceOrigin::rule};
  }
  return within_limit(source_.engines(query), *limit);
}

}  // namespace stowage
