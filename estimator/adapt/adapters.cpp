#include "estimator/adapt/adapters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "estimator/adapt/adapter_input.hpp"
#include "estimator/adapt/dora.hpp"
#include "estimator/adapt/graph_edit.hpp"
#include "estimator/adapt/named_layers.hpp"
#include "estimator/catalogue/fine_tuning_rows.hpp"
#include "estimator/model/layer_match.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

namespace {

bool takes_adapter(const Operator& op) {
  return is_linear(op) || op.row->name == "embedding" || op.row->name == "conv2d";
}

bool has_parameters(const Operator& op) { return !op.parameters.empty(); }

/// The format of adapters: peft makes them float32 beside 16-bit weights; mixed precision trains
/// everything in the base's format, with float32 copies in the optimizer.
DataType adapter_type(const ModelGraph& model, const LoraSettings& lora) {
  const DataType base = float_type(model.precision);
  if (lora.type) return *lora.type;
  const bool narrow = base == DataType::float16 || base == DataType::bfloat16;
  return narrow && !has_master_weights(model.precision) ? DataType::float32 : base;
}

class Adapting {
 public:
  Adapting(ModelGraph model, const LoraSettings& lora, std::vector<bool> targets,
           std::vector<bool> saved)
      : edit_(std::move(model)),
        lora_(lora),
        type_(adapter_type(edit_.model(), lora)),
        targets_(std::move(targets)),
        saved_(std::move(saved)) {}

  Result<ModelGraph> run() && {
    freeze();
    for (std::size_t i = 0; i < edit_.size(); ++i) {
      Operator& op = edit_.take(i);
      if (saved_[i]) train_copy(op);
      if (!targets_[i]) continue;
      if (lora_.bias == LoraBias::lora_only) train_bias(op);
      const Operator base = op;  // the list of operators grows
      own_ = settings_of_layer(lora_, base.name);
      auto output = own_.decomposed ? add_dora(edit_, own_, type_, base) : adapter_beside(base);
      if (!output) return tl::unexpected(std::move(output.error()));
      edit_.redirect(base.outputs.front(), *output);
    }
    ModelGraph model = std::move(edit_).finished();
    tell(model);
    return model;
  }

 private:
  void freeze() {
    for (Parameter& parameter : edit_.model().parameters) {
      const bool kept = lora_.bias == LoraBias::all && is_bias(parameter);
      if (!kept) parameter.trainable = false;
    }
  }

  static bool is_bias(const Parameter& parameter) {
    return !parameter.is_buffer && parameter.name.ends_with(".bias");
  }

  void train_bias(const Operator& op) {
    for (const ParameterId id : op.parameters) {
      Parameter& parameter = edit_.model().parameters[id.index()];
      if (is_bias(parameter)) parameter.trainable = true;
    }
  }

  // The original stays in memory; if no other layer shares it, nothing reads it.
  void train_copy(Operator& op) {
    for (ParameterId& id : op.parameters) {
      Parameter copy = edit_.model().parameter(id);
      if (copy.is_buffer) continue;
      copy.name += ".modules_to_save";
      copy.trainable = true;
      id = ParameterId::of(edit_.model().parameters.size());
      edit_.model().parameters.push_back(std::move(copy));
    }
  }

  using Added = Result<GraphEdit::InsertedOperator>;

  Added add(const Operator& base, std::string_view part, std::string_view row,
            Attributes attributes, std::vector<TensorId> inputs) {
    return edit_.add(fmt::format("{}.{}", base.name, part), *find_operator(row),
                     std::move(attributes), std::move(inputs), type_, base);
  }

  /// Adds the first factor, A, of the base's input, which is converted and dropped out first except
  /// for an embedding's. `held`: the converted input, or none.
  Added first_factor(const Operator& base, TensorId& held) {
    TensorId x = base.inputs.front();
    if (base.row->name == "embedding") {
      Attributes table = base.attributes;
      table.set("features", own_.rank);
      return add(base, "lora_embedding_A", "embedding", std::move(table), {x});
    }
    const auto input = adapter_input(edit_, own_, type_, base);
    if (!input) return tl::unexpected(input.error());
    x = input->x;
    held = input->held;
    if (is_linear(base)) return add(base, "lora_A", "linear", linear_attributes(own_.rank), {x});
    Attributes window = base.attributes;
    window.set("channels", own_.rank);
    window.set("bias", false);
    return add(base, "lora_A", "conv2d", std::move(window), {x});
  }

  Added second_factor(const Operator& base, TensorId x) {
    if (base.row->name == "embedding") {
      return add(base, "lora_embedding_B", "linear",
                 linear_attributes(base.attributes.integer("features")), {x});
    }
    if (is_linear(base)) {
      return add(base, "lora_B", "linear", linear_attributes(base.attributes.integer("features")),
                 {x});
    }
    Attributes window = base.attributes;
    for (const std::string_view name : {"kernel", "stride", "dilation"}) {
      window.set(name, std::vector<std::int64_t>{1, 1});
    }
    window.set("padding", std::vector<std::int64_t>{0, 0});
    window.set("bias", false);
    return add(base, "lora_B", "conv2d", std::move(window), {x});
  }

  Result<TensorId> adapter_beside(const Operator& base) {
    if (base.row->name == "conv2d" && base.attributes.integer("groups") != 1) {
      return failure(
          Diagnostic{.message = fmt::format(
                         "'{}' is a convolution of groups, which takes no adapter here", base.name),
                     .span = base.span});
    }
    auto y = result_to_adapt(edit_, type_, base);
    if (!y) return y;
    TensorId held;
    const auto a = first_factor(base, held);
    if (!a) return tl::unexpected(a.error());
    const auto b = second_factor(base, a->output);
    if (!b) return tl::unexpected(b.error());
    if (base.row == &linear_4bit_row() || base.row == &linear_8bit_row()) {
      return sum_in_format_of_result(base, *y, b->output, held);
    }
    std::vector<TensorId> inputs{base.outputs.front(), b->output};
    if (held.valid()) inputs.push_back(held);
    Attributes factor;
    factor.set("factor", scaling_of(own_));
    const auto sum = edit_.add(fmt::format("{}.lora_sum", base.name), adapter_sum_row(),
                               std::move(factor), std::move(inputs), type_, base);
    if (!sum) return tl::unexpected(sum.error());
    return sum->output;
  }

  /// Adds the adapter's result to the layer's as in peft's classes for bitsandbytes' layers
  /// (tuners/lora/bnb.py).
  Result<TensorId> sum_in_format_of_result(const Operator& base, TensorId y, TensorId branch,
                                           TensorId held) {
    const OperatorRow &scale = *find_operator("scale"), &addition = *find_operator("add");
    Attributes factor;
    factor.set("factor", scaling_of(own_));
    const auto scaled =
        add(base, "lora_scaled", "scale", completed(scale, std::move(factor)), {branch});
    if (!scaled) return tl::unexpected(scaled.error());
    auto part = convert_tensor(edit_, fmt::format("{}.lora_output", base.name), scaled->output,
                               edit_.model().tensor(y).type.type, base);
    if (!part) return part;
    const auto sum = add(base, "lora_sum", "add", completed(addition, {}), {y, *part});
    if (!sum) return tl::unexpected(sum.error());
    std::vector<TensorId> arguments{base.inputs.front()};
    if (held.valid()) arguments.push_back(held);
    const auto end = edit_.add(fmt::format("{}.lora_call", base.name), frame_end_row(), {},
                               std::move(arguments), type_, base);
    if (!end) return tl::unexpected(end.error());
    return sum->output;
  }

  void tell(ModelGraph& model) const {
    const std::int64_t trained = trainable_parameter_count(model), all = parameter_count(model);
    const auto layers = std::count(targets_.begin(), targets_.end(), true);
    model.warnings.push_back(
        {.severity = Severity::note,
         .message =
             fmt::format("adapters on {} layer{}: {} of {} parameters are trained ({:.4f} percent)",
                         layers, layers == 1 ? "" : "s", trained, all,
                         100 * static_cast<double>(trained) /
                             static_cast<double>(std::max<std::int64_t>(all, 1)))});
  }

  GraphEdit edit_;
  const LoraSettings& lora_;
  LoraSettings own_ = lora_;  // of the layer at hand
  DataType type_;
  std::vector<bool> targets_, saved_;
};

/// The layers that get adapters.
Result<std::vector<bool>> adapted_layers(const ModelGraph& model, const LoraSettings& lora) {
  std::vector<std::string> names = lora.targets;
  const auto every = std::find(names.begin(), names.end(), all_linear);
  const bool all = every != names.end();
  if (all) names.erase(every);
  auto targets = named_layers(model, names, takes_adapter, "takes an adapter");
  if (!targets || !all) return targets;
  const OperatorId last = output_layer(model);
  bool any = false;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    if (!is_linear(model.operators[i]) || OperatorId::of(i) == last) continue;
    (*targets)[i] = any = true;
  }
  if (any) return targets;
  return failure(fmt::format("'{}' has no linear layer but its last", model.name));
}

/// Errors: a pattern that fits none of the targets.
Result<void> check_patterns(const ModelGraph& model, const std::vector<bool>& targets,
                            std::string_view setting, const std::vector<LayerNumber>& numbers) {
  for (const LayerNumber& number : numbers) {
    std::set<std::string_view> parts;
    bool fits = false;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (!targets[i]) continue;
      parts.insert(last_part(model.operators[i].name));
      fits = fits || is_target(model.operators[i].name, number.pattern);
    }
    if (fits) continue;
    const std::vector<std::string_view> candidates(parts.begin(), parts.end());
    std::string hint = did_you_mean(number.pattern, candidates);
    if (hint.empty()) hint = fmt::format("targets are {}", fmt::join(candidates, ", "));
    return failure(fmt::format("'{}' of '{}' is none of the targets", number.pattern, setting),
                   std::move(hint));
  }
  return {};
}

}  // namespace

Result<ModelGraph> with_adapters(ModelGraph model, const LoraSettings& lora) {
  auto targets = adapted_layers(model, lora);
  if (!targets) return tl::unexpected(std::move(targets.error()));
  for (const auto& [setting, numbers] :
       {std::pair("rank_pattern", &lora.ranks), std::pair("alpha_pattern", &lora.alphas)}) {
    if (auto checked = check_patterns(model, *targets, setting, *numbers); !checked) {
      return tl::unexpected(std::move(checked.error()));
    }
  }
  auto saved = named_layers(model, lora.modules_to_save, has_parameters, "has parameters to save");
  if (!saved) return tl::unexpected(std::move(saved.error()));
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    if (!(*targets)[i] || !(*saved)[i]) continue;
    return failure(
        fmt::format("'{}' is a target and a module to save: one of them", model.operators[i].name));
  }
  return Adapting(std::move(model), lora, *std::move(targets), *std::move(saved)).run();
}

}  // namespace stowage
