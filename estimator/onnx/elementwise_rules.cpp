// Element-by-element operators: arithmetic, activations, comparisons, conversions.
#include <algorithm>
#include <array>
#include <cmath>

#include "estimator/onnx/translation_rules.hpp"

namespace stowage {

namespace {

using Rows = std::vector<std::pair<std::string, Attributes::Entries>>;

LayerOutput first_input(Translation& translation, const OnnxNode& node) {
  return translation.activation(translation.input(node, 0));
}

// Operators whose row takes x and, perhaps, a number that ONNX calls `attribute`.
struct PlainRow {
  std::string_view op;
  std::string_view row;
  std::string_view attribute = {};
  std::string_view setting = {};
  double usual = 0;
};

constexpr std::array plain_rows{
    PlainRow{"Relu", "relu"},
    PlainRow{"LeakyRelu", "leaky_relu", "alpha", "negative_slope", 0.01},
    PlainRow{"Elu", "elu", "alpha", "alpha", 1},
    PlainRow{"Selu", "selu"},
    PlainRow{"Celu", "celu", "alpha", "alpha", 1},
    PlainRow{"Sigmoid", "sigmoid"},
    PlainRow{"HardSwish", "hardswish"},
    PlainRow{"Tanh", "tanh"},
    PlainRow{"Softplus", "softplus"},
    PlainRow{"Mish", "mish"},
    PlainRow{"Sqrt", "sqrt"},
    PlainRow{"Exp", "exp"},
    PlainRow{"Log", "log"},
    PlainRow{"Erf", "erf"},
    PlainRow{"Abs", "abs"},
    PlainRow{"Sin", "sin"},
    PlainRow{"Cos", "cos"},
    PlainRow{"Sign", "sign"},
    PlainRow{"Floor", "floor"},
    PlainRow{"Ceil", "ceil"},
    PlainRow{"Round", "round"},
};

bool translate_plain(Translation& translation, const OnnxNode& node) {
  const auto plain = std::ranges::find(plain_rows, node.op, &PlainRow::op);
  Attributes::Entries given;
  if (!plain->attribute.empty()) {
    given.emplace_back(plain->setting, node.real(plain->attribute, plain->usual));
  }
  return translation.chain(node, first_input(translation, node),
                           {{std::string(plain->row), std::move(given)}});
}

bool translate_reciprocal(Translation& translation, const OnnxNode& node) {
  return translation.chain(node, first_input(translation, node), {{"pow", {{"exponent", -1.0}}}});
}

bool translate_negation(Translation& translation, const OnnxNode& node) {
  return translation.chain(node, first_input(translation, node), {{"scale", {{"factor", -1.0}}}});
}

bool translate_gelu(Translation& translation, const OnnxNode& node) {
  return translation.chain(node, first_input(translation, node),
                           {{"gelu", {{"approximate", node.text("approximate", "none")}}}});
}

bool translate_swish(Translation& translation, const OnnxNode& node) {
  if (node.real("alpha", 1) != 1) return false;
  return translation.chain(node, first_input(translation, node), {{"silu", {}}});
}

bool translate_softsign(Translation& translation, const OnnxNode& node) {
  const LayerOutput x = first_input(translation, node);
  const auto size = translation.layer(node, "abs", {x});
  const auto more = size ? translation.layer(node, "scale", {{*size, 0}}, {{"offset", 1.0}}) : size;
  const auto made = more ? translation.layer(node, "div", {x, {*more, 0}}) : more;
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

bool translate_hard_sigmoid(Translation& translation, const OnnxNode& node) {
  constexpr double usual_alpha = 0.2;
  constexpr double tolerance = 1e-4;
  const double alpha = node.real("alpha", usual_alpha);
  const double beta = node.real("beta", 0.5);
  if (std::abs(alpha - 1.0 / 6) < tolerance && beta == 0.5) {
    return translation.chain(node, first_input(translation, node), {{"hardsigmoid", {}}});
  }
  return translation.chain(node, first_input(translation, node),
                           {{"scale", {{"factor", alpha}, {"offset", beta}}},
                            {"clamp", {{"minimum", 0.0}, {"maximum", 1.0}}}});
}

// Before opset 13 it ran over all axes from `axis` on, flattened to one.
bool translate_softmax(Translation& translation, const OnnxNode& node) {
  const std::string row = node.op == "LogSoftmax" ? "log_softmax" : "softmax";
  return translation.chain(node, first_input(translation, node),
                           {{row, {{"axis", node.integer("axis", -1)}}}});
}

bool translate_clip(Translation& translation, const OnnxNode& node) {
  const auto bound = [&](std::string_view attribute, std::size_t input) -> std::optional<double> {
    if (const OnnxAttribute* found = node.find(attribute)) return found->real;
    return translation.input(node, input).scalar();
  };
  constexpr double six = 6;
  const auto least = bound("min", 1);
  const auto most = bound("max", 2);
  if ((translation.has(node, 1) && !least) || (translation.has(node, 2) && !most)) {
    translation.refuse("its bounds are not constants");
    return false;
  }
  if (!least && !most) {
    translation.set_output(node, translation.input(node, 0));
    return true;
  }
  if (least == 0.0 && most == six) {
    return translation.chain(node, first_input(translation, node), {{"relu6", {}}});
  }
  if (least == 0.0 && !most) {
    return translation.chain(node, first_input(translation, node), {{"relu", {}}});
  }
  Attributes::Entries given;
  if (least) given.emplace_back("minimum", *least);
  if (most) given.emplace_back("maximum", *most);
  return translation.chain(node, first_input(translation, node), {{"clamp", std::move(given)}});
}

bool translate_slopes(Translation& translation, const OnnxNode& node) {
  const OnnxValue& slopes = translation.input(node, 1);
  if (!slopes.is_parameter()) return false;
  const auto made = translation.layer_with_weights(
      node, "prelu", {first_input(translation, node)},
      {{"parameters", element_count(slopes.type.shape).constant}}, {{"weight", &slopes}});
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

bool translate_dropout(Translation& translation, const OnnxNode& node) {
  const double p = translation.input(node, 1).scalar().value_or(node.real("ratio", 0.5));
  if (p <= 0) {
    translation.set_output(node, translation.input(node, 0));
    return true;
  }
  return translation.chain(node, first_input(translation, node), {{"dropout", {{"p", p}}}});
}

bool translate_cast(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  std::optional<DataType> to = data_type_of(static_cast<int>(node.integer("to", 0)));
  if (node.op == "CastLike") to = translation.input(node, 1).type.type;
  if (!to) {
    translation.refuse("there is no such number format in the catalogue");
    return false;
  }
  if (*to == x.type.type) {  // among real numbers the precision says the format
    translation.set_output(node, x);
    return true;
  }
  return translation.chain(node, first_input(translation, node),
                           {{"cast", {{"dtype", std::string(to_string(*to))}}}});
}

bool translate_identity(Translation& translation, const OnnxNode& node) {
  translation.set_output(node, translation.input(node, 0));
  return true;
}

// With a number, which PyTorch passes to its kernel.
std::optional<Rows> rows_with_number(std::string_view op, double number, bool is_first) {
  if (op == "Add") return Rows{{"scale", {{"offset", number}}}};
  if (op == "Mul") return Rows{{"scale", {{"factor", number}}}};
  if (op == "Sub") {
    if (is_first) return Rows{{"scale", {{"factor", -1.0}, {"offset", number}}}};
    return Rows{{"scale", {{"offset", -number}}}};
  }
  if (op == "Div" && !is_first && number != 0) return Rows{{"scale", {{"factor", 1 / number}}}};
  if (op == "Div" && is_first) {
    Rows rows{{"pow", {{"exponent", -1.0}}}};
    if (number != 1) rows.push_back({"scale", {{"factor", number}}});
    return rows;
  }
  if (op == "Pow" && !is_first) {
    if (number == 0.5) return Rows{{"sqrt", {}}};
    return Rows{{"pow", {{"exponent", number}}}};
  }
  if (op == "Max") return Rows{{"clamp", {{"minimum", number}}}};
  if (op == "Min") return Rows{{"clamp", {{"maximum", number}}}};
  return std::nullopt;
}

std::string_view row_of_pair(std::string_view op) {
  if (op == "Add" || op == "Sum") return "add";
  if (op == "Sub") return "sub";
  if (op == "Mul") return "mul";
  if (op == "Div") return "div";
  if (op == "Max") return "maximum";
  if (op == "Min") return "minimum";
  return "";
}

bool translate_pair(Translation& translation, const OnnxNode& node) {
  const OnnxValue& a = translation.input(node, 0);
  const OnnxValue& b = translation.input(node, 1);
  const auto number = a.is_activation() ? b.scalar() : a.scalar();
  const bool is_real = is_floating_point(a.type.type);
  if (number && is_real && !(a.is_parameter() && b.is_parameter())) {
    const auto rows = rows_with_number(node.op, *number, !a.is_activation());
    if (rows && translation.chain(node, (a.is_activation() ? a : b).layer, *rows)) return true;
  }
  const std::string_view row = row_of_pair(node.op);
  if (row.empty()) {
    translation.refuse("its exponent is not a constant");
    return false;
  }
  if (row == "mul" && is_real && a.is_activation() != b.is_activation()) {
    const OnnxValue& weight = a.is_activation() ? b : a;
    if (weight.is_parameter() && !weight.turned) {
      const auto scaled = translation.layer_with_weights(
          node, "scale", {(a.is_activation() ? a : b).layer},
          {{"learned", true}, {"shape", weight.type.shape}}, {{"weight", &weight}});
      if (scaled) {
        const ImportedLayer& made = translation.layers().at(*scaled);
        const std::string own(made.parameters.empty() ? "" : made.parameters[0].name);
        for (NamedText& name : translation.layers().at(*scaled).parameter_names) name.first = own;
        translation.set_output(node, *scaled);
        return true;
      }
    }
  }
  LayerOutput sum = translation.activation(a);
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const auto made =
        translation.layer(node, row, {sum, translation.activation(translation.input(node, i))});
    if (!made) return false;
    sum = {*made, 0};
  }
  if (!sum.valid()) return false;
  translation.set_output(node, sum.layer, 0, sum.output);
  return true;
}

bool translate_comparison(Translation& translation, const OnnxNode& node) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> words{
      {{"Equal", "eq"},
       {"Less", "lt"},
       {"LessOrEqual", "le"},
       {"Greater", "gt"},
       {"GreaterOrEqual", "ge"},
       {"And", "and"},
       {"Or", "or"},
       {"Xor", "xor"}}};
  const auto word =
      std::ranges::find_if(words, [&](const auto& one) { return one.first == node.op; });
  const bool is_logical = node.op == "And" || node.op == "Or" || node.op == "Xor";
  const OnnxValue& a = translation.input(node, 0);
  const OnnxValue& b = translation.input(node, 1);
  Attributes::Entries given{{"operation", std::string(word->second)}};
  std::vector<LayerOutput> from{translation.activation(a)};
  if (const auto number = b.scalar(); number && !is_logical) {
    given.emplace_back("value", *number);
  } else {
    from.push_back(translation.activation(b));
  }
  const auto made = translation.layer(node, is_logical ? "logical" : "compare", std::move(from),
                                      std::move(given));
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

bool translate_not(Translation& translation, const OnnxNode& node) {
  return translation.chain(node, first_input(translation, node),
                           {{"logical", {{"operation", std::string("not")}}}});
}

// where(isnan(x), 0, x): exporters write it after the softmax of attention, for rows that are
// masked completely. PyTorch's kernels do this internally.
bool guards_nan(const Translation& translation, const OnnxNode& node) {
  const OnnxValue& condition = translation.input(node, 0);
  const OnnxValue& otherwise = translation.input(node, 2);
  if (!condition.is_activation() || !otherwise.is_activation()) return false;
  const ImportedLayer& test = translation.layers().at(condition.layer.layer);
  return test.foreign == "IsNaN" && test.from.size() == 1 && test.from[0] == otherwise.layer &&
         !translation.input(node, 1).is_activation();
}

bool translate_where(Translation& translation, const OnnxNode& node) {
  if (guards_nan(translation, node)) {
    translation.set_output(node, translation.input(node, 2));
    return true;
  }
  std::vector<LayerOutput> from;
  for (const OnnxValue* value : translation.inputs(node)) {
    from.push_back(translation.activation(*value));
  }
  const auto made = translation.layer(node, "where", std::move(from));
  if (made) translation.set_output(node, *made);
  return made.has_value();
}

bool translate_constant(Translation& translation, const OnnxNode& node) {
  const OnnxTensor tensor = tensor_of_constant(node);
  const auto type = data_type_of(tensor.type);
  if (!type) {
    translation.refuse("there is no such number format in the catalogue");
    return false;
  }
  OnnxValue value = constant_value({Shape(tensor.dims.begin(), tensor.dims.end()), *type});
  if (tensor.has_numbers) {
    value.integers.assign(tensor.integers.begin(), tensor.integers.end());
    value.reals = tensor.reals;
  }
  translation.set_output(node, std::move(value));
  return true;
}

}  // namespace

std::span<const OnnxRule> onnx_elementwise_rules() {
  static const std::vector<OnnxRule> rules = [] {
    std::vector<OnnxRule> all{
        {"Constant", translate_constant},
        {"Identity", translate_identity},
        {"Cast", translate_cast},
        {"CastLike", translate_cast},
        {"Reciprocal", translate_reciprocal},
        {"Neg", translate_negation},
        {"Gelu", translate_gelu},
        {"Swish", translate_swish},
        {"Softsign", translate_softsign},
        {"HardSigmoid", translate_hard_sigmoid},
        {"Softmax", translate_softmax},
        {"LogSoftmax", translate_softmax},
        {"Clip", translate_clip},
        {"PRelu", translate_slopes},
        {"Dropout", translate_dropout},
        {"Not", translate_not},
        {"Where", translate_where},
    };
    for (const PlainRow& plain : plain_rows) all.push_back({plain.op, translate_plain});
    for (const auto* op : {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum"}) {
      all.push_back({op, translate_pair});
    }
    for (const auto* op :
         {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor"}) {
      all.push_back({op, translate_comparison});
    }
    return all;
  }();
  return rules;
}

}  // namespace stowage
