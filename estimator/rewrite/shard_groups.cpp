#include "estimator/rewrite/shard_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "estimator/base/bytes.hpp"
#include "estimator/base/largest_memory.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/model/repeated_blocks.hpp"

namespace stowage {

namespace {

/// For 16-bit parameters the shards are fp32: param_dtype of MixedPrecisionPolicy.
DataType kept_type(const ModelGraph& model, DataType type) {
  const bool is_half = is_floating_point(type) && element_size(type) == 2;
  return has_master_weights(model.precision) && is_half ? DataType::float32 : type;
}

ShardedParameter cut_into_shards(const ModelGraph& model, ParameterId id, std::int64_t gpus) {
  const Parameter& parameter = model.parameter(id);
  ShardedParameter sharded{.id = id,
                           .kept = kept_type(model, parameter.type.type),
                           .gathered = parameter.type.type,
                           .local = parameter.type.shape,
                           .whole = element_count(parameter.type.shape).constant,
                           .trains = parameter.trainable};
  const std::int64_t rows = sharded.local.front().constant;
  sharded.local.front() = (rows + gpus - 1) / gpus;
  sharded.shard = element_count(sharded.local).constant;
  return sharded;
}

class ShardGrouping {
 public:
  ShardGrouping(const ModelGraph& model, const DataParallel& parallel)
      : model_(model), parallel_(parallel), group_of_(model.parameters.size(), -1) {}

  Result<ShardGroups> run() {
    if (auto problem = refusal()) return tl::unexpected(Diagnostics{*std::move(problem)});
    make_groups();
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      for (const ParameterId id : model_.operators[i].parameters) {
        if (model_.parameter(id).is_buffer) continue;
        if (auto problem = join(id, i)) return tl::unexpected(Diagnostics{*std::move(problem)});
      }
    }
    add_parameters();
    for (const ShardGroup& group : made_.groups) {
      if (auto problem = too_large(group)) return tl::unexpected(Diagnostics{*std::move(problem)});
      if (auto problem = mixed_formats(group)) {
        return tl::unexpected(Diagnostics{*std::move(problem)});
      }
    }
    return std::move(made_);
  }

 private:
  [[nodiscard]] std::optional<Diagnostic> refusal() const;
  void make_groups();
  [[nodiscard]] std::optional<Diagnostic> join(ParameterId id, std::size_t op);
  void add_parameters();
  [[nodiscard]] std::optional<Diagnostic> too_large(const ShardGroup& group) const;
  [[nodiscard]] static std::optional<Diagnostic> mixed_formats(const ShardGroup& group);

  const ModelGraph& model_;
  const DataParallel& parallel_;
  std::vector<int> group_of_;  // by ParameterId
  ShardGroups made_;
};

std::optional<Diagnostic> ShardGrouping::refusal() const {
  const int among = parallel_.fsdp.reshards_among;
  if (among > 0 && (among == 1 || parallel_.gpus % among != 0)) {
    return Diagnostic{.message = fmt::format("FSDP reshards among a divisor of the GPUs above 1: "
                                             "{} GPUs have no groups of {}",
                                             parallel_.gpus, among)};
  }
  if (model_.fine_tuning.base) {
    return Diagnostic{
        .message = fmt::format("FSDP does not shard a base in {}: fully_shard gathers "
                               "floating-point tensors",
                               to_string(*model_.fine_tuning.base)),
        .hint = "leave out the base, or train whole replicas"};
  }
  for (const Parameter& parameter : model_.parameters) {
    if (parameter.is_buffer || !parameter.type.shape.empty()) continue;
    return Diagnostic{.message = fmt::format("FSDP shards along the first axis, which '{}' has not",
                                             parameter.name)};
  }
  return std::nullopt;
}

void ShardGrouping::make_groups() {
  made_.groups.push_back({.name = "root"});
  std::map<std::string_view, int> of_block;
  if (parallel_.fsdp.by_block) {
    for (const auto& [name, chain] : block_chains(model_)) {
      for (const std::string_view block : chain.blocks) of_block.emplace(block, -1);
    }
  }
  for (std::size_t i = 0; i < model_.operators.size(); ++i) {
    const Operator& op = model_.operators[i];
    const auto found = op.row->is_loss ? of_block.end() : of_block.find(block_of(op.name));
    int group = 0;
    if (found != of_block.end()) {
      if (found->second < 0) {
        found->second = static_cast<int>(made_.groups.size());
        made_.groups.push_back({.name = std::string(found->first)});
      }
      group = found->second;
    }
    ShardGroup& of = made_.groups[static_cast<std::size_t>(group)];
    if (!of.first.valid()) of.first = OperatorId::of(i);
    made_.group_of.push_back(group);
  }
}

std::optional<Diagnostic> ShardGrouping::join(ParameterId id, std::size_t op) {
  int& group = group_of_[id.index()];
  const int of_operator = made_.group_of[op];
  if (group < 0) group = of_operator;
  if (group == of_operator) return std::nullopt;
  const auto name = [&](int at) { return made_.groups[static_cast<std::size_t>(at)].name; };
  return Diagnostic{
      .message = fmt::format("FSDP has a parameter in one group: '{}' is of '{}' and of '{}'",
                             model_.parameter(id).name, name(group), name(of_operator)),
      .span = model_.operators[op].span,
      .hint = "one group for the whole model takes it: wrap=root"};
}

void ShardGrouping::add_parameters() {
  for (std::size_t i = 0; i < model_.parameters.size(); ++i) {
    if (model_.parameters[i].is_buffer) continue;
    const int group = std::max(group_of_[i], 0);
    made_.groups[static_cast<std::size_t>(group)].parameters.push_back(
        cut_into_shards(model_, ParameterId::of(i), parallel_.gpus));
  }
}

// Padding rounds the rows of a parameter up to the number of GPUs. Computed in floating point,
// which does not overflow; within this limit all sizes of the group fit in 64 bits.
std::optional<Diagnostic> ShardGrouping::too_large(const ShardGroup& group) const {
  double bytes = 0;
  for (const ShardedParameter& parameter : group.parameters) {
    bytes +=
        static_cast<double>(parameter.shard) * parallel_.gpus * static_cast<double>(sizeof(double));
  }
  if (bytes <= static_cast<double>(largest_memory.count())) return std::nullopt;
  return Diagnostic{.message =
                        fmt::format("gathered from {} GPUs with its padding, '{}' is larger "
                                    "than {}",
                                    parallel_.gpus, group.name, format_bytes(largest_memory))};
}

std::optional<Diagnostic> ShardGrouping::mixed_formats(const ShardGroup& group) {
  const ShardedParameter* first = nullptr;
  for (const ShardedParameter& parameter : group.parameters) {
    if (!parameter.trains) continue;
    if (first == nullptr) first = &parameter;
    if (parameter.kept == first->kept) continue;
    return Diagnostic{.message = fmt::format("FSDP wants the trained parameters of a group in one "
                                             "format: '{}' has {} and {}",
                                             group.name, to_string(first->kept),
                                             to_string(parameter.kept))};
  }
  return std::nullopt;
}

}  // namespace

bool ShardGroup::trains() const {
  return std::ranges::any_of(parameters, &ShardedParameter::trains);
}

Result<ShardGroups> shard_groups(const ModelGraph& model, const DataParallel& parallel) {
  return ShardGrouping(model, parallel).run();
}

}  // namespace stowage
