#include "estimator/step/step_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>
#include <string_view>

#include "estimator/catalogue/loss.hpp"
#include "estimator/catalogue/operator_row.hpp"

namespace stowage {

namespace {

// A permutation of contiguous memory (ATen's is_non_overlapping_and_dense).
bool is_dense(const TensorView& view) {
  std::vector<std::int64_t> axes(view.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::stable_sort(axes.begin(), axes.end(), [&](std::int64_t a, std::int64_t b) {
    const Affine& x = view.strides[static_cast<std::size_t>(a)];
    const Affine& y = view.strides[static_cast<std::size_t>(b)];
    return x.constant + x.slope > y.constant + y.slope;
  });
  return is_contiguous(permuted(view, axes));
}

}  // namespace

StepBuilder::StepBuilder(const ModelGraph& model, const LoweringSettings& settings)
    : model_(model) {
  graph_.settings = settings;
  graph_.model = model.name;
  tensor_needs_gradient_.resize(model.tensors.size(), false);
  values_.resize(model.tensors.size());
  gradients_.resize(model.tensors.size());
  parameter_gradients_.resize(model.parameters.size());
  saved_.resize(model.operators.size());
  consumers_.resize(model.tensors.size(), 0);
  for (const Operator& op : model.operators) {
    for (const TensorId input : op.inputs) ++consumers_[input.index()];
  }
}

StepGraph StepBuilder::build() && {
  make_parameter_storages();
  find_what_needs_gradients();
  find_what_only_losses_read();
  for (int i = 0; i < graph_.settings.micro_batches; ++i) run_micro_batch(i);
  graph_.gradients.resize(model_.parameters.size());
  for (std::size_t i = 0; i < parameter_gradients_.size(); ++i) {
    if (parameter_gradients_[i].present) graph_.gradients[i] = parameter_gradients_[i].view;
  }
  if (graph_.settings.mode == Mode::train) lower_update(graph_, model_, parameter_storage_);
  if (graph_.settings.kernels == KernelSet::pytorch) mark_held_results();
  return std::move(graph_);
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
    const TensorView view = contiguous_view(StorageId{}, parameter.type.shape, parameter.type.type);
    parameter_storage_.push_back(add_storage(
        {.name = parameter.name,
         .storage_class = parameter.is_buffer ? StorageClass::buffer : StorageClass::parameter,
         .persistence = Persistence::persistent,
         .bytes = byte_count(view),
         .op = owner[i],
         .parameter = ParameterId::of(i),
         .carries_over = training && (parameter.trainable || parameter.is_buffer)}));
  }
}

void StepBuilder::find_what_needs_gradients() {
  if (graph_.settings.mode != Mode::train) return;
  for (const Operator& op : model_.operators) {
    const auto& rules = op.row->lowering[static_cast<std::size_t>(graph_.settings.kernels)];
    if (rules.backward == nullptr) continue;
    const bool needed =
        std::any_of(op.inputs.begin(), op.inputs.end(),
                    [&](TensorId t) { return tensor_needs_gradient_[t.index()]; }) ||
        std::any_of(op.parameters.begin(), op.parameters.end(), [&](ParameterId p) {
          return model_.parameter(p).trainable && !model_.parameter(p).is_buffer;
        });
    if (!needed) continue;
    for (const TensorId output : op.outputs) tensor_needs_gradient_[output.index()] = true;
  }
}

// Losses, and what leads to them alone, as auxiliary classifiers do: not run in inference.
void StepBuilder::find_what_only_losses_read() {
  only_for_losses_.resize(model_.operators.size(), false);
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
    for (const TensorId input : op.inputs) {
      if (to_output) for_output[input.index()] = true;
      if (to_losses) for_losses[input.index()] = true;
    }
  }
}

bool StepBuilder::is_loss(OperatorId op) const { return model_.op(op).row->is_loss; }

void StepBuilder::make_inputs(int micro_batch) {
  for (const TensorId id : model_.inputs) {
    const ModelTensor& tensor = model_.tensor(id);
    TensorView view = contiguous_view(StorageId{}, tensor.type.shape, tensor.type.type);
    view.storage = add_storage({.name = suffixed(tensor.name, micro_batch),
                                .storage_class = StorageClass::input,
                                .persistence = Persistence::from_host,
                                .bytes = byte_count(view)});
    values_[id.index()] = view;
    graph_.inputs.push_back(view);
  }
}

void StepBuilder::run_micro_batch(int micro_batch) {
  std::fill(values_.begin(), values_.end(), TensorView{});
  std::fill(gradients_.begin(), gradients_.end(), Gradient{});
  for (auto& saved : saved_) saved.clear();
  make_inputs(micro_batch);
  const bool training = graph_.settings.mode == Mode::train;
  for (std::size_t i = 0; i < model_.operators.size(); ++i) {
    if (!training && only_for_losses_[i]) continue;
    run_forward(OperatorId::of(i), micro_batch);
  }
  graph_.output = values_[model_.output.index()];
  if (!training) return;
  if (micro_batch == 0) record_saved();
  graph_.losses.push_back(values_[model_.loss.index()]);
  phase_ = Phase::backward;
  for (std::size_t i = model_.operators.size(); i-- > 0;) {
    run_backward(OperatorId::of(i), micro_batch);
  }
}

void StepBuilder::run_forward(OperatorId op, int micro_batch) {
  phase_ = is_loss(op) ? Phase::loss : Phase::forward;
  OperatorLowering lowering(*this, op, micro_batch);
  model_.op(op).row->lowering[static_cast<std::size_t>(graph_.settings.kernels)].forward(lowering);
}

void StepBuilder::run_backward(OperatorId op, int micro_batch) {
  const Operator& oper = model_.op(op);
  const LowerRule rule =
      oper.row->lowering[static_cast<std::size_t>(graph_.settings.kernels)].backward;
  const auto arrived = [&](TensorId t) { return gradients_[t.index()].present; };
  const bool wanted = is_loss(op) || std::any_of(oper.outputs.begin(), oper.outputs.end(), arrived);
  if (rule == nullptr || !wanted || !tensor_needs_gradient_[oper.outputs.front().index()]) return;
  const std::size_t first_node = graph_.nodes.size();
  OperatorLowering lowering(*this, op, micro_batch);
  held_by_hand_ = graph_.settings.kernels == KernelSet::stowage;
  rule(lowering);
  if (!held_by_hand_) hold_until_done(op, first_node);
  for (const TensorId output : oper.outputs) release(gradients_[output.index()]);
  deliver(op, micro_batch);
}

// An autograd node lets go of its saved tensors and of its incoming gradients when it returns.
void StepBuilder::hold_until_done(OperatorId op, std::size_t first_node) {
  if (graph_.nodes.size() == first_node) return;
  std::vector<StorageId>& holds = graph_.nodes.back().holds;
  for (const Saved& saved : saved_[op.index()]) holds.push_back(saved.view.storage);
  for (const TensorId output : model_.op(op).outputs) {
    const Gradient& gradient = gradients_[output.index()];
    if (gradient.present) holds.push_back(gradient.view.storage);
  }
  std::sort(holds.begin(), holds.end());
  holds.erase(std::unique(holds.begin(), holds.end()), holds.end());
}

void StepBuilder::deliver(OperatorId op, int micro_batch) {
  const std::vector<Pending> pending = std::move(pending_);
  pending_.clear();
  for (const Pending& given : pending) {
    if (given.tensor.valid()) {
      if (!tensor_needs_gradient_[given.tensor.index()]) continue;
      add_gradient(gradients_[given.tensor.index()], given.gradient, op, micro_batch);
    } else {
      add_gradient(parameter_gradients_[given.parameter.index()], given.gradient, op, micro_batch);
    }
  }
}

void StepBuilder::add_gradient(Gradient& slot, const TensorView& gradient, OperatorId op,
                               int micro_batch) {
  if (!slot.present) {
    slot = {gradient, true, micro_batch};
    ++holders_[gradient.storage.index()];
    return;
  }
  const std::string name = fmt::format("{}.sum_gradients", model_.op(op).name);
  // A view keeps its base alive, so that its storage has two holders (can_accumulate_inplace). What
  // an earlier micro-batch left in .grad is added to in place whatever it is (accumulate_grad.h).
  const bool own = graph_.settings.kernels == KernelSet::stowage || !slot.view.is_view ||
                   slot.micro_batch != micro_batch;
  if (own && holders_[slot.view.storage.index()] == 1 && is_dense(slot.view)) {
    add_node({.name = suffixed(name, micro_batch),
              .kernel = Kernel::accumulate,
              .phase = Phase::backward,
              .op = op,
              .micro_batch = micro_batch,
              .reads = {slot.view, gradient},
              .writes = {slot.view},
              .flops = element_count(gradient.shape)});
    return;
  }
  TensorView sum = contiguous_view(StorageId{}, gradient.shape, gradient.type);
  sum.storage = add_storage({.name = suffixed(name, micro_batch),
                             .storage_class = StorageClass::activation_gradient,
                             .bytes = byte_count(sum),
                             .op = op});
  add_node({.name = suffixed(name, micro_batch),
            .kernel = Kernel::add,
            .phase = Phase::backward,
            .op = op,
            .micro_batch = micro_batch,
            .reads = {slot.view, gradient},
            .writes = {sum},
            .flops = element_count(gradient.shape)});
  release(slot);
  slot = {sum, true, micro_batch};
  ++holders_[sum.storage.index()];
}

void StepBuilder::release(Gradient& slot) {
  if (!slot.present) return;
  --holders_[slot.view.storage.index()];
  slot = {};
}

void StepBuilder::record_saved() {
  for (std::size_t i = 0; i < saved_.size(); ++i) {
    for (const Saved& saved : saved_[i]) {
      graph_.saved.push_back({OperatorId::of(i), saved.view.storage, saved.role});
      // What only backward reads is an auxiliary; the rows say so when they make it.
    }
  }
}

// The usual training script keeps `output` and `loss` in variables until the next step's replace
// them, and its inputs for the whole step. A model that makes the loss itself (transformers, given
// labels) returns both at once, after the loss. backward() keeps the gradient it starts from.
void StepBuilder::mark_held_results() {
  NodeId last_forward, last_loss, last_backward;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Phase phase = graph_.nodes[i].phase;
    if (phase == Phase::forward) last_forward = NodeId::of(i);
    if (phase == Phase::loss) last_loss = NodeId::of(i);
    if (phase == Phase::backward) last_backward = NodeId::of(i);
  }
  const auto keep = [&](StorageId id, NodeId replaced_after) {
    Storage& storage = graph_.storages[id.index()];
    if (storage.persistence == Persistence::transient) storage.replaced_after = replaced_after;
  };
  keep(graph_.output.storage, model_.loss_in_model && last_loss.valid() ? last_loss : last_forward);
  for (const TensorView& loss : graph_.losses) keep(loss.storage, last_loss);
  // A model with several losses returns what each reads: its logits and the auxiliary ones.
  const Operator& last = model_.operators.back();
  if (last.row == &total_loss_row() && graph_.settings.mode == Mode::train) {
    for (const TensorId loss : last.inputs) {
      const Operator& read_by = model_.op(model_.tensor(loss).producer);
      keep(values_[read_by.inputs.front().index()].storage, last_forward);
    }
  }
  for (const TensorView& input : graph_.inputs) {
    graph_.storages[input.storage.index()].held_to_end = true;
  }
  if (last_backward.valid()) {
    std::vector<StorageId>& holds = graph_.nodes[last_backward.index()].holds;
    holds.insert(holds.end(), first_gradients_.begin(), first_gradients_.end());
  }
}

StorageId StepBuilder::add_storage(Storage storage) {
  storage.name = unique_name(std::move(storage.name));
  graph_.storages.push_back(std::move(storage));
  holders_.push_back(0);
  read_again_.push_back(false);
  return StorageId::of(graph_.storages.size() - 1);
}

std::string StepBuilder::unique_name(std::string name) {
  // The names themselves, of a million storages, would be a tenth of all memory. Should two hashes
  // ever agree, the second name gets a suffix that it need not have.
  const int count = names_[std::hash<std::string_view>()(name)]++;
  if (count > 0) name += fmt::format("~{}", count + 1);
  return name;
}

KernelNode& StepBuilder::add_node(KernelNode node) {
  node.name = unique_name(std::move(node.name) + "()");
  node.name.erase(node.name.find("()"), 2);
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back();
}

std::string StepBuilder::suffixed(std::string name, int micro_batch) const {
  if (graph_.settings.micro_batches > 1) name += fmt::format("@{}", micro_batch);
  return name;
}

}  // namespace stowage
