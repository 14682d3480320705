#include "estimator/onnx/translation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "estimator/base/name_match.hpp"
#include "estimator/onnx/checked_axes.hpp"
#include "estimator/onnx/translation_rules.hpp"

namespace stowage {

namespace {

const OnnxValue absent_value;

// Layers are named after their nodes: "/layer1/relu/Relu", "node_relu_3".
std::string layer_name_of(const OnnxNode& node) {
  std::string_view name = node.name;
  if (name.starts_with("node_")) name.remove_prefix(std::string_view("node_").size());
  while (name.starts_with('/')) name.remove_prefix(1);
  if (!name.empty()) return std::string(name);
  return lower_case(node.op);
}

// Masks hold -inf, which descriptions cannot write; what softmax makes of the lowest number is 0
// too.
double finite(double number) {
  constexpr double largest = std::numeric_limits<float>::max();
  return std::isnan(number) ? 0 : std::clamp(number, -largest, largest);
}

}  // namespace

std::string owner_of_parameter(std::string_view name) {
  const std::size_t end = name.find_last_of("./");
  return std::string(end == std::string_view::npos || end == 0 ? name : name.substr(0, end));
}

Translation::Translation(const OnnxGraph& graph, const std::map<std::string, Affine>& symbols,
                         std::string file_name)
    : graph_(graph), symbols_(symbols), file_name_(std::move(file_name)) {
  for (const auto* infos : {&graph.values, &graph.outputs}) {
    for (const OnnxValueInfo& info : *infos) stated_.emplace(info.name, &info);
  }
}

const OnnxValue* Translation::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

const OnnxValue& Translation::input(const OnnxNode& node, std::size_t number) const {
  if (number >= node.inputs.size() || node.inputs[number].empty()) return absent_value;
  const OnnxValue* found = find(node.inputs[number]);
  return found != nullptr ? *found : absent_value;
}

std::vector<const OnnxValue*> Translation::inputs(const OnnxNode& node) const {
  std::vector<const OnnxValue*> all;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) all.push_back(&input(node, i));
  return all;
}

std::string Translation::place_of(const OnnxNode& node) const {
  if (!node.name.empty()) return fmt::format("node '{}' ({})", node.name, node.op);
  return fmt::format("the {} at byte {}", node.op, node.offset);
}

LayerOutput Translation::activation(const OnnxValue& value) {
  if (value.is_activation()) return value.layer;
  if (value.is_parameter()) {
    const auto known = parameter_layers_.find({value.tensor, value.turned});
    if (known != parameter_layers_.end() &&
        layers_.type({known->second, 0}).shape == value.type.shape) {
      return {known->second, 0};
    }
    const OnnxTensor& tensor = graph_.initializers[static_cast<std::size_t>(value.tensor)];
    const Shape own(tensor.dims.begin(), tensor.dims.end());
    Shape straight = value.type.shape;
    if (value.turned) std::reverse(straight.begin(), straight.end());
    auto made = layers_.add("parameter", tensor.name, {}, {{"shape", own}});
    if (!made) return {};
    this->set_parameter(*made, std::string(layers_.at(*made).parameters[0].name), value);
    if (own != straight) {
      made = layers_.add("reshape", tensor.name + "_view", {{*made, 0}}, {{"shape", straight}});
    }
    if (made && value.turned) {
      made = layers_.add("transpose", tensor.name + "_turned", {{*made, 0}},
                         {{"axes", std::vector<std::int64_t>{1, 0}}});
    }
    if (!made) return {};
    parameter_layers_[{value.tensor, value.turned}] = *made;
    return {*made, 0};
  }
  if (value.is_absent()) return {};
  if (const auto known = constants_.find(&value); known != constants_.end()) {
    return {known->second, 0};
  }
  Attributes::Entries given{{"shape", value.type.shape}};
  if (value.type.type != DataType::float32) {
    given.emplace_back("dtype", std::string(to_string(value.type.type)));
  }
  if (const auto number = value.scalar()) given.emplace_back("value", finite(*number));
  const auto made = layers_.add("constant", "constant", {}, std::move(given));
  if (!made) return {};
  constants_[&value] = *made;
  if (value.is_causal_mask) causal_masks.insert(*made);
  return {*made, 0};
}

void Translation::set_parameter(int layer, const std::string& parameter, const OnnxValue& weight) {
  if (!weight.is_parameter()) return;
  layers_.at(layer).parameter_names.emplace_back(
      parameter, graph_.initializers[static_cast<std::size_t>(weight.tensor)].name);
}

std::optional<int> Translation::layer(const OnnxNode& node, std::string_view row,
                                      std::vector<LayerOutput> from, Attributes::Entries given) {
  if (std::ranges::any_of(from, [](const LayerOutput& one) { return !one.valid(); })) {
    refuse("an input of it is missing");
    return std::nullopt;
  }
  const auto made = layers_.add(row, layer_name_of(node), std::move(from), std::move(given));
  if (made) return *made;
  refuse(made.error());
  return std::nullopt;
}

std::optional<int> Translation::layer_with_weights(
    const OnnxNode& node, std::string_view row, std::vector<LayerOutput> from,
    Attributes::Entries given,
    const std::vector<std::pair<std::string, const OnnxValue*>>& weights) {
  OnnxNode named = node;
  if (weights[0].second->is_parameter()) {
    named.name = owner_of_parameter(
        graph_.initializers[static_cast<std::size_t>(weights[0].second->tensor)].name);
  }
  const auto made = layer(named, row, std::move(from), std::move(given));
  if (!made) return made;
  for (const auto& [parameter, weight] : weights) set_parameter(*made, parameter, *weight);
  return made;
}

void Translation::set_output(const OnnxNode& node, OnnxValue value, std::size_t output) {
  if (!folding_budget_.take(value.integers.size() + value.reals.size())) {
    value.integers.clear();
    value.reals.clear();
  }
  set_folded(node, std::move(value), output);
}

void Translation::set_folded(const OnnxNode& node, OnnxValue value, std::size_t output) {
  if (output < node.outputs.size() && !node.outputs[output].empty()) {
    set_value(node.outputs[output], std::move(value));
  }
}

void Translation::set_output(const OnnxNode& node, int layer, std::size_t output,
                             int layer_output) {
  const LayerOutput made{layer, layer_output};
  set_output(
      node,
      OnnxValue{.kind = OnnxValue::Kind::activation, .type = layers_.type(made), .layer = made},
      output);
}

bool Translation::chain(const OnnxNode& node, LayerOutput from,
                        const std::vector<std::pair<std::string, Attributes::Entries>>& rows) {
  for (const auto& [row, given] : rows) {
    const auto made = layer(node, row, {from}, given);
    if (!made) return false;
    from = {*made, 0};
  }
  set_output(node, from.layer, 0, from.output);
  return true;
}

std::optional<TensorType> Translation::stated_type(const std::string& name) const {
  const auto found = stated_.find(name);
  if (found == stated_.end() || !found->second->has_shape ||
      found->second->shape.size() > most_onnx_axes) {
    return std::nullopt;
  }
  const auto type = data_type_of(found->second->type);
  if (!type) return std::nullopt;
  Shape shape;
  for (const OnnxDimension& dimension : found->second->shape) {
    if (dimension.value >= 0) {
      shape.push_back(Affine(dimension.value));
      continue;
    }
    const auto symbol = symbols_.find(dimension.symbol);
    if (symbol == symbols_.end()) return std::nullopt;
    shape.push_back(symbol->second);
  }
  if (fixed_batch > 0 && !shape.empty() && shape[0] == Affine(fixed_batch)) shape[0] = batch_symbol;
  return TensorType{shape, *type};
}

// A view of an initialiser is still that initialiser, so that a weight that an exporter transposes
// or casts is still the layer's parameter.
bool Translation::folded(const OnnxNode& node) {
  const auto all = inputs(node);
  // CastLike uses only the format of its second input.
  const auto read = std::span(all).first(node.op == "CastLike" && !all.empty() ? 1 : all.size());
  const bool has_activation =
      std::ranges::any_of(read, [](const OnnxValue* one) { return one->is_activation(); });
  if (node.op == "Shape" && !all.empty() && !all[0]->is_absent()) {
    const Shape& shape = all[0]->type.shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    const auto place = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    const std::int64_t first = place(node.integer("start", 0));
    const std::int64_t last = std::max(place(node.integer("end", rank)), first);
    set_output(node, constant_value({Shape{Affine(last - first)}, DataType::int64},
                                    {shape.begin() + first, shape.begin() + last}));
    return true;
  }
  if (node.op == "Size" && !all.empty() && !all[0]->is_absent()) {
    set_output(node,
               constant_value({Shape{}, DataType::int64}, {element_count(all[0]->type.shape)}));
    return true;
  }
  if (has_activation && node.op != "ConstantOfShape") return false;
  const bool is_parameter = !all.empty() && all[0]->is_parameter();
  if (is_parameter) {
    const auto type = infer_type(node, all);
    if (!type) return false;
    OnnxValue view = *all[0];
    const auto order = permutation_of(node, view.rank());
    const bool keeps_order = node.op == "Transpose" && order && std::ranges::is_sorted(*order);
    const bool is_view = node.op == "Identity" || node.op == "Cast" || node.op == "CastLike" ||
                         node.op == "Reshape" || node.op == "Unsqueeze" || node.op == "Squeeze" ||
                         (node.op == "Expand" && type->shape == view.type.shape) || keeps_order;
    const bool keeps_type = type->type == view.type.type;
    const bool turns = node.op == "Transpose" && view.rank() == 2 && !keeps_order;
    if (is_view && keeps_type && !view.turned) {
      view.type = *type;
      set_output(node, std::move(view));
      return true;
    }
    if (turns) {
      view.type = *type;
      view.turned = !view.turned;
      set_output(node, std::move(view));
      return true;
    }
  }
  // A value computed from parameters has a gradient, so it becomes a layer unless it is a single
  // number.
  const bool reads_weights = std::ranges::any_of(
      all, [](const OnnxValue* one) { return one->is_parameter() && one->reals.size() != 1; });
  if (reads_weights) return false;
  std::vector<OnnxValue> outputs = fold(node, all, folding_budget_);
  for (std::size_t i = 0; i < outputs.size(); ++i) set_folded(node, std::move(outputs[i]), i);
  return !outputs.empty();
}

void Translation::make_foreign(const OnnxNode& node) {
  const auto all = inputs(node);
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    std::optional<TensorType> type;
    try {
      if (i == 0) type = infer_type(node, all);
    } catch (const NotAffine&) {
      type.reset();
    }
    if (!type) type = stated_type(node.outputs[i]);
    if (!type) {
      if (i > 0) break;
      const std::string why = reason_.empty() ? "the file does not say its output's size" : reason_;
      mistakes_.push_back(
          {.message = fmt::format("{}: {}", place_of(node), why),
           .span = {.source = std::make_shared<const SourceText>(SourceText{file_name_, ""})}});
      return;
    }
    types.push_back(*std::move(type));
  }
  std::vector<LayerOutput> from;
  for (const OnnxValue* value : all) {
    if (value->is_activation()) from.push_back(value->layer);
    if (value->is_parameter()) from.push_back(activation(*value));
  }
  std::erase_if(from, [](const LayerOutput& one) { return !one.valid(); });
  const int made = layers_.add_foreign(node.op, layer_name_of(node), std::move(from), types);
  reasons[made] = reason_;
  for (std::size_t i = 0; i < types.size(); ++i) set_output(node, made, i, static_cast<int>(i));
}

void Translation::translate(const OnnxNode& node) {
  reason_.clear();
  const OnnxRule* rule =
      node.domain.empty() || node.domain == "com.microsoft" || node.domain == "ai.onnx.contrib"
          ? find_onnx_rule(node.op)
          : nullptr;
  try {
    if (folded(node)) return;
    if (rule != nullptr && rule->translate(*this, node)) return;
    make_foreign(node);
  } catch (const NotAffine& e) {
    mistakes_.push_back({.message = fmt::format("{}: a size is not linear in the batch: {}",
                                                place_of(node), e.what())});
  } catch (const ArithmeticOverflow&) {
    mistakes_.push_back(
        {.message = fmt::format("{}: a size leaves the 64-bit range", place_of(node))});
  }
}

// A node makes few layers, but may make thousands of outputs.
bool Translation::has_too_many_outputs(const OnnxNode& node) {
  for (; counted_layers_ < layers_.count(); ++counted_layers_) {
    made_outputs_ += layers_.at(counted_layers_).outputs.size();
  }
  if (made_outputs_ <= most_onnx_outputs) return false;
  mistakes_.push_back(
      {.message = fmt::format("{}: the graph's layers have more than {} outputs up to here",
                              place_of(node), most_onnx_outputs)});
  return true;
}

void Translation::run() {
  constexpr std::size_t most_mistakes = 20;
  for (const OnnxNode& node : graph_.nodes) {
    // Readers of a failed output are skipped, since they would only fail again.
    const auto is_missing = [&](const std::string& name) {
      return !name.empty() && find(name) == nullptr;
    };
    const auto missing = std::ranges::find_if(node.inputs, is_missing);
    if (missing != node.inputs.end()) {
      if (mistakes_.empty()) {
        mistakes_.push_back({.message = fmt::format("{} reads '{}', which nothing makes before it",
                                                    place_of(node), *missing)});
      }
      continue;
    }
    translate(node);
    if (mistakes_.size() >= most_mistakes || has_too_many_outputs(node)) return;
  }
}

}  // namespace stowage
