#include "estimator/adapt/dora.hpp"

#include <fmt/format.h>

#include <utility>

#include "estimator/adapt/adapter_input.hpp"
#include "estimator/adapt/named_layers.hpp"
#include "estimator/catalogue/fine_tuning_rows.hpp"

namespace stowage {

namespace {

/// The first mistake ends it, since later operators read earlier ones.
class Decomposition {
 public:
  Decomposition(GraphEdit& edit, const LoraSettings& lora, DataType type, const Operator& base)
      : edit_(edit), lora_(lora), type_(type), base_(base) {}

  Result<TensorId> run() {
    const auto result_before = result_to_adapt(edit_, type_, base_);
    if (!result_before) return tl::unexpected(result_before.error());
    y_ = *result_before;
    const auto input = adapter_input(edit_, lora_, type_, base_);
    if (!input) return tl::unexpected(input.error());
    make_parameters();
    const DataType x_type = edit_.model().tensor(input->x).type.type;
    const TensorId update = cast("dora_update", update_of_weight(), x_type);
    const TensorId weight = cast("dora_weight", weight_of_base(), x_type);
    Attributes factor;
    factor.set("factor", scaling_of(lora_));
    const TensorId norm = add("dora_norm", weight_norm_row(), std::move(factor), {weight, update});
    const TensorId scale = scale_of(norm);
    const TensorId branch =
        product("lora_B", product("lora_A", input->x, a_, lora_.rank), b_, out());
    const TensorId without_bias = result_of_base(input->x, weight);
    const TensorId difference = weighted(scale, without_bias, branch);
    end_frame("dora_frame", {update, weight, norm, scale, branch, without_bias});
    const TensorId sum = add("dora_sum", "add", {}, {y_, difference});
    end_frame("dora_variant", {input->x});
    const TensorId result = cast("dora_result", sum, edit_.model().tensor(y_).type.type);
    std::vector<TensorId> arguments{base_.inputs.front()};
    if (input->held.valid()) arguments.push_back(input->held);
    end_frame("dora_call", std::move(arguments));
    if (!mistakes_.empty()) return tl::unexpected(std::move(mistakes_));
    return result;
  }

 private:
  std::string named(std::string_view part) const { return fmt::format("{}.{}", base_.name, part); }
  std::int64_t out() const { return base_.attributes.integer("features"); }
  std::int64_t in() const {
    return edit_.model().tensor(base_.inputs.front()).type.shape.back().constant;
  }
  bool is_quantised() const { return base_.row != find_operator("linear"); }

  TensorId taken(Result<GraphEdit::InsertedOperator> made) {
    if (made) return made->output;
    if (mistakes_.empty()) mistakes_ = std::move(made.error());
    return base_.outputs.front();
  }

  TensorId add(std::string_view part, const OperatorRow& row, Attributes attributes,
               std::vector<TensorId> inputs) {
    if (!mistakes_.empty()) return base_.outputs.front();
    return taken(
        edit_.add(named(part), row, std::move(attributes), std::move(inputs), type_, base_));
  }
  TensorId add(std::string_view part, std::string_view row, Attributes attributes,
               std::vector<TensorId> inputs) {
    const OperatorRow& found = *find_operator(row);
    return add(part, found, completed(found, std::move(attributes)), std::move(inputs));
  }
  TensorId read(std::string_view part, const OperatorRow& row, Attributes attributes,
                std::vector<TensorId> inputs, std::vector<ParameterId> parameters, DataType type) {
    if (!mistakes_.empty()) return base_.outputs.front();
    return taken(edit_.add_reader(named(part), row, std::move(attributes), std::move(inputs),
                                  std::move(parameters), type, base_));
  }
  TensorId read_parameter(std::string_view part, ParameterId id) {
    const TensorType type = edit_.model().parameter(id).type;
    Attributes attributes;
    attributes.set("shape", type.shape);
    return read(part, *find_operator("parameter"), std::move(attributes), {}, {id}, type.type);
  }
  TensorId cast(std::string_view part, TensorId x, DataType type) {
    if (!mistakes_.empty()) return x;
    auto made = convert_tensor(edit_, named(part), x, type, base_);
    if (made) return *made;
    mistakes_ = std::move(made.error());
    return x;
  }
  TensorId product(std::string_view part, TensorId x, ParameterId weight, std::int64_t features) {
    return read(part, *find_operator("linear"), linear_attributes(features), {x}, {weight}, type_);
  }
  void end_frame(std::string_view part, std::vector<TensorId> variables) {
    add(part, frame_end_row(), {}, std::move(variables));
  }

  void make_parameters() {
    const auto made = [&](std::string_view part, Shape shape) {
      Inference inference;
      inference.parameters.push_back({.name = "weight", .shape = std::move(shape)});
      return add_parameters(edit_.model(), named(part), inference, type_, true).front();
    };
    a_ = made("lora_A", {lora_.rank, in()});
    b_ = made("lora_B", {out(), lora_.rank});
    magnitude_ = made("lora_magnitude_vector", {out()});
  }

  /// get_lora_weight: [out, in].
  TensorId update_of_weight() {
    Attributes size;
    size.set("size", in());
    const TensorId eye = add("dora_identity", identity_matrix_row(), std::move(size), {});
    const TensorId columns =
        product("dora_update_B", product("dora_update_A", eye, a_, lora_.rank), b_, out());
    end_frame("dora_update_frame", {eye});
    Attributes axes;
    axes.set("axes", std::vector<std::int64_t>{1, 0});
    return add("dora_update_T", "transpose", std::move(axes), {columns});
  }

  /// dequantize_module_weight.
  TensorId weight_of_base() {
    if (!is_quantised()) return read_parameter("dora_base_weight", base_.parameters.front());
    const bool four = base_.row == &linear_4bit_row();
    Attributes attributes;
    attributes.set("features", out());
    attributes.set("bias", base_.attributes.boolean("bias"));
    attributes.set("in", in());
    attributes.set("bits", std::int64_t{four ? 4 : 8});
    attributes.set("double_quant", four && base_.attributes.boolean("double_quant"));
    const DataType type = four ? float_type(edit_.model().precision) : DataType::float32;
    return read("dora_base_weight", dequantised_weight_row(), std::move(attributes), {},
                base_.parameters, type);
  }

  TensorId scale_of(TensorId norm) {
    const TensorId magnitude = read_parameter("dora_magnitude", magnitude_);
    const TensorId ratio = add("dora_ratio", "div", {}, {magnitude, norm});
    Attributes shape;
    shape.set("shape", Shape{1, out()});
    return add("dora_scale", "reshape", std::move(shape), {ratio});
  }

  TensorId result_of_base(TensorId x, TensorId weight) {
    const bool has_bias = base_.attributes.boolean("bias");
    std::vector<TensorId> bias;
    if (has_bias) bias = {read_parameter("dora_bias", base_.parameters[1])};
    if (lora_.dropout > 0) {
      std::vector<TensorId> inputs{x, weight, y_};
      inputs.insert(inputs.end(), bias.begin(), bias.end());
      return add("dora_base", base_product_row(), {}, std::move(inputs));
    }
    return has_bias ? add("dora_base", "sub", {}, {y_, bias.front()}) : y_;
  }

  /// (scale - 1) * base + scale * branch * scaling
  TensorId weighted(TensorId scale, TensorId without_bias, TensorId branch) {
    const auto number = [&](std::string_view part, std::string_view name, double value,
                            TensorId x) {
      Attributes attributes;
      attributes.set(name, value);
      return add(part, "scale", std::move(attributes), {x});
    };
    const TensorId change = number("dora_change", "offset", -1.0, scale);
    const TensorId of_base = add("dora_of_base", "mul", {}, {change, without_bias});
    const TensorId of_branch = add("dora_of_branch", "mul", {}, {scale, branch});
    const TensorId scaled = number("dora_scaled", "factor", scaling_of(lora_), of_branch);
    return add("dora_difference", "add", {}, {of_base, scaled});
  }

  GraphEdit& edit_;
  const LoraSettings& lora_;
  DataType type_;
  const Operator& base_;
  TensorId y_;
  ParameterId a_, b_, magnitude_;
  Diagnostics mistakes_;
};

}  // namespace

Result<TensorId> add_dora(GraphEdit& edit, const LoraSettings& lora, DataType type,
                          const Operator& base) {
  const auto refused = [&](std::string_view what) {
    return failure(Diagnostic{
        .message = fmt::format("'{}' is {}, beside which DoRA is not predicted", base.name, what),
        .span = base.span,
        .hint = "DoRA is for linear layers of plain, nf4, fp4 or int8 weights"});
  };
  if (base.row->name == "embedding") return refused("an embedding");
  if (!is_linear(base)) return refused("a convolution");
  if (base.row == &linear_float8_row()) return refused("a linear layer of float8 weights");
  if (base.row == &linear_packed_row()) return refused("a linear layer of packed weights");
  return Decomposition(edit, lora, type, base).run();
}

}  // namespace stowage
