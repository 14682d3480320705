#include "estimator/step/operator_lowering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/own_scratch.hpp"
#include "estimator/step/step_builder.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

OperatorLowering::OperatorLowering(StepBuilder& builder, OperatorId op)
    : builder_(builder), id_(op) {}

const Operator& OperatorLowering::op() const { return builder_.model_.op(id_); }

bool OperatorLowering::training() const { return builder_.graph_.settings.mode == Mode::train; }
double OperatorLowering::compute_capability() const {
  return builder_.graph_.settings.compute_capability;
}
bool OperatorLowering::efficient_takes_groups() const {
  return builder_.graph_.settings.efficient_takes_groups;
}

int OperatorLowering::input_count() const { return static_cast<int>(op().inputs.size()); }

const TensorView& OperatorLowering::input(int i) const {
  const auto& casts = builder_.casts_of(id_).inputs;
  const auto at = static_cast<std::size_t>(i);
  if (!casts.empty() && casts[at].cast >= 0) return casts[at].view;
  return builder_.values_[op().inputs[static_cast<std::size_t>(i)].index()];
}

bool OperatorLowering::input_needs_gradient(int i) const {
  return builder_.tensor_needs_gradient_[op().inputs[static_cast<std::size_t>(i)].index()];
}

bool OperatorLowering::may_overwrite_input(int i) const {
  const StorageId storage = input(i).storage;
  if (builder_.graph_.storages[storage.index()].persistence != Persistence::transient) return false;
  return !builder_.read_again_[storage.index()];
}

const TensorView& OperatorLowering::parameter(int i) const {
  const auto& casts = builder_.casts_of(id_).parameters;
  const auto at = static_cast<std::size_t>(i);
  if (!casts.empty() && casts[at].cast >= 0) return casts[at].view;
  return builder_.parameter_views_[op().parameters[at].index()];
}

int OperatorLowering::parameter_count() const { return static_cast<int>(op().parameters.size()); }

bool OperatorLowering::parameter_needs_gradient(int i) const {
  if (!training()) return false;
  const Parameter& parameter =
      builder_.model_.parameter(op().parameters[static_cast<std::size_t>(i)]);
  return parameter.trainable && !parameter.is_buffer;
}

bool OperatorLowering::needs_gradient() const {
  return training() && builder_.tensor_needs_gradient_[op().outputs.front().index()];
}

const TensorType& OperatorLowering::output_type(int i) const {
  return builder_.model_.tensor(op().outputs[static_cast<std::size_t>(i)]).type;
}

const TensorView& OperatorLowering::output(int i) const {
  return builder_.values_[op().outputs[static_cast<std::size_t>(i)].index()];
}

TensorView OperatorLowering::new_output(int i) {
  const ModelTensor& tensor = builder_.model_.tensor(op().outputs[static_cast<std::size_t>(i)]);
  TensorView made = builder_.layouts_.view(tensor.type.shape, tensor.type.type);
  made.storage = builder_.add_storage({.name = tensor.name,
                                       .storage_class = StorageClass::activation,
                                       .bytes = byte_count(made),
                                       .op = id_});
  set_output(i, made);
  return made;
}

TensorView OperatorLowering::new_output_like(const TensorView& like, int i) {
  TensorView made = new_output(i);
  if (made.shape == like.shape && made.strides == like.strides) return made;  // as most are
  made.strides = dense_strides(made.shape, like.strides);
  set_output(i, made);
  return made;
}

TensorView OperatorLowering::new_tensor(std::string_view suffix, const Shape& shape, DataType type,
                                        StorageClass storage_class) {
  TensorView view = builder_.layouts_.view(shape, type);
  view.storage = builder_.add_storage({.name = dotted(op().name, suffix),
                                       .storage_class = storage_class,
                                       .bytes = byte_count(view),
                                       .op = id_});
  return view;
}

TensorView OperatorLowering::new_lasting_tensor(std::string_view suffix, const Shape& shape,
                                                DataType type, StorageClass storage_class) {
  TensorView view = new_tensor(suffix, shape, type, storage_class);
  Storage& storage = builder_.graph_.storages[view.storage.index()];
  storage.persistence = Persistence::persistent;
  storage.carries_over = true;
  return view;
}

TensorView OperatorLowering::new_inherited_tensor(std::string_view suffix, const Shape& shape,
                                                  DataType type, StorageClass storage_class) {
  TensorView view = new_tensor(suffix, shape, type, storage_class);
  builder_.graph_.storages[view.storage.index()].persistence = Persistence::from_host;
  return view;
}

void OperatorLowering::keep_to_end(const TensorView& view) { builder_.hold_to_end(view.storage); }

StorageId OperatorLowering::new_temporary(std::string_view suffix, Affine bytes) {
  return builder_.add_storage({.name = dotted(op().name, suffix),
                               .storage_class = StorageClass::temporary,
                               .bytes = bytes,
                               .op = id_});
}

void OperatorLowering::set_output(int i, TensorView view) {
  const TensorId id = op().outputs[static_cast<std::size_t>(i)];
  if (builder_.consumers_[id.index()] > 1) builder_.read_again_[view.storage.index()] = true;
  builder_.values_[id.index()] = std::move(view);
}

KernelNode& OperatorLowering::emit(Kernel kernel, std::string_view suffix, KernelArguments reads,
                                   KernelArguments writes, NodeExtras extras) {
  Attributes attributes = op().attributes;
  for (const auto& [name, value] : extras.attributes.entries()) attributes.set(name, value);
  KernelNode& node = builder_.add_node({.name = dotted(op().name, suffix),
                                        .kernel = kernel,
                                        .phase = builder_.phase_,
                                        .op = id_,
                                        .reads = std::move(reads).taken(),
                                        .writes = std::move(writes).taken(),
                                        .temporaries = std::move(extras.temporaries),
                                        .holds = std::move(extras.holds),
                                        .attributes = std::move(attributes),
                                        .flops = extras.flops,
                                        .convolution = extras.convolution});
  list_own_scratch(builder_.graph_, node);
  return node;
}

int OperatorLowering::add_convolution(ConvolutionCall call) {
  std::vector<ConvolutionCall>& calls = builder_.graph_.convolutions;
  if (!calls.empty() && calls.back().window == call.window) call.window = calls.back().window;
  calls.push_back(std::move(call));
  return static_cast<int>(calls.size()) - 1;
}

TensorView OperatorLowering::contiguous(const TensorView& view, std::string_view suffix,
                                        bool channels_last) {
  if (is_contiguous(view, channels_last)) return view;
  TensorView copy =
      laid_out(new_tensor(suffix, view.shape, view.type,
                          builder_.making_gradients() ? StorageClass::activation_gradient
                                                      : StorageClass::activation),
               channels_last);
  emit(Kernel::copy, suffix, {view}, {copy});
  return copy;
}

TensorView OperatorLowering::contiguous_within(const TensorView& view, std::string_view suffix,
                                               bool channels_last) {
  if (is_contiguous(view, channels_last)) return view;
  builder_.copied_within_.push_back(view.storage);
  TensorView copy =
      laid_out(new_tensor(suffix, view.shape, view.type, StorageClass::workspace), channels_last);
  emit(Kernel::copy, suffix, {view}, {copy});
  return copy;
}

TensorView OperatorLowering::cast(const TensorView& view, DataType type, std::string_view suffix) {
  if (view.type == type) return view;
  const std::string name = dotted(op().name, suffix);
  const bool is_gradient = builder_.making_gradients();
  const ParameterId leaf = builder_.graph_.storages[view.storage.index()].parameter;
  // Autocast's cache has it then (casts.cpp).
  const bool is_kept = !is_gradient && leaf.valid() && builder_.model_.parameter(leaf).trainable &&
                       builder_.parameter_views_[leaf.index()] == view &&
                       autocast_class(*op().row, op().attributes) == AutocastClass::lower &&
                       autocast_type(builder_.model_.precision) == type;
  if (is_kept && builder_.cached_casts_[leaf.index()].view.storage.valid()) {
    return builder_.cached_casts_[leaf.index()].view;
  }
  TensorView copy = builder_.emit_cast(
      view, type, name,
      {.name = name,
       .storage_class = is_gradient ? StorageClass::activation_gradient : StorageClass::activation,
       .op = id_});
  if (is_kept) builder_.cached_casts_[leaf.index()].view = copy;
  return copy;
}

void OperatorLowering::save(std::string_view role, const TensorView& view) {
  if (!needs_gradient()) return;
  builder_.saved_[id_.index()].push_back({std::string(role), view});
  builder_.read_again_[view.storage.index()] = true;
}

const TensorView& OperatorLowering::saved(std::string_view role) const {
  for (const auto& saved : builder_.saved_[id_.index()]) {
    if (saved.role == role) return saved.view;
  }
  throw std::logic_error(fmt::format("{} saved no '{}'", op().name, role));
}

bool OperatorLowering::has_saved(std::string_view role) const {
  const auto& all = builder_.saved_[id_.index()];
  return std::any_of(all.begin(), all.end(), [&](const auto& s) { return s.role == role; });
}

const TensorView& OperatorLowering::output_gradient(int i) const {
  const auto& slot = builder_.gradients_[op().outputs[static_cast<std::size_t>(i)].index()];
  assert(slot.present);
  return slot.view;
}

bool OperatorLowering::has_output_gradient(int i) const {
  return builder_.gradients_[op().outputs[static_cast<std::size_t>(i)].index()].present;
}

TensorView OperatorLowering::new_input_gradient(int i) {
  const TensorView& value = input(i);
  const std::string suffix = input_count() == 1 ? "grad_input" : fmt::format("grad_input{}", i);
  return new_tensor(suffix, value.shape, value.type, StorageClass::activation_gradient);
}

TensorView OperatorLowering::new_parameter_gradient(int i) {
  const ParameterId id = op().parameters[static_cast<std::size_t>(i)];
  const Parameter& parameter = builder_.model_.parameter(id);
  const DataType type = this->parameter(i).type;
  TensorView view = builder_.layouts_.view(parameter.type.shape, type);
  std::string name = dotted(parameter.name, "grad");
  if (type != parameter.type.type) name = dotted(name, to_string(type));
  const bool persists = builder_.graph_.settings.step.zero_grad == ZeroGrad::to_zero;
  if (persists && type == parameter.type.type) name += ".incoming";
  view.storage = builder_.add_storage({.name = std::move(name),
                                       .storage_class = StorageClass::gradient,
                                       .bytes = byte_count(view),
                                       .op = id_,
                                       .parameter = id});
  return view;
}

void OperatorLowering::keep_through_backward(const TensorView& gradient) {
  builder_.variables_.first_gradient = gradient.storage;
}

void OperatorLowering::keep_with_graph(const TensorView& view) {
  if (!input_needs_gradient()) return;
  builder_.variables_.kept_by_graph.push_back(view.storage);
  builder_.read_again_[view.storage.index()] = true;
}

void OperatorLowering::hold_by_hand() { builder_.held_by_hand_ = true; }

void OperatorLowering::deliver_gradients() { builder_.deliver_pending(id_); }

void OperatorLowering::also_hold(std::span<const StorageId> storages) {
  std::vector<StorageId>& holds = builder_.graph_.nodes.back().holds;
  holds.insert(holds.end(), storages.begin(), storages.end());
}

void OperatorLowering::give_input_gradient(int i, const TensorView& gradient) {
  const auto at = static_cast<std::size_t>(i);
  const auto& casts = builder_.casts_of(id_).inputs;
  const int cast = casts.empty() ? -1 : casts[at].cast;
  builder_.pending_.push_back(
      {{.tensor = cast >= 0 ? TensorId{} : op().inputs[at], .parameter = {}, .cast = cast},
       gradient});
}

void OperatorLowering::give_parameter_gradient(int i, const TensorView& gradient) {
  // A gradient that flowed here as an activation's is the parameter's from now on (AccumulateGrad
  // takes it as it is).
  Storage& storage = builder_.graph_.storages[gradient.storage.index()];
  if (storage.storage_class == StorageClass::activation_gradient) {
    storage.storage_class = StorageClass::gradient;
    storage.parameter = op().parameters[static_cast<std::size_t>(i)];
  }
  const auto at = static_cast<std::size_t>(i);
  const auto& casts = builder_.casts_of(id_).parameters;
  const int cast = casts.empty() ? -1 : casts[at].cast;
  builder_.pending_.push_back(
      {{.tensor = {}, .parameter = cast >= 0 ? ParameterId{} : op().parameters[at], .cast = cast},
       gradient});
}

}  // namespace stowage
