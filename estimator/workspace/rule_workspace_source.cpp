#include "estimator/workspace/rule_workspace_source.hpp"

#include <algorithm>

#include "estimator/workspace/attention_workspace.hpp"
#include "estimator/workspace/benchmark.hpp"

namespace stowage {
namespace {

using Direction = ConvolutionCall::Direction;

constexpr Bytes alignment_slack = 16_B;
constexpr Bytes index_tables = 20_KiB;
constexpr Bytes hopper_descriptors = 131_B;  // of a channels-last kernel of 9.0

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

bool is_half(DataType type) { return type == DataType::float16 || type == DataType::bfloat16; }
bool is_pointwise(const ConvolutionQuery& query) { return all_are(window(query), 1); }
bool is_depthwise(const ConvolutionQuery& query) { return query.groups > 1 && query.w[1] == 1; }
/// Whether it is a network's first layer, by its few channels.
bool is_image(const ConvolutionQuery& query) { return query.w[1] < 8; }

struct Operands {
  Bytes x, w, y;
  [[nodiscard]] Bytes all() const { return x + w + y + alignment_slack; }
};

Operands operands_of(const ConvolutionQuery& query) {
  return {size_of(query.x, query.type), size_of(query.w, query.type), size_of(query.y, query.type)};
}

bool is_winograd(const ConvolutionQuery& query) {
  return query.groups == 1 && query.w[1] >= 16 && query.w.size() == 4 &&
         all_are(window(query), 3) && all_are(query.stride, 1) && all_are(query.dilation, 1);
}

Bytes plain_contiguous(const ConvolutionQuery& query) {
  if (query.direction == Direction::backward_filter) return index_tables;
  if (is_winograd(query)) return size_of({query.w[0], query.w[1], 5, 5}, query.type) + 256_B;
  const bool is_converted = query.direction == Direction::forward && query.w[1] >= 8 &&
                            std::ranges::min(window(query)) >= 5 && all_are(query.stride, 1);
  return is_converted ? operands_of(query).all() : index_tables;
}

Bytes plain_channels_last(const ConvolutionQuery& query, double capability) {
  if (query.direction == Direction::backward_filter || is_depthwise(query)) return 0_B;
  if (is_pointwise(query) && capability < 7.95) return index_tables;
  if (query.direction == Direction::backward_data) return operands_of(query).all();
  return is_image(query) || is_pointwise(query) || query.groups > 1 ? 0_B
                                                                    : operands_of(query).all();
}

/// The rule without tensor cores.
Bytes plain(const ConvolutionQuery& query, double capability) {
  if (query.layout == TensorLayout::channels_last) return plain_channels_last(query, capability);
  return capability > 8.95 ? 0_B : plain_contiguous(query);
}

bool is_small_chip(double capability) { return capability > 8.05 && capability < 8.95; }

/// The rule for 16-bit types and TF32 with contiguous tensors.
Bytes converted(const ConvolutionQuery& query, double capability) {
  const auto [x, w, y] = operands_of(query);
  const Bytes all = x + w + y + alignment_slack;
  const bool small_chip = is_small_chip(capability);
  const bool backward_filter = query.direction == Direction::backward_filter;
  const bool half = is_half(query.type);
  const bool is_wide = std::ranges::any_of(window(query), [](std::int64_t r) { return r > 3; });

  if (is_depthwise(query)) {
    if (half) return small_chip && !backward_filter ? 0_B : all;
    return backward_filter && !small_chip ? all : 0_B;
  }
  if (is_image(query) && half) {
    return query.direction == Direction::forward ? index_tables : all;
  }
  if (is_image(query) && (small_chip || !is_wide)) {
    return query.direction == Direction::forward ? index_tables : 0_B;
  }
  const bool thin = std::min(query.w[0], query.w[1]) < 256;
  if (small_chip && is_pointwise(query) && thin) {
    if (!backward_filter) return index_tables;
    return half ? all : 0_B;
  }
  const bool reads_y_as_it_is = capability < 8.95 || capability > 11.95;
  if (!half && query.direction == Direction::forward && reads_y_as_it_is && !is_image(query) &&
      x > 4 * w) {
    return x + w + alignment_slack;
  }
  return all;
}

Bytes half_channels_last(const ConvolutionQuery& query, double capability) {
  const auto [x, w, y] = operands_of(query);
  if (query.direction == Direction::backward_filter) {
    // Partial sums, one a part of the images: a twentieth of the operands over all networks.
    return is_depthwise(query) ? index_tables : Bytes((x + w + y).count() / 20);
  }
  if (is_depthwise(query)) return index_tables;
  return capability > 8.95 && capability < 9.95 ? hopper_descriptors : 0_B;
}

/// The rule for fp32 with channels last: operands are rounded to TF32 into a copy, or by the kernel
/// itself.
Bytes rounded_channels_last(const ConvolutionQuery& query, double capability) {
  const auto [x, w, y] = operands_of(query);
  if (is_depthwise(query)) return 0_B;
  const bool rounds_itself = capability > 8.95 && capability < 11.95;
  if (rounds_itself) {
    const bool hopper = capability < 9.95 && query.direction != Direction::backward_filter;
    return hopper ? hopper_descriptors : 0_B;
  }
  const bool is_big_chip = capability < 8.05;
  switch (query.direction) {
    case Direction::forward:
      return is_image(query) && !is_big_chip ? 0_B : x + w + alignment_slack;
    case Direction::backward_data:
      return w + y + alignment_slack;
    case Direction::backward_filter:
      break;
  }
  const bool reads_as_it_is = is_image(query) || (is_pointwise(query) && !is_big_chip);
  return reads_as_it_is ? 0_B : x + y + alignment_slack;
}

class RuleWorkspaceSource final : public WorkspaceSource {
 public:
  explicit RuleWorkspaceSource(double compute_capability)
      : compute_capability_(compute_capability) {}

  WorkspaceAnswer engines(const ConvolutionQuery& query) override {
    const Bytes workspace = rule_workspace(query, compute_capability_);
    WorkspaceAnswer answer{.origin = WorkspaceOrigin::rule};
    answer.engines.reserve(2);  // one allocation: tables over many cards ask very often
    answer.engines.push_back({"rule", workspace});
    if (workspace > 0_B) answer.engines.push_back({without, 0_B});
    if (!query.settings.benchmark) return answer;
    const Engine none{without, 0_B};
    const Bytes all = operands_of(query).all();
    answer.benchmark = {{"rule", workspace}, {"rule, all converted", all}};
    answer.benchmark.resize(benchmark_limit, none);
    answer.benchmark.push_back({"rule, the largest", 2 * all});
    return answer;
  }

  WorkspaceAnswer attention_engines(const AttentionQuery& query) override {
    return {.engines = {{"rule", rule_attention_workspace(query, compute_capability_)}},
            .origin = WorkspaceOrigin::rule};
  }

 private:
  static constexpr const char* without = "rule, without workspace";

  double compute_capability_;
};

}  // namespace

Bytes rule_workspace(const ConvolutionQuery& query, double compute_capability) {
  if (query.type == DataType::float64) return 0_B;
  const bool tensor_cores = is_half(query.type) ? compute_capability > 6.95
                                                : compute_capability > 7.95 && query.settings.tf32;
  if (!tensor_cores) return plain(query, compute_capability);
  if (query.layout == TensorLayout::contiguous) return converted(query, compute_capability);
  return is_half(query.type) ? half_channels_last(query, compute_capability)
                             : rounded_channels_last(query, compute_capability);
}

std::unique_ptr<WorkspaceSource> rule_workspace_source(double compute_capability) {
  return std::make_unique<RuleWorkspaceSource>(compute_capability);
}

}  // namespace stowage
