// Autocast in a StepBuilder (torch/autocast_mode.h, cached_cast): before an operator runs, each of
// its floating-point arguments that is in another format than its class wants is copied into that
// format.
//
// Copies of parameters are kept in a cache until the autocast region is left, which is after
// forward and loss; a copy that an operator saved lives until that operator's backward has run.
// Copies of all other tensors are not cached: every consumer makes its own. In backward the
// gradient of a copy is converted back, once, when all its uses have given theirs. Arguments are
// converted last first, which is the order in which C++ compilers evaluate them; autograd runs the
// latest node first, so that the gradients are converted first argument first.
//
// With autocast or without, our executor's kernels read one format: where inputs of several meet,
// they are converted to the result's. PyTorch's kernels convert as they read (TensorIterator).
#include <fmt/format.h>

#include <algorithm>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/step_builder.hpp"

namespace stowage {

namespace {

/// The result's format, or, where the result is no number (a comparison's), the one to which the
/// inputs promote.
DataType format_in_common(DataType result, const std::vector<DataType>& inputs) {
  if (is_floating_point(result)) return result;
  for (const DataType input : inputs) {
    if (!is_floating_point(input)) continue;
    result = is_floating_point(result) ? promoted(result, input) : input;
  }
  return result;
}

/// The trained parameter that a tensor is (the operator `parameter`): autocast keeps the copy of a
/// leaf. Not valid: it is another tensor.
ParameterId trained_leaf(const ModelGraph& model, TensorId tensor) {
  const OperatorId producer = model.tensor(tensor).producer;
  if (!producer.valid()) return {};
  const Operator& op = model.op(producer);
  if (op.row->name != "parameter" || !model.parameter(op.parameters[0]).trainable) return {};
  return op.parameters[0];
}

}  // namespace

// The format in which the operator reads each of its inputs.
std::vector<DataType> StepBuilder::formats_read(const Operator& op) const {
  std::vector<DataType> formats;
  formats.reserve(op.inputs.size());
  for (const TensorId input : op.inputs) formats.push_back(model_.tensor(input).type.type);
  if (rules_of(op).casts_its_inputs) return formats;
  const std::optional<DataType> lower = autocast_type(model_.precision);
  const AutocastClass autocast = autocast_class(*op.row, op.attributes);
  const bool promotes = autocast == AutocastClass::as_is &&
                        (op.inputs.size() > 1 || op.row->promotes_with_parameters) &&
                        kernel_set_.casts_to_promote;
  const DataType common = format_in_common(model_.tensor(op.outputs.front()).type.type, formats);
  for (DataType& format : formats) {
    if (!is_floating_point(format)) continue;
    if (promotes) {
      format = common;
    } else if (lower) {
      format = autocast_input(autocast, *lower, format);
    }
  }
  return formats;
}

const StepBuilder::CastArguments& StepBuilder::casts_of(OperatorId op) const {
  static const CastArguments none;
  return cast_arguments_.empty() ? none : cast_arguments_[op.index()];
}

void StepBuilder::make_casts(OperatorId id) {
  if (cast_arguments_.empty()) return;
  const std::optional<DataType> lower = autocast_type(model_.precision);
  const Operator& op = model_.op(id);
  CastArguments& arguments = cast_arguments_[id.index()];
  arguments.first = casts_.size();
  const AutocastClass autocast = autocast_class(*op.row, op.attributes);
  for (std::size_t i = lower ? op.parameters.size() : 0; i-- > 0;) {
    const DataType type = model_.parameter(op.parameters[i]).type.type;
    const DataType wanted = autocast_input(autocast, *lower, type);
    if (type != wanted) cast_parameter(id, i, wanted);
  }
  const std::vector<DataType> formats = formats_read(op);
  for (std::size_t i = op.inputs.size(); i-- > 0;) {
    if (formats[i] != model_.tensor(op.inputs[i]).type.type) {
      cast_input(id, i, formats[i]);
    }
  }
  arguments.end = casts_.size();
}

void StepBuilder::cast_input(OperatorId id, std::size_t i, DataType type) {
  const Operator& op = model_.op(id);
  std::vector<CastCopy>& copies = cast_arguments_[id.index()].inputs;
  copies.resize(op.inputs.size());
  CastCopy& copy = copies[i];
  const ParameterId leaf =
      autocast_type(model_.precision) == type ? trained_leaf(model_, op.inputs[i]) : ParameterId{};
  if (leaf.valid() && cached_casts_[leaf.index()].cast >= 0) {
    copy = cached_casts_[leaf.index()];
    return;
  }
  if (copy.cast < 0) {
    copy.cast = static_cast<int>(casts_.size());
    casts_.push_back({.tensor = op.inputs[i], .parameter = {}, .type = type});
  }
  const std::string name =
      op.inputs.size() == 1 ? op.name + ".input.cast" : fmt::format("{}.input{}.cast", op.name, i);
  copy.view = emit_cast(values_[op.inputs[i].index()], type, name,
                        {.name = name, .storage_class = StorageClass::activation, .op = id});
  if (!leaf.valid()) return;
  read_again_[copy.view.storage.index()] = true;
  cached_casts_[leaf.index()] = copy;
}

// cached_cast: only what is trained is cached, so that a frozen weight is converted for each use.
void StepBuilder::cast_parameter(OperatorId id, std::size_t i, DataType type) {
  const Operator& op = model_.op(id);
  const ParameterId parameter = op.parameters[i];
  const Parameter& source = model_.parameter(parameter);
  std::vector<CastCopy>& copies = cast_arguments_[id.index()].parameters;
  copies.resize(op.parameters.size());
  CastCopy& copy = copies[i];
  CastCopy& cached = cached_casts_[parameter.index()];
  if (cached.cast >= 0) {
    copy = cached;
    return;
  }
  if (copy.cast < 0) {
    copy.cast = static_cast<int>(casts_.size());
    casts_.push_back({.tensor = {}, .parameter = parameter, .type = type});
  }
  const TensorView& view = parameter_views_[parameter.index()];
  const std::string name = source.name + ".cast";
  copy.view = emit_cast(view, type, name,
                        {.name = name,
                         .storage_class = StorageClass::parameter_copy,
                         .op = id,
                         .parameter = parameter});
  read_again_[copy.view.storage.index()] = true;
  if (source.trainable) cached = copy;
}

// A conversion keeps the layout (torch's preserve_format) where the elements lie densely.
TensorView StepBuilder::emit_cast(const TensorView& view, DataType type, const std::string& node,
                                  const Storage& copy) {
  TensorView result = view;
  result.type = type;
  result.is_view = false;
  result.offset = 0;
  if (!is_dense(view)) result.strides = contiguous_strides(view.shape);
  Storage storage = copy;
  storage.bytes = byte_count(result);
  result.storage = add_storage(std::move(storage));
  add_node({.name = node,
            .kernel = Kernel::cast,
            .phase = phase_,
            .op = copy.op,
            .reads = {view},
            .writes = {result},
            .flops = element_count(view.shape)});
  return result;
}

// Whoever calls an operator of PyTorch's holds its arguments until it returns.
void StepBuilder::hold_what_was_cast(OperatorId op) {
  if (!kernel_set_.frees_by_reference) return;
  const std::vector<CastCopy>& copies = casts_of(op).inputs;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (copies[i].cast < 0) continue;
    graph_.nodes.back().holds.push_back(values_[model_.op(op).inputs[i].index()].storage);
  }
}

void StepBuilder::leave_autocast() {
  std::vector<StorageId> kept;
  for (CastCopy& cached : cached_casts_) {
    if (!cached.view.storage.valid()) continue;
    kept.push_back(cached.view.storage);
    cached = {};
  }
  if (kept.empty() || !kernel_set_.frees_by_reference) return;
  std::vector<StorageId>& holds = graph_.nodes.back().holds;
  holds.insert(holds.end(), kept.begin(), kept.end());
  std::sort(holds.begin(), holds.end());
}

void StepBuilder::run_casts_backward(OperatorId op) {
  const CastArguments& arguments = casts_of(op);
  for (std::size_t i = arguments.end; i-- > arguments.first;) {
    Cast& cast = casts_[i];
    if (!cast.gradient.present) continue;
    const TensorView gradient = cast.gradient.view;
    release(cast.gradient);
    pending_.push_back(
        {.to = {.tensor = cast.tensor, .parameter = cast.parameter}, .gradient = gradient});
    deliver_pending(op);
    // .grad takes it before the engine turns to the next conversion.
    if (cast.parameter.valid()) finish_parameter(cast.parameter, op);
  }
}

}  // namespace stowage
