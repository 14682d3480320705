// The kernels and storages of FSDP's events: gathers, copies to the parameters, reductions.
#include <algorithm>

#include "estimator/rewrite/full_sharding.hpp"
#include "estimator/rewrite/fully_sharded.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

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
  return nodes_.insert(std::move(node));
}

// The shard on the GPU, in the format that kernels read; emits the copy and the cast that are
// needed.
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

// Starts a gather on its own stream, unless it has started or is not needed.
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
  // The shards among fewer GPUs are released here: to_unsharded().
  for (const StorageId id : std::exchange(state.post_forward, {})) node.holds.push_back(id);
  if (phase == Phase::forward) waiting_buffer_ = state.buffer;
  state.buffer = {};
}

// A cast is a variable of the loop: it lives until the next parameter's cast.
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

/// Copies the group's gradients into one buffer, reduces and scatters it, casts this GPU's part,
/// and lets the gradients of the parameters be views of it; with offload they are copied to the
/// host instead.
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
  const NodeId after = nodes_.last_id();
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

}  // namespace stowage
