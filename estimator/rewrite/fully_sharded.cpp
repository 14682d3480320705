#include "estimator/rewrite/fully_sharded.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/model/operator_row.hpp"
#include "estimator/rewrite/full_sharding.hpp"
#include "estimator/rewrite/sharded_update.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

bool runs_in_forward(const KernelNode& node) {
  return node.phase == Phase::forward || node.phase == Phase::loss;
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

int FullSharding::group_of(const KernelNode& node) const {
  return node.op.valid() ? group_of_[node.op.index()] : 0;
}

void FullSharding::drop_update() {
  step_.nodes.resize(step_.micro_batch.end_node.index());
  step_.storages.resize(step_.micro_batch.end_storage.index());
  step_.script_holds.drop_from(step_.micro_batch.end_storage);
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

// Shards are padded: that of the first GPU has no padding, and all GPUs' shards have the same size.
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
    nodes_.insert({.name = name + ".cast",
                   .kernel = Kernel::cast,
                   .phase = Phase::forward,
                   .reads = {input},
                   .writes = {cast}});
  }
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

// The root's forward ends last, directly after that of the last block.
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

// _root_post_backward_final_callback: the root first, then the remaining blocks.
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

// A block whose input needs no gradient has no event at the end of its backward.
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
  for (const ScriptVariable& variable : step_.micro_batch.variables) {
    if (variable.kind != ScriptVariable::Kind::first_gradient || backward_end_ < 0) continue;
    std::erase(step_.nodes[static_cast<std::size_t>(backward_end_)].holds, variable.storage);
  }
  for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
    const auto at = static_cast<std::int32_t>(n);
    begin(at);
    read_unsharded(nodes_.keep(step_.nodes[n]));
    end(at);
  }
  std::move(nodes_).put_into(step_);
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
