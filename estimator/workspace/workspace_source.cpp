#include "estimator/workspace/workspace_source.hpp"

#include <algorithm>

#include "estimator/workspace/attention_workspace.hpp"

namespace stowage {

std::string_view to_string(WorkspaceOrigin origin) {
  switch (origin) {
    case WorkspaceOrigin::none:
      return "none";
    case WorkspaceOrigin::cudnn:
      return "cudnn";
    case WorkspaceOrigin::rule:
      return "rule";
    case WorkspaceOrigin::mixed:
      return "mixed";
  }
  return "none";
}

namespace {

void keep_within(std::vector<Engine>& engines, Bytes limit) {
  if (engines.empty()) return;
  const Engine least = *std::ranges::min_element(engines, {}, &Engine::workspace);
  std::erase_if(engines, [&](const Engine& engine) { return engine.workspace > limit; });
  if (engines.empty()) engines.push_back(least);
}

}  // namespace

Bytes bytes_of(const std::vector<std::int64_t>& shape, DataType type) {
  Bytes bytes(element_size(type));
  for (const std::int64_t extent : shape) bytes = bytes * extent;
  return bytes;
}

const std::vector<std::int64_t>& result_shape(const ConvolutionQuery& query) {
  using enum ConvolutionCall::Direction;
  if (query.direction == forward) return query.y;
  return query.direction == backward_data ? query.x : query.w;
}

WorkspaceAnswer WorkspaceSource::attention_engines(const AttentionQuery& query) {
  return {.engines = {{"rule", frontend_workspace(query)}}, .origin = WorkspaceOrigin::rule};
}

WorkspaceAnswer within_limit(WorkspaceAnswer answer, Bytes limit) {
  keep_within(answer.engines, limit);
  keep_within(answer.benchmark, limit);
  return answer;
}

}  // namespace stowage
