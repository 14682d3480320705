#include "estimator/memory/rule_workspace_source.hpp"

#include <algorithm>

namespace stowage {
namespace {

using Direction = ConvolutionCall::Direction;

constexpr Bytes alignment_slack = 16_B;
constexpr Bytes index_tables = 20_KiB;

Bytes size_of(const std::vector<std::int64_t>& shape, DataType type) {
  Bytes bytes(element_size(type));
  for (const std::int64_t extent : shape) bytes = bytes * extent;
  return bytes;
}

bool all_are(const std::vector<std::int64_t>& values, std::int64_t value) {
  return std::ranges::all_of(values, [&](std::int64_t v) { return v == value; });
}

std::vector<std::int64_t> window(const ConvolutionQuery& query) {
  return {query.w.begin() + 2, query.w.end()};
}

bool is_winograd(const ConvolutionQuery& query) {
  return query.groups == 1 && query.w[1] >= 16 && query.w.size() == 4 &&
         all_are(window(query), 3) && all_are(query.stride, 1) && all_are(query.dilation, 1);
}

Bytes before_tensor_cores(const ConvolutionQuery& query) {
  if (query.direction == Direction::backward_filter) return index_tables;
  if (is_winograd(query)) return size_of({query.w[0], query.w[1], 5, 5}, query.type) + 256_B;
  const bool is_converted = query.direction == Direction::forward && query.w[1] >= 8 &&
                            std::ranges::min(window(query)) >= 5 && all_are(query.stride, 1);
  if (!is_converted) return index_tables;
  return size_of(query.x, query.type) + size_of(query.w, query.type) +
         size_of(query.y, query.type) + alignment_slack;
}

Bytes with_tensor_cores(const ConvolutionQuery& query, double compute_capability) {
  const Bytes x = size_of(query.x, query.type);
  const Bytes w = size_of(query.w, query.type);
  const Bytes y = size_of(query.y, query.type);
  const bool small_chip = compute_capability > 8.05 && compute_capability < 8.95;  // 8.6 to 8.9
  const bool is_pointwise = all_are(window(query), 1);
  const bool is_wide = std::ranges::any_of(window(query), [](std::int64_t r) { return r > 3; });
  const Bytes all = x + w + y + alignment_slack;

  const bool is_depthwise = query.groups > 1 && query.w[1] == 1;
  if (is_depthwise) {
    return query.direction == Direction::backward_filter && !small_chip ? all : 0_B;
  }
  const bool is_image = query.w[1] < 8;  // a network's first layer
  if (is_image && (small_chip || !is_wide)) {
    return query.direction == Direction::forward ? index_tables : 0_B;
  }
  if (small_chip && is_pointwise && std::min(query.w[0], query.w[1]) < 256) {
    return query.direction == Direction::backward_filter ? 0_B : index_tables;
  }
  const bool reads_y_as_it_is = compute_capability < 8.95 || compute_capability > 11.95;
  if (query.direction == Direction::forward && reads_y_as_it_is && !is_image && x > 4 * w) {
    return x + w + alignment_slack;
  }
  return all;
}

class RuleWorkspaceSource final : public WorkspaceSource {
 public:
  explicit RuleWorkspaceSource(double compute_capability)
      : compute_capability_(compute_capability) {}

  WorkspaceAnswer engines(const ConvolutionQuery& query) override {
    const Bytes workspace = rule_workspace(query, compute_capability_);
    WorkspaceAnswer answer{.engines = {{"rule", workspace}}, .origin = WorkspaceOrigin::rule};
    if (workspace > 0_B) answer.engines.push_back({"rule, without workspace", 0_B});
    return answer;
  }

 private:
  double compute_capability_;
};

}  // namespace

Bytes rule_workspace(const ConvolutionQuery& query, double compute_capability) {
  if (compute_capability < 7.95) return before_tensor_cores(query);
  return with_tensor_cores(query, compute_capability);
}

std::unique_ptr<WorkspaceSource> rule_workspace_source(double compute_capability) {
  return std::make_unique<RuleWorkspaceSource>(compute_capability);
}

}  // namespace stowage
