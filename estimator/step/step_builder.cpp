#include "estimator/step/step_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "estimator/base/printable.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

// The file without its folders: a step is the same wherever its description lies. A file's name may
// hold any byte; names in a step file are printable.
std::string place_of(const SourceSpan& span) {
  if (!span.source) return {};
  const std::string& name = span.source->name;
  return fmt::format("{}:{}:{}", printable_line(name.substr(name.find_last_of('/') + 1)), span.line,
                     span.column);
}

}  // namespace

StepBuilder::StepBuilder(const ModelGraph& model, const LoweringSettings& settings)
    : model_(model), kernel_set_(traits(settings.kernels)) {
  graph_.settings = settings;
  graph_.model = model.name;
  for (const Operator& op : model.operators) graph_.origins.push_back({op.name, place_of(op.span)});
  tensor_needs_gradient_.resize(model.tensors.size(), false);
  values_.resize(model.tensors.size());
  gradients_.resize(model.tensors.size());
  parameter_gradients_.resize(model.parameters.size());
  arriving_.resize(model.parameters.size());
  saved_.resize(model.operators.size());
  if (autocast_type(model.precision) || kernel_set_.casts_to_promote) {
    cast_arguments_.resize(model.operators.size());
    cached_casts_.resize(model.parameters.size());
  }
  consumers_.resize(model.tensors.size(), 0);
  for (const Operator& op : model.operators) {
    for (const TensorId input : op.inputs) ++consumers_[input.index()];
  }
}

StepGraph StepBuilder::build() && {
  reserve();
  make_parameter_storages();
  make_prefetched_inputs();
  graph_.micro_batch.first_storage = StorageId::of(graph_.storages.size());
  find_what_needs_gradients();
  find_what_only_losses_read();
  find_first_users();
  run_forward_and_backward();
  graph_.micro_batch.end_storage = StorageId::of(graph_.storages.size());
  graph_.micro_batch.first_node = NodeId::of(0);
  graph_.micro_batch.end_node = NodeId::of(graph_.nodes.size());
  number_repetitions(graph_.storages, storage_names_);
  number_repetitions(graph_.nodes, node_names_);
  graph_.gradients.resize(model_.parameters.size());
  for (std::size_t i = 0; i < parameter_gradients_.size(); ++i) {
    if (parameter_gradients_[i].present) graph_.gradients[i] = parameter_gradients_[i].view;
  }
  if (graph_.settings.step.zero_grad == ZeroGrad::to_zero) zero_persistent_gradients();
  if (graph_.settings.mode == Mode::train) lower_update(graph_, model_, parameter_views_);
  if (kernel_set_.frees_by_reference) keep_script_variables();
  return std::move(graph_);
}

// About what a step has, rather more: memory that is not touched is not taken.
void StepBuilder::reserve() {
  const bool training = graph_.settings.mode == Mode::train;
  const std::size_t operators = model_.operators.size();
  const std::size_t parameters = model_.parameters.size();
  graph_.storages.reserve(operators * (training ? 4 : 2) + parameters * (training ? 5 : 1));
  graph_.nodes.reserve(operators * (training ? 3 : 1) + (training ? parameters : 0));
  storage_names_.reserve(graph_.storages.capacity());
  node_names_.reserve(graph_.nodes.capacity());
  holders_.reserve(graph_.storages.capacity());
  read_again_.reserve(graph_.storages.capacity());
  parameter_views_.reserve(parameters);
}

// A parameter or an input as the script hands it over: `.to(memory_format=torch.channels_last)`
// lays out tensors of four axes, channels_last_3d those of five.
TensorView StepBuilder::handed_over(const TensorType& type) {
  const TensorView view = layouts_.view(type.shape, type.type);
  const bool image = type.shape.size() == 4 || type.shape.size() == 5;
  return laid_out(view, image && graph_.settings.step.layout == TensorLayout::channels_last);
}

void StepBuilder::make_parameter_storages() {
  const bool training = graph_.settings.mode == Mode::train;
  std::vector<OperatorId> owner(model_.parameters.size());
  for (std::size_t i = model_.operators.size(); i-- > 0;) {
    for (const ParameterId id : model_.operators[i].parameters) {
      owner[id.index()] = OperatorId::of(i);
    }
  }
  for (std::size_t i = 0; i < model_.parameters.size(); ++i) {
    const Parameter& parameter = model_.parameters[i];
    TensorView view = handed_over(parameter.type);
    view.storage = add_storage(
        {.name = parameter.name,
         .storage_class = parameter.is_buffer ? StorageClass::buffer : StorageClass::parameter,
         .persistence = Persistence::persistent,
         .bytes = byte_count(view),
         .op = owner[i],
         .parameter = ParameterId::of(i),
         .carries_over = training && (parameter.trainable || parameter.is_buffer)});
    parameter_views_.push_back(std::move(view));
  }
}

// Losses, and what leads to them alone, as auxiliary classifiers do: not run in inference.
void StepBuilder::find_what_only_losses_read() {
  only_for_losses_.resize(model_.operators.size(), false);
  read_by_losses_alone_.resize(model_.tensors.size(), true);
  std::vector<bool> for_output(model_.tensors.size()), for_losses(model_.tensors.size());
  for_output[model_.output.index()] = true;
  for (std::size_t i = model_.operators.size(); i-- > 0;) {
    const Operator& op = model_.operators[i];
    const auto leads = [&](const std::vector<bool>& to) {
      return std::any_of(op.outputs.begin(), op.outputs.end(),
                         [&](TensorId output) { return to[output.index()]; });
    };
    const bool to_output = leads(for_output);
    const bool to_losses = op.row->is_loss || leads(for_losses);
    only_for_losses_[i] = to_losses && !to_output;
    if (!op.row->is_loss) {
      for (const TensorId input : op.inputs) read_by_losses_alone_[input.index()] = false;
    }
    for (const TensorId input : op.inputs) {
      if (to_output) for_output[input.index()] = true;
      if (to_losses) for_losses[input.index()] = true;
    }
  }
}

bool StepBuilder::is_loss(OperatorId op) const { return model_.op(op).row->is_loss; }

void StepBuilder::make_inputs() {
  for (const TensorId id : model_.inputs) {
    const ModelTensor& tensor = model_.tensor(id);
    TensorView view = read_by_losses_alone_[id.index()]
                          ? layouts_.view(tensor.type.shape, tensor.type.type)
                          : handed_over(tensor.type);
    view.storage = add_storage({.name = tensor.name,
                                .storage_class = StorageClass::input,
                                .persistence = Persistence::from_host,
                                .bytes = byte_count(view)});
    values_[id.index()] = view;
    graph_.inputs.push_back(view);
    variables_.inputs.push_back(view.storage);
  }
}

// A data loader's next batches, on the GPU for the whole step. Our executor loads a step's own.
void StepBuilder::make_prefetched_inputs() {
  if (!kernel_set_.loads_untouched) return;
  for (int i = 0; i < graph_.settings.step.prefetch; ++i) {
    for (const TensorId id : model_.inputs) {
      const ModelTensor& tensor = model_.tensor(id);
      const TensorView view = layouts_.view(tensor.type.shape, tensor.type.type);
      add_storage({.name = fmt::format("{}.prefetched{}", tensor.name, i),
                   .storage_class = StorageClass::input,
                   .persistence = Persistence::persistent,
                   .bytes = byte_count(view)});
    }
  }
}

// Augmentation on the GPU: copies of the batch that the script's variables keep.
void StepBuilder::augment() {
  const auto first = std::find_if(model_.inputs.begin(), model_.inputs.end(), [&](TensorId id) {
    return is_floating_point(model_.tensor(id).type.type);
  });
  if (first == model_.inputs.end()) return;
  for (int i = 0; i < graph_.settings.step.augment; ++i) {
    TensorView copy = values_[first->index()];
    const std::string name = fmt::format("{}.augmented{}", model_.tensor(*first).name, i);
    copy.storage = add_storage(
        {.name = name, .storage_class = StorageClass::augmented_input, .bytes = byte_count(copy)});
    hold_to_end(copy.storage);
    variables_.inputs.push_back(copy.storage);
    add_node({.name = name,
              .kernel = Kernel::copy,
              .phase = Phase::forward,
              .reads = {values_[first->index()]},
              .writes = {copy}});
  }
}

void StepBuilder::run_forward_and_backward() {
  make_inputs();
  augment();
  const bool training = graph_.settings.mode == Mode::train;
  for (std::size_t i = 0; i < model_.operators.size(); ++i) {
    if (!training && only_for_losses_[i]) continue;
    run_forward(OperatorId::of(i));
  }
  leave_autocast();
  graph_.output = values_[model_.output.index()];
  variables_.output = graph_.output.storage;
  if (!training) return;
  record_saved();
  if (kernel_set_.frees_by_reference) hold_what_dead_ends_saved();
  graph_.losses.push_back(values_[model_.loss.index()]);
  variables_.loss = graph_.losses.back().storage;
  // A model with several losses returns what each reads: its logits and the auxiliary ones.
  const Operator& last = model_.operators.back();
  if (last.row == &total_loss_row()) {
    for (const TensorId loss : last.inputs) {
      const Operator& read_by = model_.op(model_.tensor(loss).producer);
      variables_.other_outputs.push_back(values_[read_by.inputs.front().index()].storage);
    }
  }
  phase_ = Phase::backward;
  for (std::size_t i = model_.operators.size(); i-- > 0;) {
    run_backward(OperatorId::of(i));
  }
}

void StepBuilder::run_forward(OperatorId op) {
  phase_ = is_loss(op) ? Phase::loss : Phase::forward;
  keep_what_enters_region(op);
  make_casts(op);
  run_forward_rule(op);
  hold_what_was_cast(op);
}

// What enters a checkpointed region must outlast its forward pass (rewrite/checkpoints.hpp), so
// that nothing may work in its place.
void StepBuilder::keep_what_enters_region(OperatorId op) {
  const int region = model_.op(op).region;
  if (region < 0 || graph_.settings.mode != Mode::train) return;
  for (const TensorId input : model_.op(op).inputs) {
    const OperatorId producer = model_.tensor(input).producer;
    if (producer.valid() && model_.op(producer).region == region) continue;
    read_again_[values_[input.index()].storage.index()] = true;
  }
}

void StepBuilder::run_forward_rule(OperatorId op) {
  OperatorLowering lowering(*this, op);
  copied_within_.clear();
  rules_of(model_.op(op)).forward(lowering);
  // The caller holds the arguments that a kernel copies within itself.
  if (!copied_within_.empty()) lowering.also_hold(copied_within_);
}

const LoweringRules& StepBuilder::rules_of(const Operator& op) const {
  return stowage::rules_of(*op.row, graph_.settings.kernels);
}

void StepBuilder::record_saved() {
  std::size_t count = 0;
  for (const std::vector<Saved>& of_operator : saved_) count += of_operator.size();
  graph_.saved.reserve(count);
  for (std::size_t i = 0; i < saved_.size(); ++i) {
    for (const Saved& saved : saved_[i]) {
      graph_.saved.push_back({OperatorId::of(i), saved.view.storage, saved.role});
    }
  }
}

// Names are made unique when all are there.
StorageId StepBuilder::add_storage(Storage storage) {
  storage_names_.push_back(name_hash(storage.name));
  graph_.storages.push_back(std::move(storage));
  holders_.push_back(0);
  read_again_.push_back(false);
  return StorageId::of(graph_.storages.size() - 1);
}

KernelNode& StepBuilder::add_node(KernelNode node) {
  node_names_.push_back(name_hash(node.name));
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back();
}

}  // namespace stowage
