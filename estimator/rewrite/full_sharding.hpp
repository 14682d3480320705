// FullSharding: the state of with_full_sharding() (fully_sharded.hpp). Internal to
// fully_sharded.cpp, which has the order of the events, and sharded_events.cpp, which has the
// kernels and storages of each event.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/model/model_graph.hpp"
#include "estimator/rewrite/node_insertion.hpp"
#include "estimator/rewrite/shard_groups.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A range of nodes of the original step, both ends inclusive; -1: empty.
struct NodeSpan {
  std::int32_t first = -1, last = -1;
  void take(std::int32_t node) {
    if (first < 0) first = node;
    last = node;
  }
};

/// The state of a group while the new step is built.
struct GroupState {
  NodeSpan forward, backward;
  StorageId buffer;                     // all-gather output, not yet copied to the parameters
  std::vector<StorageId> unsharded;     // by parameter of the group; empty: sharded
  std::vector<StorageId> post_forward;  // shards among fewer GPUs, after forward
  bool reduced = false;
};

class FullSharding {
 public:
  FullSharding(StepGraph step, const ModelGraph& model, ShardGroups groups)
      : step_(std::move(step)),
        model_(model),
        parallel_(step_.settings.parallel),
        groups_(std::move(groups.groups)),
        group_of_(std::move(groups.group_of)),
        states_(groups_.size()),
        place_of_(model.parameters.size()) {}

  Result<StepGraph> run() &&;

 private:
  // Analysis of the original step.
  void drop_update();
  void find_spans();
  [[nodiscard]] std::optional<Diagnostic> interleaved_blocks() const;
  [[nodiscard]] int group_of(const KernelNode& node) const;
  void shard_parameters();
  void keep_inputs_whole();

  // The events of a group, in PyTorch's order.
  void put_together();
  void begin(std::int32_t node);
  void end(std::int32_t node);
  void begin_forward(std::size_t group);
  void end_forward(std::size_t group);
  void begin_backward(std::size_t group);
  void end_backward(std::size_t group);
  void finish_backward();
  TensorView bring(std::size_t group, const ShardedParameter& parameter, Phase phase,
                   std::int64_t stream);
  void gather(std::size_t group, Phase phase);
  void copy_apart(std::size_t group, Phase phase);
  void copy_on_one_gpu(std::size_t group, Phase phase);
  void reshard(std::size_t group);
  void reduce(std::size_t group);
  void prefetch_backward(std::size_t group);

  // Storages and nodes.
  StorageId add_storage(std::string name, StorageClass storage_class, std::int64_t bytes,
                        OperatorId op, ParameterId parameter = {});
  KernelNode& emit(std::size_t group, std::string_view what, std::string_view kernel, Phase phase,
                   std::int64_t stream = 0);
  void hold(StorageId id) {
    KernelNode* const last = nodes_.last();
    if (id.valid() && last != nullptr) last->holds.push_back(id);
  }
  [[nodiscard]] TensorView flat(StorageId id, std::int64_t elements, DataType type) const {
    return contiguous_view(id, {elements}, type);
  }
  [[nodiscard]] TensorView shard(const ShardedParameter& parameter) const {
    return flat(parameter_storage_[parameter.id.index()], parameter.shard, parameter.kept);
  }
  [[nodiscard]] std::int64_t gpus() const { return parallel_.gpus; }
  void read_unsharded(KernelNode& node) const;
  void give_gradients();

  StepGraph step_;
  const ModelGraph& model_;
  DataParallel parallel_;
  std::vector<ShardGroup> groups_;
  std::vector<int> group_of_;  // by OperatorId
  std::vector<GroupState> states_;
  std::vector<StorageId> parameter_storage_;  // by ParameterId
  std::vector<TensorView> shards_;            // by ParameterId: the optimizer's parameters
  std::vector<TensorView> gradients_;         // by ParameterId: reduced gradients
  struct Place {
    int group = -1;
    std::size_t at = 0;
  };
  std::vector<Place> place_of_;      // by ParameterId
  std::vector<std::size_t> blocks_;  // groups except the root, in forward order
  std::map<StorageId, ParameterId> is_parameter_;
  std::map<StorageId, StorageId> cast_inputs_;
  StorageId waiting_buffer_;  // of the last gather in forward
  StorageId reduced_buffer_;  // of the last reduction
  std::int32_t forward_end_ = -1, backward_begin_ = -1, backward_end_ = -1;
  NodeInsertion nodes_;  // of the new step
  std::vector<GradientArrival> arrivals_;
};

}  // namespace stowage
