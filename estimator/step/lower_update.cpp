// The optimizer's part of a step, as its row of the optimizer table has it: one kernel call a
// parameter (`stowage`), or PyTorch's calls with their temporaries.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <span>

#include "estimator/optimizer/update_script.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/step_builder.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

constexpr std::int64_t block_elements = 256;

struct Update {
  ParameterId parameter;
  std::size_t first_state = 0, states = 0;  ///< of all state: its own
};

std::vector<std::int64_t> sizes_of(const Shape& shape) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(shape.size());
  for (const Affine& size : shape) sizes.push_back(size.constant);
  return sizes;
}

bool is_half(DataType type) { return is_floating_point(type) && element_size(type) == 2; }

Shape shape_of(StateShape shape, const UpdatedTensor& tensor) {
  std::vector<std::int64_t> sizes = tensor.shape;
  switch (shape) {
    case StateShape::parameter:
      break;
    case StateShape::rows:
      sizes.pop_back();
      break;
    case StateShape::columns:
      sizes.erase(sizes.end() - 2);
      break;
    case StateShape::scalar:
      sizes.clear();
      break;
    case StateShape::blocks:
      sizes = {(element_count(tensor) + block_elements - 1) / block_elements};
      break;
  }
  return {sizes.begin(), sizes.end()};
}

DataType type_of(StateType type, const UpdatedTensor& tensor) {
  switch (type) {
    case StateType::parameter:
      return tensor.type;
    case StateType::at_least_32:
      return is_half(tensor.type) ? DataType::float32 : tensor.type;
    case StateType::float32:
      return DataType::float32;
    case StateType::uint8:
      return DataType::uint8;
  }
  return tensor.type;
}

class UpdateLowering {
 public:
  UpdateLowering(StepGraph& graph, const ModelGraph& model,
                 const std::vector<TensorView>& parameters)
      : graph_(graph),
        model_(model),
        parameters_(parameters),
        settings_(graph.settings.optimizer),
        row_(*find_optimizer(settings_.name)),
        from_library_(graph.kernel_set().library_optimizer) {}

  void run() {
    make_updates();
    if (updates_.empty()) return;
    const std::size_t first_made = graph_.storages.size();
    if (!from_library_) {
      for (const Update& update : updates_) add_own_call(update);
    } else if (!graph_.settings.early_updates) {
      add_shared_state(seen_, "");
      add_library_calls(0, updates_.size());
    } else {
      add_optimizer_of_each();
    }
    number_repetitions(graph_.storages, first_made);
  }

 private:
  void make_updates();
  void add_state(Update& update, const UpdatedTensor& seen);
  void add_shared_state(std::span<const UpdatedTensor> seen, std::string_view owner);
  void add_own_call(const Update& update);
  void add_library_calls(std::size_t first, std::size_t count);
  void add_optimizer_of_each();
  void append(KernelNode& node, const Update& update) const;
  [[nodiscard]] Attributes attributes() const;
  [[nodiscard]] StatePlace place_of(const StateTensor& state) const;

  StorageId add(Storage storage) {
    graph_.storages.push_back(std::move(storage));
    return StorageId::of(graph_.storages.size() - 1);
  }
  void add_kept(Update& update, std::string_view name, const Shape& shape, DataType type,
                bool before_first_step);
  [[nodiscard]] const TensorView& value(const Update& update) const {
    return parameters_[update.parameter.index()];
  }
  [[nodiscard]] const TensorView& gradient(const Update& update) const {
    return graph_.gradients[update.parameter.index()];
  }
  [[nodiscard]] bool has_master(const Update& update) const {
    return settings_.master_weights != MasterWeights::none && is_half(value(update).type);
  }
  /// The float32 master copy first, if there is one.
  [[nodiscard]] std::span<const TensorView> state(const Update& update) const {
    return std::span(state_).subspan(update.first_state, update.states);
  }

  StepGraph& graph_;
  const ModelGraph& model_;
  const std::vector<TensorView>& parameters_;  // by ParameterId
  const OptimizerSettings& settings_;
  const OptimizerRow& row_;
  const bool from_library_;
  ContiguousLayouts layouts_;
  std::vector<Update> updates_;
  std::vector<TensorView> state_;    // update by update
  std::vector<UpdatedTensor> seen_;  // by each update: the master copy, or the parameter
  std::vector<TensorView> shared_;
};

void UpdateLowering::add_kept(Update& update, std::string_view name, const Shape& shape,
                              DataType type, bool before_first_step) {
  TensorView view = layouts_.view(shape, type);
  view.storage = add({.name = dotted(model_.parameter(update.parameter).name, name),
                      .storage_class = StorageClass::optimizer_state,
                      .persistence = Persistence::persistent,
                      .bytes = byte_count(view),
                      .op = graph_.storage(value(update).storage).op,
                      .parameter = update.parameter,
                      .carries_over = true,
                      .before_first_step = before_first_step});
  state_.push_back(std::move(view));
  ++update.states;
}

// Counters are on the CPU, unless a fused kernel is to read them.
StatePlace UpdateLowering::place_of(const StateTensor& state) const {
  if (!from_library_) return StatePlace::device;
  if (state.place != StatePlace::host_unless_fused) return state.place;
  return implementation_of(settings_) == OptimizerImplementation::fused ? StatePlace::device
                                                                        : StatePlace::host;
}

void UpdateLowering::add_state(Update& update, const UpdatedTensor& seen) {
  for (const StateTensor& state : row_.state) {
    if (!from_library_ && state.bookkeeping) continue;
    if (state.kept != nullptr && !state.kept(settings_, seen)) continue;
    const Shape shape =
        state.shape == StateShape::parameter ? value(update).shape : shape_of(state.shape, seen);
    const DataType type = type_of(state.type, seen);
    const StatePlace place = place_of(state);
    if (place == StatePlace::device) {
      add_kept(update, state.name, shape, type, state.at_construction);
      continue;
    }
    (place == StatePlace::managed ? graph_.managed_state_bytes : graph_.host_state_bytes) +=
        (element_count(shape) * Affine(element_size(type))).constant;
  }
}

void UpdateLowering::make_updates() {
  updates_.reserve(model_.parameters.size());
  seen_.reserve(model_.parameters.size());
  state_.reserve(model_.parameters.size() * row_.state.size());
  for (std::size_t i = 0; i < model_.parameters.size(); ++i) {
    if (!graph_.gradients[i].storage.valid()) continue;
    const TensorType& type = model_.parameters[i].type;
    Update update{.parameter = ParameterId::of(i), .first_state = state_.size()};
    UpdatedTensor seen{.shape = sizes_of(type.shape), .type = type.type};
    if (has_master(update)) {
      seen.type = DataType::float32;
      add_kept(update, "master", type.shape, DataType::float32, true);
    }
    add_state(update, seen);
    updates_.push_back(update);
    seen_.push_back(std::move(seen));
  }
}

void UpdateLowering::add_shared_state(std::span<const UpdatedTensor> seen, std::string_view owner) {
  for (const SharedState& state : row_.shared) {
    const bool kept = state.kept == nullptr || std::any_of(seen.begin(), seen.end(), state.kept);
    if (!kept) continue;
    TensorView view = contiguous_view(StorageId{}, {state.elements}, DataType::float32);
    const std::string name = fmt::format("{}.{}", row_.name, state.name);
    view.storage = add({.name = owner.empty() ? name : dotted(owner, name),
                        .storage_class = StorageClass::optimizer_state,
                        .persistence = Persistence::persistent,
                        .bytes = byte_count(view)});
    shared_.push_back(std::move(view));
  }
}

Attributes UpdateLowering::attributes() const {
  Attributes attributes;
  attributes.set("optimizer", std::string(row_.name));
  for (const SettingDefault& setting : row_.settings) {
    attributes.set(setting.name, value_of(settings_, *find_setting(setting.name)));
  }
  attributes.set("decoupled", row_.decouples || settings_.decoupled_weight_decay);
  return attributes;
}

void UpdateLowering::append(KernelNode& node, const Update& update) const {
  node.reads.push_back(value(update));
  node.reads.push_back(gradient(update));
  node.reads.insert(node.reads.end(), state(update).begin(), state(update).end());
  node.writes.push_back(value(update));
  node.writes.insert(node.writes.end(), state(update).begin(), state(update).end());
  const Affine rate = static_cast<std::int64_t>(row_.flops_per_element);
  node.flops = node.flops + element_count(value(update).shape) * rate;
}

Kernel own_kernel(const OptimizerRow& row) {
  if (row.name == "sgd") return Kernel::sgd_update;
  if (row.name == "adam" || row.name == "adamw") return Kernel::adam_update;
  return Kernel::optimizer_update;
}

void UpdateLowering::add_own_call(const Update& update) {
  KernelNode node{.name = "update." + model_.parameter(update.parameter).name,
                  .kernel = own_kernel(row_),
                  .phase = Phase::update,
                  .attributes = attributes()};
  append(node, update);
  if (!has_master(update)) {
    graph_.nodes.push_back(std::move(node));
    return;
  }
  // The copy is updated in the parameter's place, which then becomes what the copy rounds to.
  const TensorView& master = state(update).front();
  node.reads.erase(node.reads.begin() + 2);
  node.reads.front() = master;
  node.writes.erase(node.writes.begin());
  KernelNode rounding{.name = node.name + ".round",
                      .kernel = Kernel::cast,
                      .phase = Phase::update,
                      .reads = {master},
                      .writes = {value(update)},
                      .flops = element_count(value(update).shape)};
  graph_.nodes.push_back(std::move(node));
  graph_.nodes.push_back(std::move(rounding));
}

// State that all parameters get before the first call is there from that call on, and gradients
// stay until the step is over.
void UpdateLowering::add_library_calls(std::size_t first, std::size_t count) {
  const std::span<const Update> updates = std::span(updates_).subspan(first, count);
  const UpdateCalls calls = update_calls(row_, settings_, std::span(seen_).subspan(first, count));
  std::vector<StorageId> temporaries(calls.temporaries.size());
  const auto storage_of = [&](std::size_t i) {
    if (temporaries[i].valid()) return temporaries[i];
    const UpdateTemporary& temporary = calls.temporaries[i];
    const ParameterId parameter =
        temporary.parameter < 0 ? ParameterId{}
                                : updates[static_cast<std::size_t>(temporary.parameter)].parameter;
    const std::string_view owner =
        parameter.valid() ? std::string_view(model_.parameter(parameter).name) : "optimizer";
    return temporaries[i] = add({.name = dotted(owner, "update", temporary.variable),
                                 .storage_class = StorageClass::temporary,
                                 .bytes = temporary.bytes.count(),
                                 .parameter = parameter});
  };
  const std::size_t first_node = graph_.nodes.size();
  for (const UpdateCall& call : calls.calls) {
    KernelNode node{.name = "optimizer.step",
                    .kernel = Kernel::foreach_update,
                    .phase = Phase::update,
                    .attributes = attributes()};
    if (calls.calls.size() > 1 || count < updates_.size()) {
      node.name += "." + model_.parameter(updates[call.parameters.front()].parameter).name;
    }
    const std::size_t views = call.parameters.size() * (row_.state.size() + 2);
    node.reads.reserve(views + shared_.size());
    node.writes.reserve(views);
    for (const std::size_t i : call.parameters) append(node, updates[i]);
    node.reads.insert(node.reads.end(), shared_.begin(), shared_.end());
    for (const std::size_t i : call.temporaries) node.temporaries.push_back(storage_of(i));
    graph_.nodes.push_back(std::move(node));
  }
  for (const Update& update : updates) {
    graph_.nodes.back().holds.push_back(gradient(update).storage);
    if (row_.makes_state_before_update) continue;
    for (const TensorView& kept : state(update)) {
      graph_.nodes[first_node].holds.push_back(kept.storage);
    }
  }
}

// As hooks on parameters have them (register_post_accumulate_grad_hook): what the parameters of one
// optimizer share is there for each.
void UpdateLowering::add_optimizer_of_each() {
  for (std::size_t i = 0; i < updates_.size(); ++i) {
    shared_.clear();
    add_shared_state(std::span(seen_).subspan(i, 1), model_.parameter(updates_[i].parameter).name);
    add_library_calls(i, 1);
  }
}

}  // namespace

void lower_update(StepGraph& graph, const ModelGraph& model,
                  const std::vector<TensorView>& parameters) {
  if (graph.settings.optimizer.master_weights == MasterWeights::weights_and_gradients) {
    keep_float32_gradients(graph, model);
  }
  UpdateLowering(graph, model, parameters).run();
}

}  // namespace stowage
