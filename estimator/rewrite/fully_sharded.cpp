#include "estimator/rewrite/fully_sharded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "estimator/model/operator_row.hpp"
#include "estimator/rewrite/renumber.hpp"
#include "estimator/rewrite/shard_groups.hpp"
#include "estimator/rewrite/sharded_update.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

/// Nodes of the step as it was, both ends included; -1: none.
struct NodeSpan {
  std::int32_t first = -1, last = -1;
  void take(std::int32_t node) {
    if (first < 0) first = node;
    last = node;
  }
};

bool runs_in_forward(const KernelNode& node) {
  return node.phase == Phase::forward || node.phase == Phase::loss;
}

/// A group while the step is put together.
struct GroupState {
  NodeSpan forward, backward;
  StorageId buffer;                     // gathered, not yet copied apart
  std::vector<StorageId> unsharded;     // by the group's parameters; empty: sharded
  std::vector<StorageId> post_forward;  // shards among fewer GPUs
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
  // What is there (in the step as it was).
  void drop_update();
  void find_spans();
  [[nodiscard]] std::optional<Diagnostic> interleaved_blocks() const;
  [[nodiscard]] int group_of(const KernelNode& node) const;
  void shard_parameters();
  void keep_inputs_whole();

  // The events of a group, in the order in which PyTorch has them.
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
    if (id.valid() && !nodes_.empty()) nodes_.back().holds.push_back(id);
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
  std::vector<TensorView> shards_;            // by ParameterId: as the optimizer sees them
  std::vector<TensorView> gradients_;         // by ParameterId: reduced
  struct Place {
    int group = -1;
    std::size_t at = 0;
  };
  std::vector<Place> place_of_;      // by ParameterId
  std::vector<std::size_t> blocks_;  // groups but the root, in the order of their forward
  std::map<StorageId, ParameterId> is_parameter_;
  std::map<StorageId, StorageId> cast_inputs_;
  StorageId waiting_buffer_;  // of the last gather in forward
  StorageId reduced_buffer_;  // of the last reduction
  std::int32_t forward_end_ = -1, backward_begin_ = -1, backward_end_ = -1;
  std::vector<KernelNode> nodes_;  // as they will be
  std::vector<GradientArrival> arrivals_;
};

int FullSharding::group_of(const KernelNode& node) const {
  return node.op.valid() ? group_of_[node.op.index()] : 0;
}

void FullSharding::drop_update() {
  step_.nodes.resize(step_.micro_batch.end_node.index());
  step_.storages.resize(step_.micro_batch.end_storage.index());
  step_.host_state_bytes = 0;
}

void FullSharding::find_spans() {
  for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
    const KernelNode& node = step_.nodes[n];
    const auto at = static_cast<std::int32_t>(n);
    GroupState& state = states_[static_cast<std::size_t>(group_of(node))];
    if (runs_in_forward(node)) {
      state.forward.take(at);
      if (node.phase == Phase::forward || model_.loss_in_model) forward_end_ = at;
    } else {
      state.backward.take(at);
      const bool of_loss = node.op.valid() && model_.op(node.op).row->is_loss;
      if (backward_begin_ < 0 && (!of_loss || model_.loss_in_model)) backward_begin_ = at;
      backward_end_ = at;
    }
  }
  for (std::size_t g = 1; g < groups_.size(); ++g) {
    if (states_[g].forward.first >= 0) blocks_.push_back(g);
  }
  std::ranges::sort(blocks_, {}, [&](std::size_t g) { return states_[g].forward.first; });
}

std::optional<Diagnostic> FullSharding::interleaved_blocks() const {
  for (std::size_t i = 1; i < blocks_.size(); ++i) {
    const GroupState& before = states_[blocks_[i - 1]];
    if (before.forward.last < states_[blocks_[i]].forward.first) continue;
    return Diagnostic{
        .message = fmt::format("the blocks '{}' and '{}' run interleaved, which FSDP "
                               "does not wrap each by itself",
                               groups_[blocks_[i - 1]].name, groups_[blocks_[i]].name),
        .hint = "one group for the whole model takes them: wrap=root"};
  }
  return std::nullopt;
}

StorageId FullSharding::add_storage(std::string name, StorageClass storage_class,
                                    std::int64_t bytes, OperatorId op, ParameterId parameter) {
  step_.storages.push_back({.name = std::move(name),
                            .storage_class = storage_class,
                            .bytes = bytes,
                            .op = op,
                            .parameter = parameter});
  return StorageId::of(step_.storages.size() - 1);
}

KernelNode& FullSharding::emit(std::size_t group, std::string_view what, std::string_view kernel,
                               Phase phase, std::int64_t stream) {
  KernelNode node{.name = dotted(groups_[group].name, what),
                  .kernel = Kernel::foreign,
                  .phase = phase,
                  .op = groups_[group].first,
                  .foreign_kernel = Shared<std::string>(std::string(kernel))};
  if (stream != 0) node.attributes.set("stream", stream);
  nodes_.push_back(std::move(node));
  return nodes_.back();
}

// Padded: the first GPU's shard is whole, and all of a group's are equal.
void FullSharding::shard_parameters() {
  parameter_storage_.resize(model_.parameters.size());
  shards_.resize(model_.parameters.size());
  gradients_.resize(model_.parameters.size());
  for (std::size_t i = 0; i < step_.storages.size(); ++i) {
    Storage& storage = step_.storages[i];
    if (storage.storage_class != StorageClass::parameter) continue;
    parameter_storage_[storage.parameter.index()] = StorageId::of(i);
    is_parameter_.emplace(StorageId::of(i), storage.parameter);
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t at = 0; at < groups_[g].parameters.size(); ++at) {
      const ShardedParameter& parameter = groups_[g].parameters[at];
      place_of_[parameter.id.index()] = {static_cast<int>(g), at};
      const StorageId id = parameter_storage_[parameter.id.index()];
      Storage& storage = step_.storages[id.index()];
      const bool on_host = parallel_.offload != Offload::none;
      storage.bytes = on_host ? 0 : parameter.shard * element_size(parameter.kept);
      shards_[parameter.id.index()] = contiguous_view(id, parameter.local, parameter.kept);
    }
  }
}

// MixedPrecisionPolicy.cast_forward_inputs: the model gets casts of what the script has in fp32.
// Buffers stay in fp32 too.
void FullSharding::keep_inputs_whole() {
  if (!has_master_weights(model_.precision)) return;
  for (Storage& storage : step_.storages) {
    if (storage.storage_class != StorageClass::buffer) continue;
    const DataType type = model_.parameter(storage.parameter).type.type;
    if (is_floating_point(type) && element_size(type) == 2) {
      storage.bytes = storage.bytes + storage.bytes;
    }
  }
  for (TensorView& input : step_.inputs) {
    if (!is_floating_point(input.type) || element_size(input.type) != 2) continue;
    const bool is_read = std::ranges::any_of(step_.nodes, [&](const KernelNode& node) {
      return node.phase == Phase::forward &&
             std::ranges::any_of(
                 node.reads, [&](const TensorView& read) { return read.storage == input.storage; });
    });
    if (!is_read) continue;
    TensorView cast = input;
    Storage& storage = step_.storages[input.storage.index()];
    const Affine bytes = storage.bytes;
    const std::string name = storage.name;
    storage.bytes = bytes + bytes;
    step_.storages.push_back(
        {.name = name + ".cast", .storage_class = StorageClass::input, .bytes = bytes});
    cast.storage = StorageId::of(step_.storages.size() - 1);
    cast_inputs_.emplace(input.storage, cast.storage);
    input.type = DataType::float32;
    nodes_.push_back({.name = name + ".cast",
                      .kernel = Kernel::cast,
                      .phase = Phase::forward,
                      .reads = {input},
                      .writes = {cast}});
  }
}

// A shard in the format that kernels read, on the GPU, where it is not so.
TensorView FullSharding::bring(std::size_t group, const ShardedParameter& parameter, Phase phase,
                               std::int64_t stream) {
  const bool from_host = parallel_.offload != Offload::none;
  const bool casts = parameter.kept != parameter.gathered;
  const std::string& name = model_.parameter(parameter.id).name;
  const OperatorId op = groups_[group].first;
  KernelNode& node = emit(group, from_host ? "upload" : "cast",
                          from_host ? "fsdp.upload" : "fsdp.cast", phase, stream);
  if (!from_host) node.reads = {shard(parameter)};
  if (from_host && casts) {
    node.temporaries.push_back(add_storage(name + ".uploaded", StorageClass::temporary,
                                           parameter.shard * element_size(parameter.kept), op,
                                           parameter.id));
  }
  const StorageId brought =
      add_storage(name + (casts ? ".cast" : ".uploaded"), StorageClass::parameter_copy,
                  parameter.shard * element_size(parameter.gathered), op, parameter.id);
  node.writes = {flat(brought, parameter.shard, parameter.gathered)};
  return node.writes.front();
}

// A gather on the streams of its own; nothing to do where it has begun or is not needed.
void FullSharding::gather(std::size_t group, Phase phase) {
  GroupState& state = states_[group];
  const std::vector<ShardedParameter>& parameters = groups_[group].parameters;
  if (parameters.empty() || state.buffer.valid() || !state.unsharded.empty() || gpus() == 1) return;
  std::int64_t bytes = 0, cast_bytes = 0;
  std::vector<TensorView> inputs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ShardedParameter& parameter = parameters[i];
    const std::int64_t gathered = parameter.shard * element_size(parameter.gathered);
    bytes += gathered * gpus();
    if (!state.post_forward.empty()) {
      const std::int64_t elements = parameter.shard * gpus() / parallel_.fsdp.reshards_among;
      inputs.push_back(flat(state.post_forward[i], elements, parameter.gathered));
    } else if (parallel_.offload != Offload::none) {
      inputs.push_back(bring(group, parameter, phase, gather_stream));
    } else {
      inputs.push_back(shard(parameter));
      if (parameter.kept != parameter.gathered) cast_bytes += gathered;
    }
  }
  const OperatorId op = groups_[group].first;
  state.buffer = add_storage(dotted(groups_[group].name, "all_gather"),
                             StorageClass::parameter_copy, bytes, op);
  KernelNode& node = emit(group, "all_gather", "fsdp.all_gather", phase, gather_stream);
  node.reads = std::move(inputs);
  node.writes = {flat(state.buffer, bytes, DataType::uint8)};
  if (cast_bytes > 0) {
    node.temporaries.push_back(
        add_storage(dotted(groups_[group].name, "cast"), StorageClass::temporary, cast_bytes, op));
  }
}

void FullSharding::copy_apart(std::size_t group, Phase phase) {
  GroupState& state = states_[group];
  const std::vector<ShardedParameter>& parameters = groups_[group].parameters;
  if (!state.unsharded.empty() || parameters.empty()) return;
  for (const ShardedParameter& parameter : parameters) {
    const std::int64_t bytes = parameter.shard * gpus() * element_size(parameter.gathered);
    state.unsharded.push_back(add_storage(model_.parameter(parameter.id).name + ".unsharded",
                                          StorageClass::parameter_copy, bytes, groups_[group].first,
                                          parameter.id));
  }
  if (gpus() == 1) return copy_on_one_gpu(group, phase);
  const std::int64_t bytes = step_.storage(state.buffer).bytes.constant;
  KernelNode& node = emit(group, "copy_out", "fsdp.split_with_sizes_copy", phase);
  node.reads = {flat(state.buffer, bytes, DataType::uint8)};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    node.writes.push_back(
        flat(state.unsharded[i], parameters[i].shard * gpus(), parameters[i].gathered));
  }
  // What was resharded among fewer is let go here: to_unsharded().
  for (const StorageId id : std::exchange(state.post_forward, {})) node.holds.push_back(id);
  if (phase == Phase::forward) waiting_buffer_ = state.buffer;
  state.buffer = {};
}

// A cast is a variable of the loop: it lives until the next parameter's.
void FullSharding::copy_on_one_gpu(std::size_t group, Phase phase) {
  const std::vector<ShardedParameter>& parameters = groups_[group].parameters;
  StorageId previous;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ShardedParameter& parameter = parameters[i];
    TensorView source = shard(parameter);
    if (parallel_.offload != Offload::none || parameter.kept != parameter.gathered) {
      source = bring(group, parameter, phase, 0);
      hold(std::exchange(previous, source.storage));
    }
    KernelNode& copy = emit(group, "copy", "fsdp.copy", phase);
    copy.reads = {source};
    copy.writes = {flat(states_[group].unsharded[i], parameter.shard, parameter.gathered)};
  }
}

void FullSharding::reshard(std::size_t group) {
  for (const StorageId id : std::exchange(states_[group].unsharded, {})) hold(id);
}

void FullSharding::begin_forward(std::size_t group) {
  gather(group, Phase::forward);
  hold(std::exchange(waiting_buffer_, {}));
  copy_apart(group, Phase::forward);
  if (group == 0) return;
  const auto at = static_cast<std::size_t>(std::ranges::find(blocks_, group) - blocks_.begin());
  for (int i = 1; i <= parallel_.fsdp.forward_prefetch; ++i) {
    const std::size_t next = at + static_cast<std::size_t>(i);
    if (next < blocks_.size()) gather(blocks_[next], Phase::forward);
  }
}

void FullSharding::end_forward(std::size_t group) {
  if (group == 0) return hold(std::exchange(waiting_buffer_, {}));
  const FullyShard& fsdp = parallel_.fsdp;
  if (!fsdp.reshards_after_forward) return;
  GroupState& state = states_[group];
  const int among = fsdp.reshards_among;
  if (among == 0 || among == gpus()) return reshard(group);
  KernelNode& node = emit(group, "reshard", "fsdp.reshard", Phase::forward);
  const std::vector<ShardedParameter>& parameters = groups_[group].parameters;
  std::vector<TensorView> reads, writes;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int64_t elements = parameters[i].shard * gpus();
    state.post_forward.push_back(add_storage(
        model_.parameter(parameters[i].id).name + ".post_forward_shard",
        StorageClass::parameter_copy, elements / among * element_size(parameters[i].gathered),
        groups_[group].first, parameters[i].id));
    reads.push_back(flat(state.unsharded[i], elements, parameters[i].gathered));
    writes.push_back(flat(state.post_forward[i], elements / among, parameters[i].gathered));
  }
  node.reads = std::move(reads);
  node.writes = std::move(writes);
  state.unsharded.clear();
}

void FullSharding::begin_backward(std::size_t group) {
  gather(group, Phase::backward);
  copy_apart(group, Phase::backward);
  prefetch_backward(group);
}

// The root's forward ends last, so that before it stands the last block.
void FullSharding::prefetch_backward(std::size_t group) {
  const auto at = static_cast<std::size_t>(
      group == 0 ? std::ssize(blocks_) : std::ranges::find(blocks_, group) - blocks_.begin());
  const int explicitly = group == 0 ? 0 : parallel_.fsdp.backward_prefetch;
  const auto ahead = static_cast<std::size_t>(std::max(explicitly, 1));
  for (std::size_t i = 1; i <= std::min(ahead, at); ++i) gather(blocks_[at - i], Phase::backward);
}

void FullSharding::end_backward(std::size_t group) {
  GroupState& state = states_[group];
  if (std::exchange(state.reduced, true)) return;
  reshard(group);
  hold(std::exchange(reduced_buffer_, {}));
  reduce(group);
}

void FullSharding::reduce(std::size_t group) {
  const ShardGroup& of = groups_[group];
  std::vector<const ShardedParameter*> parameters;
  std::vector<TensorView> gradients;
  std::int64_t elements = 0;  // of a GPU's shard
  for (const ShardedParameter& parameter : of.parameters) {
    const TensorView& gradient = step_.gradients[parameter.id.index()];
    if (!gradient.storage.valid()) continue;
    parameters.push_back(&parameter);
    gradients.push_back(gradient);
    elements += parameter.shard;
  }
  if (parameters.empty()) return;
  const DataType kept = parameters.front()->kept;
  const DataType type = parallel_.fsdp.reduce_type.value_or(kept);
  const auto buffer = [&](std::string_view name, std::int64_t count, DataType format) {
    return flat(add_storage(dotted(of.name, name), StorageClass::gradient,
                            count * element_size(format), of.first),
                count, format);
  };
  const TensorView input = buffer("reduce_scatter_input", elements * gpus(), type);
  KernelNode& copy = emit(group, "copy_in", "fsdp.chunk_cat", Phase::backward);
  copy.reads = std::move(gradients);
  copy.writes = {input};
  TensorView output = buffer("reduce_scatter", elements, type);
  KernelNode& scatter =
      emit(group, "reduce_scatter", "fsdp.reduce_scatter", Phase::backward, reduce_stream);
  scatter.reads = {input};
  scatter.writes = {output};
  if (type != kept) {
    const TensorView cast = buffer("grad", elements, kept);
    KernelNode& node = emit(group, "cast_gradients", "fsdp.cast", Phase::backward, reduce_stream);
    node.reads = {output};
    node.writes = {cast};
    output = cast;
  }
  reduced_buffer_ = input.storage;
  if (parallel_.offload != Offload::none) {
    emit(group, "download", "fsdp.download", Phase::backward, reduce_stream).reads = {output};
    return;
  }
  const NodeId after = NodeId::of(nodes_.size() - 1);
  std::int64_t offset = 0;
  for (const ShardedParameter* parameter : parameters) {
    TensorView gradient = contiguous_view(output.storage, parameter->local, kept);
    gradient.offset = offset;
    gradient.is_view = true;
    offset += parameter->shard;
    arrivals_.push_back(
        {.parameter = parameter->id, .after = after, .gradient = gradient, .op = of.first});
    gradients_[parameter->id.index()] = std::move(gradient);
  }
}

// _root_post_backward_final_callback: the root first, then what is left of the blocks.
void FullSharding::finish_backward() {
  end_backward(0);
  for (const std::size_t block : blocks_) end_backward(block);
  for (GroupState& state : states_) {
    hold(std::exchange(state.buffer, {}));
    for (const StorageId id : std::exchange(state.post_forward, {})) hold(id);
  }
  hold(std::exchange(reduced_buffer_, {}));
  for (const ScriptVariable& variable : step_.micro_batch.variables) {
    if (variable.kind == ScriptVariable::Kind::first_gradient) hold(variable.storage);
  }
}

void FullSharding::begin(std::int32_t node) {
  if (node == 0) begin_forward(0);
  for (const std::size_t block : blocks_) {
    if (states_[block].forward.first == node) begin_forward(block);
  }
  if (node == backward_begin_) begin_backward(0);
  for (const std::size_t block : blocks_) {
    if (states_[block].backward.first == node) begin_backward(block);
  }
}

// A block whose input wants no gradient has no event of its own when its backward is over.
void FullSharding::end(std::int32_t node) {
  for (const std::size_t block : blocks_) {
    if (states_[block].forward.last == node) end_forward(block);
    if (states_[block].backward.last == node && node != backward_end_) end_backward(block);
  }
  if (node == forward_end_) end_forward(0);
  if (node == backward_end_) finish_backward();
}

void FullSharding::read_unsharded(KernelNode& node) const {
  const auto replace = [&](StorageId& id) {
    const auto input = cast_inputs_.find(id);
    if (input != cast_inputs_.end() && node.phase != Phase::loss) id = input->second;
    const auto found = is_parameter_.find(id);
    if (found == is_parameter_.end()) return;
    const Place& place = place_of_[found->second.index()];
    const std::vector<StorageId>& unsharded =
        states_[static_cast<std::size_t>(place.group)].unsharded;
    if (!unsharded.empty()) id = unsharded[place.at];
  };
  for (TensorView& view : node.reads) replace(view.storage);
  for (StorageId& id : node.holds) replace(id);
}

void FullSharding::put_together() {
  std::vector<NodeId> place;
  for (const ScriptVariable& variable : step_.micro_batch.variables) {
    if (variable.kind != ScriptVariable::Kind::first_gradient || backward_end_ < 0) continue;
    std::erase(step_.nodes[static_cast<std::size_t>(backward_end_)].holds, variable.storage);
  }
  for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
    const auto at = static_cast<std::int32_t>(n);
    begin(at);
    place.push_back(NodeId::of(nodes_.size()));
    nodes_.push_back(step_.nodes[n]);
    read_unsharded(nodes_.back());
    end(at);
  }
  place.push_back(NodeId::of(nodes_.size()));
  step_.nodes = std::move(nodes_);
  renumber_nodes(step_, place);
  step_.micro_batch.first_node = NodeId::of(0);
  step_.micro_batch.end_storage = StorageId::of(step_.storages.size());
  number_repetitions(step_.nodes);
  number_repetitions(step_.storages);
}

void FullSharding::give_gradients() {
  step_.micro_batch.first_only.clear();
  step_.micro_batch.arrivals = std::move(arrivals_);
  step_.gradients = std::move(gradients_);
}

Result<StepGraph> FullSharding::run() && {
  drop_update();
  find_spans();
  if (auto problem = interleaved_blocks()) return tl::unexpected(Diagnostics{*std::move(problem)});
  shard_parameters();
  keep_inputs_whole();
  put_together();
  give_gradients();
  return with_sharded_update(std::move(step_), model_, groups_, shards_);
}

std::optional<Diagnostic> unsharded_setting(const StepGraph& step, const ModelGraph& model) {
  if (step.settings.kernels != KernelSet::pytorch) {
    return Diagnostic{.message = "FSDP is PyTorch's, and has no place among other kernels"};
  }
  if (step.settings.step.zero_grad == ZeroGrad::to_zero) {
    return Diagnostic{.message = "FSDP is sized with gradients that are let go after the update",
                      .hint = "leave zero_grad at to_none"};
  }
  const bool has_filters = std::ranges::any_of(model.parameters, [](const Parameter& parameter) {
    return parameter.type.shape.size() == 4 || parameter.type.shape.size() == 5;
  });
  if (step.settings.step.layout == TensorLayout::channels_last && has_filters) {
    return Diagnostic{.message = "FSDP shards no parameters that are laid out as nhwc",
                      .hint = "leave the layout at contiguous"};
  }
  return optimizer_that_needs_whole(step.settings);
}

}  // namespace

Result<StepGraph> with_full_sharding(StepGraph step, const ModelGraph& model) {
  const DataParallel& parallel = step.settings.parallel;
  if (!parallel.fsdp.on || step.settings.mode != Mode::train) return step;
  if (auto problem = unsharded_setting(step, model)) {
    return tl::unexpected(Diagnostics{*std::move(problem)});
  }
  auto groups = shard_groups(model, parallel);
  if (!groups) return tl::unexpected(std::move(groups.error()));
  return FullSharding(std::move(step), model, *std::move(groups)).run();
}

}  // namespace stowage
