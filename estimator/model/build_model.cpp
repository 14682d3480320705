#include "estimator/model/build_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <deque>

#include "estimator/base/bytes.hpp"
#include "estimator/model/layer_match.hpp"
#include "estimator/model/model_topology.hpp"
#include "estimator/model/operator_path.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

namespace {

using Kind = TensorSource::Kind;

class ModelBuilder {
 public:
  ModelBuilder(const ModelDescription& description, ExpandedModel expanded, Mistakes& mistakes)
      : description_(description), expanded_(std::move(expanded)), mistakes_(mistakes) {}

  ModelGraph build() {
    model_.name = description_.name;
    model_.source = description_.source;
    model_.precision = description_.train.precision;
    model_.optimizer = description_.train.optimizer;
    model_.step = description_.train.step;
    model_.fine_tuning = description_.train.fine_tuning;
    model_.pins = description_.pins;
    model_.attention = description_.attention;
    model_.accumulation = description_.train.accumulation;
    model_.loss_in_model = description_.train.loss_in_model;
    model_.default_seq = description_.default_seq;
    has_layer_types_ = !model_.fine_tuning.layer_types.empty() ||
                       std::any_of(expanded_.operators.begin(), expanded_.operators.end(),
                                   [](const ExpandedOperator& op) { return op.type.has_value(); });
    add_inputs();
    results_.resize(expanded_.operators.size());
    const ExecutionOrder order = find_order();
    model_.operators.reserve(order.order.size());
    sources_.reserve(order.order.size());
    model_.tensors.reserve(model_.inputs.size() + order.order.size());
    for (const OperatorId id : order.order) add_operator(id);
    const bool complete = model_.operators.size() - converted_.size() == expanded_.operators.size();
    if (complete) tie_parameters(sources_, model_, mistakes_);
    if (complete) name_parameters(sources_, model_, mistakes_);
    find_ends();
    if (model_.output.valid() && !mistakes_.any_errors()) warn_of_unused();
    return std::move(model_);
  }

 private:
  // The tensors of an operator's outputs.
  struct Outputs {
    int first = -1;  // -1: unknown
    int count = 0;
  };

  // A conversion that is not in the description.
  struct Conversion {
    LayerEntry entry;
    ExpandedOperator op;
  };

  void add_inputs() {
    for (const InputDeclaration& input : description_.inputs) {
      model_.inputs.push_back(TensorId::of(model_.tensors.size()));
      TensorType type = input.type;
      if (type.type == DataType::float32) type.type = float_type(model_.precision);
      model_.tensors.push_back({.name = input.name, .type = std::move(type), .producer = {}});
    }
  }

  ExecutionOrder find_order() {
    std::vector<TensorUse> uses;
    for (std::size_t i = 0; i < expanded_.operators.size(); ++i) {
      for (const TensorSource& input : expanded_.operators[i].inputs) {
        if (input.kind != Kind::operator_output) continue;
        uses.push_back({OperatorId{input.index}, OperatorId::of(i)});
      }
    }
    ExecutionOrder order = execution_order(expanded_.operators.size(), uses);
    if (!order.cycle.empty()) report_cycle(order.cycle);
    return order;
  }

  void report_cycle(const std::vector<OperatorId>& cycle) {
    constexpr std::size_t most_shown = 8;
    std::string text;
    for (std::size_t i = 0; i < cycle.size() && i < most_shown; ++i) {
      text += expanded_.operators[cycle[i].index()].name + " -> ";
    }
    if (cycle.size() > most_shown) text += "... -> ";
    const ExpandedOperator& first = expanded_.operators[cycle[0].index()];
    text += first.name;
    Mark mark = first.entry->mark;
    for (std::size_t i = 0; i < first.inputs.size(); ++i) {
      if (first.inputs[i].kind == Kind::operator_output &&
          first.inputs[i].index == cycle.back().value) {
        mark = mark_of_input(first, i);
      }
    }
    mistakes_.error_once(mark, fmt::format("layers feed each other in a cycle: {}", text));
  }

  static Mark mark_of_input(const ExpandedOperator& op, std::size_t input) {
    const std::vector<Reference>& from = op.entry->from;
    return from.size() == op.inputs.size() ? from[input].mark : op.entry->mark;
  }

  // The tensor of an input; none: it is unknown, which is reported here or was before.
  TensorId tensor_of(const ExpandedOperator& op, std::size_t number) {
    const TensorSource& source = op.inputs[number];
    return tensor_of(source, mark_of_input(op, number));
  }

  TensorId tensor_of(const TensorSource& source, const Mark& mark) {
    if (source.kind == Kind::model_input) {
      const auto input = static_cast<std::size_t>(source.index);
      return description_.inputs[input].broken ? TensorId{} : model_.inputs[input];
    }
    if (source.kind == Kind::unknown) return {};
    const Outputs& outputs = results_[static_cast<std::size_t>(source.index)];
    if (outputs.first < 0) return {};
    const int output = std::max(source.output, 0);
    if (output < outputs.count && (source.output >= 0 || outputs.count == 1)) {
      return TensorId{outputs.first + output};
    }
    const ExpandedOperator& producer = expanded_.operators[static_cast<std::size_t>(source.index)];
    const bool unnamed = source.output < 0 && outputs.count > 1;
    mistakes_
        .error_once(mark,
                    fmt::format("'{}' has {} {}", producer.name, outputs.count,
                                outputs.count == 1 ? "output" : "outputs"),
                    unnamed ? fmt::format("say which: '{}.0'", producer.entry->name) : "")
        .notes.push_back(mistakes_.note(producer.entry->mark, "it is here"));
    return {};
  }

  void add_operator(OperatorId id) {
    ExpandedOperator& source = expanded_.operators[id.index()];
    Operator op{.name = source.name,
                .path = source.path,
                .row = source.entry->row,
                .attributes = source.entry->settings.empty() ? source.entry->constants
                                                             : std::move(source.attributes),
                .span = span_of(mistakes_.source(), source.entry->mark),
                .region = source.region};
    bool known = !source.broken;
    op.inputs.reserve(source.inputs.size());
    for (std::size_t i = 0; i < source.inputs.size(); ++i) {
      op.inputs.push_back(tensor_of(source, i));
      known = known && op.inputs.back().valid();
    }
    if (!known || !has_right_inputs(source)) return;
    if (has_layer_types_ && meets_two_formats(source, op)) return;
    std::optional<Inference> inference = infer(source, op, types_after_autocast(op));
    if (!inference) return;
    const DataType format = own_format(source);
    if (converts_inputs(op, *inference, format)) {
      convert_inputs(source, op, format);
      inference = infer(source, op, types_after_autocast(op));
      if (!inference) return;
    }
    give_model_format(op, *inference, format);
    add_outputs(id, *inference, op);
    op.parameters.reserve(inference->parameters.size());
    for (const ParameterSpec& spec : inference->parameters) {
      op.parameters.push_back(ParameterId::of(model_.parameters.size()));
      std::string name = op.name;
      name.append(1, '.').append(spec.name);
      model_.parameters.push_back({.name = std::move(name),
                                   .type = {spec.shape, spec.type},
                                   .trainable = !source.frozen && !spec.is_buffer,
                                   .is_buffer = spec.is_buffer});
    }
    const auto number = static_cast<int>(id.index());
    if (!expanded_.losses.empty() && number == expanded_.losses.front()) loss_inputs_ = op.inputs;
    if (op.row->is_loss) losses_.push_back(op.outputs[0]);
    sources_.push_back(&source);
    model_.operators.push_back(std::move(op));
  }

  std::vector<TensorType> types_after_autocast(const Operator& op) const {
    std::vector<TensorType> types;
    types.reserve(op.inputs.size());
    for (const TensorId input : op.inputs) types.push_back(model_.tensor(input).type);
    const std::optional<DataType> lower = autocast_type(model_.precision);
    if (!lower) return types;
    const AutocastClass autocast = autocast_class(*op.row, op.attributes);
    for (TensorType& type : types) {
      type.type = autocast_input(autocast, *lower, type.type);
    }
    return types;
  }

  /// The format of the operator's parameters.
  DataType own_format(const ExpandedOperator& source) const {
    if (source.type) return *source.type;
    for (const LayerType& candidate : model_.fine_tuning.layer_types) {
      if (is_target_or_below(source.name, candidate.pattern)) return candidate.type;
    }
    return float_type(model_.precision);
  }

  /// If layers have formats of their own, kernels that read a single format need their inputs in
  /// the parameters' format: the script calls `layer(x.to(layer.weight.dtype))`. Autocast needs no
  /// such conversion.
  bool converts_inputs(const Operator& op, const Inference& inference, DataType format) const {
    if (!has_layer_types_ || autocast_type(model_.precision)) return false;
    const auto floating = [](const ParameterSpec& parameter) {
      return is_floating_point(parameter.type) && !parameter.is_buffer;
    };
    if (op.row->promotes_with_parameters || op.row->makes_floats) return false;
    if (std::none_of(inference.parameters.begin(), inference.parameters.end(), floating)) {
      return false;
    }
    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
      const DataType type = model_.tensor(input).type.type;
      return is_floating_point(type) && type != format;
    });
  }

  /// Reports a product of activations in two formats, which is not promoted. True: it was reported.
  bool meets_two_formats(const ExpandedOperator& source, const Operator& op) {
    const std::string_view row = op.row->name;
    if (row != "scaled_dot_product_attention" && row != "matmul") return false;
    const std::vector<TensorType> types = types_after_autocast(op);
    for (std::size_t i = 1; i < types.size(); ++i) {
      if (!is_floating_point(types[i].type) || types[i].type == types[0].type) continue;
      report(source, op,
             {.message = fmt::format("its inputs are {} and {}, and its kernels read one format",
                                     to_string(types[0].type), to_string(types[i].type)),
              .input = static_cast<int>(i),
              .hint = "give the layers before it one precision, or put a cast behind one"});
      return true;
    }
    return false;
  }

  void convert_inputs(const ExpandedOperator& source, Operator& op, DataType format) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const TensorType type = model_.tensor(op.inputs[i]).type;
      if (!is_floating_point(type.type) || type.type == format) continue;
      const std::string name = fmt::format("{}.input{}.to", op.name, i);
      Operator cast{.name = name,
                    .path = path_of_part(op, name),
                    .row = find_operator("cast"),
                    .inputs = {op.inputs[i]},
                    .span = op.span,
                    .region = op.region};
      cast.attributes.set("dtype", std::string(to_string(format)));
      cast.outputs.push_back(TensorId::of(model_.tensors.size()));
      model_.tensors.push_back({.name = cast.name,
                                .type = {type.shape, format},
                                .producer = OperatorId::of(model_.operators.size())});
      op.inputs[i] = cast.outputs.front();
      Conversion& conversion = converted_.emplace_back();
      conversion.entry.mark = source.entry->mark;
      conversion.op = {.entry = &conversion.entry, .name = cast.name};
      sources_.push_back(&conversion.op);
      model_.operators.push_back(std::move(cast));
    }
  }

  void give_model_format(const Operator& op, Inference& inference, DataType format) const {
    const OperatorRow& row = *op.row;
    for (ParameterSpec& parameter : inference.parameters) {
      if (is_floating_point(parameter.type)) parameter.type = format;
    }
    const bool promotes = row.promotes_with_parameters && !inference.parameters.empty();
    const std::string_view asked =
        op.attributes.has("dtype") ? std::string_view(op.attributes.text("dtype")) : "";
    if (!row.makes_floats && !promotes && asked != "model") return;
    const bool lower = asked == "lower";
    for (TensorType& output : inference.outputs) {
      if (!is_floating_point(output.type)) continue;
      output.type = promotes ? promoted(output, {inference.parameters[0].shape, format})
                    : lower  ? autocast_type(model_.precision).value_or(format)
                             : format;
    }
  }

  void add_outputs(OperatorId id, const Inference& inference, Operator& op) {
    Outputs& outputs = results_[id.index()];
    outputs.first = static_cast<int>(model_.tensors.size());
    outputs.count = static_cast<int>(inference.outputs.size());
    for (int i = 0; i < outputs.count; ++i) {
      op.outputs.push_back(TensorId::of(model_.tensors.size()));
      model_.tensors.push_back(
          {.name = outputs.count == 1 ? op.name : fmt::format("{}.{}", op.name, i),
           .type = inference.outputs[static_cast<std::size_t>(i)],
           .producer = OperatorId::of(model_.operators.size()),
           .output_index = i});
    }
  }

  bool has_right_inputs(const ExpandedOperator& source) {
    const OperatorRow& row = *source.entry->row;
    const int count = static_cast<int>(source.inputs.size());
    if (count >= row.min_inputs && (row.max_inputs < 0 || count <= row.max_inputs)) return true;
    std::string takes = row.min_inputs == 0 ? "no" : fmt::format("{}", row.min_inputs);
    if (row.max_inputs < 0) takes = fmt::format("at least {}", row.min_inputs);
    if (row.max_inputs > row.min_inputs) {
      takes = fmt::format("{} to {}", row.min_inputs, row.max_inputs);
    }
    const bool one = takes == "1";
    const bool implied = count == 1 && source.entry->from[0].implied;
    mistakes_.error_once(
        source.entry->mark,
        fmt::format("{} takes {} {}, not {}", row.name, takes, one ? "input" : "inputs", count),
        implied ? "list them: 'from: [a, b]'" : "");
    return false;
  }

  std::optional<Inference> infer(const ExpandedOperator& source, const Operator& op,
                                 const std::vector<TensorType>& types) {
    std::string refusal;
    try {
      auto inference = op.row->infer(op.attributes, types);
      if (!inference) {
        report(source, op, inference.error());
        return std::nullopt;
      }
      check_sizes(*inference);
      return std::move(*inference);
    } catch (const ArithmeticOverflow&) {
      refusal = "a size of this layer leaves the 64-bit range";
    } catch (const NotAffine& e) {
      refusal = fmt::format("a size of this layer is not linear in the batch: {}", e.what());
    }
    report(source, op, {.message = std::move(refusal)});
    return std::nullopt;
  }

  // Sizes are checked here, since an overflow in a later stage could not name the layer.
  void check_sizes(const Inference& inference) {
    constexpr std::int64_t most_bytes_an_element = 16;
    for (const TensorType& output : inference.outputs) {
      (void)(element_count(output.shape) * Affine(most_bytes_an_element));
    }
    for (const ParameterSpec& parameter : inference.parameters) {
      const Affine count = element_count(parameter.shape);
      parameter_elements_ = checked_add(parameter_elements_, count.constant);
      (void)checked_multiply(parameter_elements_, most_bytes_an_element);
    }
  }

  void report(const ExpandedOperator& source, const Operator& op, const InferenceError& error) {
    Mark mark = source.entry->mark;
    if (error.input >= 0 && static_cast<std::size_t>(error.input) < source.inputs.size()) {
      mark = mark_of_input(source, static_cast<std::size_t>(error.input));
    }
    for (const auto& [name, written] : source.entry->attribute_marks) {
      if (!error.attribute.empty() && name == error.attribute) mark = written;
    }
    Diagnostic& diagnostic =
        mistakes_.error_once(mark, fmt::format("'{}': {}", op.name, error.message), error.hint);
    constexpr std::size_t most_notes = 4;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (i >= most_notes && static_cast<int>(i) != error.input) continue;
      const ModelTensor& tensor = model_.tensor(op.inputs[i]);
      diagnostic.notes.push_back(mistakes_.note(
          place_of(op.inputs[i]),
          fmt::format("{} is '{}', {}",
                      op.inputs.size() == 1 ? std::string("the input") : fmt::format("input {}", i),
                      tensor.name, to_string(tensor.type.shape))));
    }
  }

  Mark place_of(TensorId id) const {
    const OperatorId producer = model_.tensor(id).producer;
    if (!producer.valid()) return description_.inputs[id.index()].mark;
    return sources_[producer.index()]->entry->mark;
  }

  void find_ends() {
    const Scope& scope = description_.scope;
    if (expanded_.outputs.size() > 1) {
      mistakes_.error_once(scope.outputs[1].mark, "a model has one output");
      return;
    }
    const bool written = !scope.outputs.empty() && !scope.outputs[0].implied;
    if (!loss_inputs_.empty()) {
      model_.output = loss_inputs_[0];
      if (!losses_.empty()) model_.loss = losses_.size() > 1 ? sum_of_losses() : losses_.front();
    }
    if ((written || scope.loss < 0) && !expanded_.outputs.empty()) {
      model_.output = tensor_of(expanded_.outputs[0], scope.outputs[0].mark);
    }
  }

  TensorId sum_of_losses() {
    Operator sum{.name = "loss", .row = &total_loss_row(), .inputs = losses_};
    TensorType type{{}, model_.tensor(losses_.front()).type.type};
    for (const TensorId loss : losses_) {
      type.type = promoted(type.type, model_.tensor(loss).type.type);
    }
    sum.outputs.push_back(TensorId::of(model_.tensors.size()));
    sum.span = model_.operators.back().span;
    model_.tensors.push_back(
        {.name = sum.name, .type = type, .producer = OperatorId::of(model_.operators.size())});
    sources_.push_back(sources_.back());
    model_.operators.push_back(std::move(sum));
    return model_.operators.back().outputs[0];
  }

  void warn_of_unused() {
    std::vector<bool> used(model_.tensors.size());
    used[model_.output.index()] = true;
    if (model_.loss.valid()) used[model_.loss.index()] = true;
    for (const Operator& op : model_.operators) {
      for (const TensorId input : op.inputs) used[input.index()] = true;
    }
    for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
      if (used[model_.inputs[i].index()]) continue;
      mistakes_.warning_once(description_.inputs[i].mark,
                             fmt::format("input '{}' is never used", description_.inputs[i].name));
    }
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = model_.operators[i];
      const bool dead = std::none_of(op.outputs.begin(), op.outputs.end(),
                                     [&](TensorId output) { return used[output.index()]; });
      if (!dead) continue;
      mistakes_.warning_once(sources_[i]->entry->mark,
                             fmt::format("the output of '{}' is never used", op.name));
    }
  }

  const ModelDescription& description_;
  ExpandedModel expanded_;
  Mistakes& mistakes_;
  ModelGraph model_;
  std::vector<Outputs> results_;                  // of each expanded operator
  std::vector<const ExpandedOperator*> sources_;  // of each operator of the model
  std::vector<TensorId> loss_inputs_;             // of the first loss
  std::vector<TensorId> losses_;
  std::int64_t parameter_elements_ = 0;
  bool has_layer_types_ = false;      // some layer's format is its own
  std::deque<Conversion> converted_;  // before such layers
};

}  // namespace

ModelGraph build_model(const ModelDescription& description, ExpandedModel expanded,
                       Mistakes& mistakes) {
  return ModelBuilder(description, std::move(expanded), mistakes).build();
}

}  // namespace stowage
