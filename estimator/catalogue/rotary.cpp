// Rotary position embedding: rotary_table makes the cosines and sines, rotary rotates a query or
// key by them.
//
// PyTorch's lowerings are transformers' (models/llama/modeling_llama.py, 5.23): the table is
// computed in float32 in every forward pass from a buffer of frequencies (the module keeps two
// copies of it), and apply_rotary_pos_emb is q cos + rotate_half(q) sin in single operations. They
// keep the tables only, but pass through five tensors of the query's size. gpt-oss' tables have
// each angle once (models/gpt_oss/modeling_gpt_oss.py, 5.24, _apply_rotary_emb): the two halves of
// a head are turned by themselves, and joined.
#include <fmt/format.h>

#include <string>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_table(const Attributes& attributes,
                                                    std::span<const TensorType>) {
  const std::int64_t features = attributes.integer("features");
  if (features % 2 != 0) {
    return refuse(fmt::format("{} features do not make pairs", features), "features");
  }
  const bool repeats = attributes.boolean("repeated");
  if (!repeats && attributes.text("kept") == "tables") {
    return refuse("tables that are kept have each angle twice", "repeated");
  }
  const Shape table{attributes.integer("length"), repeats ? features : features / 2};
  Inference result;
  result.outputs.assign(2, {table, DataType::float32});  // the model's format: makes_floats
  if (attributes.text("kept") == "frequencies") {
    for (const std::string_view name : {"inv_freq", "original_inv_freq"}) {
      result.parameters.push_back({.name = name, .shape = {features / 2}, .is_buffer = true});
    }
  } else {
    for (const std::string_view name : {"cos", "sin"}) {
      result.parameters.push_back({.name = name, .shape = table, .is_buffer = true});
    }
  }
  result.flops = element_count(table) * Affine(3);
  return result;
}

void give_buffers(OperatorLowering& lowering) {
  lowering.set_output(0, lowering.parameter(0));
  lowering.set_output(1, lowering.parameter(1));
}

void forward_table_pytorch(OperatorLowering& lowering) {
  if (lowering.attributes().text("kept") == "tables") return give_buffers(lowering);
  const Shape table = lowering.output_type().shape;
  const bool repeats = lowering.attributes().boolean("repeated");
  const Shape half{table[0], lowering.attributes().integer("features") / 2};
  constexpr StorageClass activation = StorageClass::activation;
  const auto made = [&](std::string_view name, const Shape& shape, DataType type) {
    return lowering.new_tensor(name, shape, type, activation);
  };
  const TensorView positions = made("positions", {table[0]}, DataType::int64);
  lowering.emit(Kernel::iota, "positions", {}, {positions});
  const TensorView numbers = made("positions.float", {table[0]}, DataType::float32);
  lowering.emit(Kernel::cast, "positions.float", {positions}, {numbers});
  const TensorView angles = made("freqs", half, DataType::float32);
  lowering.emit(Kernel::multiply, "freqs", {numbers, lowering.parameter(0)}, {angles});
  const TensorView both = repeats ? made("emb", table, DataType::float32) : angles;
  if (repeats) lowering.emit(Kernel::concatenate, "emb", {angles, angles}, {both});
  std::vector<StorageId> variables{positions.storage, angles.storage, both.storage};
  std::vector<TensorView> tables;
  for (const std::string& name : {std::string("cos"), std::string("sin")}) {
    const TensorView plain = made(name + ".plain", table, DataType::float32);
    lowering.emit(Kernel::unary_forward, name + ".plain", {both}, {plain});
    tables.push_back(made(name + ".scaled", table, DataType::float32));
    lowering.emit(Kernel::scale, name, {plain}, {tables.back()}, {.holds = variables});
  }
  for (int i = 0; i < 2; ++i) {
    const TensorView& table_made = tables[static_cast<std::size_t>(i)];
    if (lowering.output_type(i).type == table_made.type) {
      lowering.set_output(i, table_made);
      continue;
    }
    lowering.emit(Kernel::cast, fmt::format("cast.{}", i), {table_made}, {lowering.new_output(i)},
                  {.holds = {tables[0].storage, tables[1].storage, both.storage}});
  }
}

void forward_table_stowage(OperatorLowering& lowering) {
  if (lowering.attributes().text("kept") == "tables") return give_buffers(lowering);
  if (lowering.attributes().boolean("repeated")) {
    lowering.emit(Kernel::rotary_table, "forward", {},
                  {lowering.new_output(0), lowering.new_output(1)});
    return;
  }
  // The kernel makes each angle twice; the first of them is taken.
  std::vector<TensorView> whole;
  for (int i = 0; i < 2; ++i) {
    Shape table = lowering.output_type(i).shape;
    table[1] = lowering.attributes().integer("features");
    whole.push_back(lowering.new_tensor(i == 0 ? "cos.whole" : "sin.whole", table,
                                        lowering.output_type(i).type, StorageClass::activation));
  }
  lowering.emit(Kernel::rotary_table, "whole", {}, {whole[0], whole[1]});
  Attributes first;
  first.set("axis", std::int64_t{1});
  first.set("start", std::int64_t{0});
  for (int i = 0; i < 2; ++i) {
    lowering.emit(Kernel::slice, i == 0 ? "cos" : "sin", {whole[static_cast<std::size_t>(i)]},
                  {lowering.new_output(i)}, {.attributes = first});
  }
}

/// The number of tensors to rotate, one or two; the tables are the inputs after them.
int rotated_count(std::size_t inputs) { return static_cast<int>(inputs) - 2; }

/// Whether the tables have each angle once, for both halves of a head.
bool has_half_tables(const Shape& x, const Shape& table) {
  return !table.empty() && table.back() != x.back() && table.back() == quotient(x.back(), 2);
}

tl::expected<Inference, InferenceError> infer_rotary(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  Inference result;
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    if (auto error = want_floating(inputs[static_cast<std::size_t>(i)], i)) {
      return tl::unexpected(*error);
    }
  }
  const std::size_t tables = inputs.size() - 2;
  for (int i = 0; i < rotated_count(inputs.size()); ++i) {
    const TensorType& x = inputs[static_cast<std::size_t>(i)];
    if (x.shape.size() < 2) {
      return refuse(fmt::format("wants [..., positions, features], but its input has shape {}",
                                to_string(x.shape)),
                    {}, i);
    }
    if (auto error = want_constant(x.shape.back(), "last axis", i)) return tl::unexpected(*error);
    if (x.shape.back().constant % 2 != 0) {
      return refuse(fmt::format("{} features do not make pairs", x.shape.back().constant), {}, i);
    }
    Shape table{x.shape[x.shape.size() - 2], x.shape.back()};
    if (has_half_tables(x.shape, inputs[tables].shape)) {
      if (attributes.text("layout") == "pairs") {
        return refuse("neighbours are turned by tables that have each angle twice", "layout");
      }
      table.back() = quotient(x.shape.back(), 2);
    }
    for (const std::size_t at : {tables, tables + 1}) {
      const TensorType& input = inputs[at];
      if (input.shape != table || input.type != inputs[tables].type) {
        return refuse(fmt::format("an input of {} is turned by tables of {}, and this one is {} {}",
                                  to_string(x.shape), to_string(table), to_string(input.type),
                                  to_string(input.shape)),
                      {}, static_cast<int>(at));
      }
    }
    result.outputs.push_back({x.shape, promoted(x.type, inputs[tables].type)});
    result.flops = result.flops + element_count(x.shape) * Affine(4);
  }
  return result;
}

int rotated_count(const OperatorLowering& lowering) {
  return rotated_count(static_cast<std::size_t>(lowering.input_count()));
}
const TensorView& cosines(const OperatorLowering& lowering) {
  return lowering.input(rotated_count(lowering));
}
const TensorView& sines(const OperatorLowering& lowering) {
  return lowering.input(rotated_count(lowering) + 1);
}
/// "query.forward" where there are two.
std::string part(const OperatorLowering& lowering, int i, const std::string& name) {
  if (rotated_count(lowering) == 1) return name;
  return (i == 0 ? "query." : "key.") + name;
}

void save_tables(OperatorLowering& lowering) {
  lowering.save("cos", cosines(lowering));
  lowering.save("sin", sines(lowering));
}

Attributes scaled_by(double value) {
  Attributes attributes;
  attributes.set("factor", value);
  attributes.set("offset", 0.0);
  return attributes;
}

Affine half_features(const TensorView& x) { return quotient(x.shape.back(), 2); }

// q cos, then rotate_half: -x2 before x1, then times sin, then the sum, which lies in memory as q.
// The caller's variables hold query, key and the tables until both are rotated.
void forward_decomposed(OperatorLowering& lowering, int i) {
  const TensorView x = lowering.input(i);
  const DataType type = lowering.output_type(i).type;
  const std::size_t last = x.shape.size() - 1;
  const Affine half = half_features(x), count = element_count(x.shape);
  const auto made = [&](const std::string& name, const Shape& shape, DataType format) {
    return lowering.new_tensor(part(lowering, i, name), shape, format, StorageClass::activation);
  };
  const auto name = [&](const std::string& text) { return part(lowering, i, text); };
  TensorView by_cos = made("cos_product", x.shape, type);
  by_cos.strides = dense_strides(x.shape, x.strides);
  lowering.emit(Kernel::multiply, name("cos_product"), {x, cosines(lowering)}, {by_cos},
                {.flops = count});
  Shape half_shape = x.shape;
  half_shape.back() = half;
  const TensorView negative = made("negative", half_shape, x.type);
  lowering.emit(Kernel::scale, name("negative"), {sliced(x, last, half, half)}, {negative},
                {.attributes = scaled_by(-1)});
  const TensorView turned = made("rotated", x.shape, x.type);
  lowering.emit(Kernel::concatenate, name("rotated"), {negative, sliced(x, last, 0, half)},
                {turned});
  const TensorView by_sin = made("sin_product", x.shape, type);
  lowering.emit(Kernel::multiply, name("sin_product"), {turned, sines(lowering)}, {by_sin},
                {.flops = count});
  lowering.emit(Kernel::add, name("forward"), {by_cos, by_sin}, {lowering.new_output_like(x, i)},
                {.holds = {lowering.input(0).storage, x.storage, cosines(lowering).storage,
                           sines(lowering).storage},
                 .flops = count});
}

// The engine takes the nodes in the reverse of their order, and sums the three gradients of q as
// they come: of x2, of x1 (both zero elsewhere), of q cos.
void backward_decomposed(OperatorLowering& lowering, int i) {
  const TensorView x = lowering.input(i);
  const TensorView dy = lowering.output_gradient(i);
  const std::size_t last = x.shape.size() - 1;
  const Affine half = half_features(x), count = element_count(x.shape);
  const auto name = [&](const std::string& text) { return part(lowering, i, "backward." + text); };
  const auto made = [&](const std::string& text, const Shape& shape, DataType type) {
    return lowering.new_tensor(part(lowering, i, text), shape, type,
                               StorageClass::activation_gradient);
  };
  const auto times = [&](const std::string& text, std::string_view table) {
    TensorView product = made(text, x.shape, dy.type);
    product.strides = dense_strides(dy.shape, dy.strides);
    lowering.emit(Kernel::multiply, name(text), {dy, lowering.saved(table)}, {product},
                  {.flops = count});
    if (dy.type == x.type) return product;
    TensorView cast = made(text + ".cast", x.shape, x.type);
    cast.strides = product.strides;
    lowering.emit(Kernel::cast, name(text + ".cast"), {product}, {cast},
                  {.holds = {dy.storage, lowering.saved(table).storage}});
    return cast;
  };
  const TensorView d_turned = times("grad_rotated", "sin");
  Shape half_shape = x.shape;
  half_shape.back() = half;
  const TensorView d_second = made("grad_second", half_shape, x.type);
  lowering.emit(Kernel::scale, name("negative"), {sliced(d_turned, last, 0, half)}, {d_second},
                {.attributes = scaled_by(-1)});
  const TensorView dx = made("grad_input", x.shape, x.type);
  lowering.emit(Kernel::pad, name("second"), {d_second}, {dx});
  const TensorView d_first = made("grad_first", x.shape, x.type);
  lowering.emit(Kernel::pad, name("first"), {sliced(d_turned, last, half, half)}, {d_first});
  lowering.emit(Kernel::accumulate, name("sum"), {dx, d_first}, {dx}, {.flops = count});
  const TensorView by_cos = times("grad_cos_product", "cos");
  lowering.emit(Kernel::accumulate, name("whole"), {dx, by_cos}, {dx}, {.flops = count});
  lowering.give_input_gradient(i, dx);
}

// Tables that have each angle once.

bool turns_halves(const OperatorLowering& lowering) {
  return has_half_tables(lowering.input(0).shape, cosines(lowering).shape);
}

// first cos - second sin and second cos + first sin, joined; the result is contiguous.
void forward_halves(OperatorLowering& lowering, int i) {
  const TensorView x = lowering.input(i), cos = cosines(lowering), sin = sines(lowering);
  const DataType type = lowering.output_type(i).type;
  const std::size_t last = x.shape.size() - 1;
  const Affine half = half_features(x);
  const TensorView first = sliced(x, last, 0, half), second = sliced(x, last, half, half);
  const Affine count = element_count(first.shape);
  const auto run = [&](std::string_view name, Kernel kernel, const TensorView& a,
                       const TensorView& b) {
    const std::string own = part(lowering, i, std::string(name));
    TensorView result = lowering.new_tensor(own, first.shape, type, StorageClass::activation);
    result.strides = dense_strides(a.shape, a.strides);
    lowering.emit(kernel, own, {a, b}, {result}, {.flops = count});
    return result;
  };
  const TensorView turned_first =
      run("first", Kernel::subtract, run("first.cos", Kernel::multiply, first, cos),
          run("second.sin", Kernel::multiply, second, sin));
  const TensorView turned_second =
      run("second", Kernel::add, run("second.cos", Kernel::multiply, second, cos),
          run("first.sin", Kernel::multiply, first, sin));
  lowering.emit(Kernel::concatenate, part(lowering, i, "forward"), {turned_first, turned_second},
                {lowering.new_output(i)},
                {.holds = {lowering.input(0).storage, x.storage, cos.storage, sin.storage}});
}

// The engine takes the nodes in the reverse of their order: the products of the second half's sum,
// then those of the first's difference; each half of x gets two gradients, and they are joined.
void backward_halves(OperatorLowering& lowering, int i) {
  const TensorView x = lowering.input(i), dy = lowering.output_gradient(i);
  const std::size_t last = x.shape.size() - 1;
  const Affine half = half_features(x);
  const TensorView d_first = sliced(dy, last, 0, half), d_second = sliced(dy, last, half, half);
  const Affine count = element_count(d_first.shape);
  const auto made = [&](const std::string& text, const TensorView& like, DataType type) {
    TensorView result = lowering.new_tensor(part(lowering, i, text), like.shape, type,
                                            StorageClass::activation_gradient);
    result.strides = dense_strides(like.shape, like.strides);
    return result;
  };
  const auto times = [&](const std::string& text, const TensorView& gradient,
                         std::string_view table) {
    TensorView product = made("grad_" + text, gradient, dy.type);
    lowering.emit(Kernel::multiply, part(lowering, i, "backward." + text),
                  {gradient, lowering.saved(table)}, {product}, {.flops = count});
    if (dy.type == x.type) return product;
    TensorView narrow = made("grad_" + text + ".cast", product, x.type);
    lowering.emit(Kernel::cast, part(lowering, i, "backward." + text + ".cast"), {product},
                  {narrow}, {.holds = {gradient.storage, lowering.saved(table).storage}});
    return narrow;
  };
  const auto sum = [&](const std::string& text, const TensorView& to, const TensorView& from) {
    lowering.emit(Kernel::accumulate, part(lowering, i, "backward." + text), {to, from}, {to},
                  {.flops = count});
  };
  const TensorView of_first = times("first.sin", d_second, "sin");
  const TensorView of_second = times("second.cos", d_second, "cos");
  const TensorView negative = made("grad_negative", d_first, dy.type);
  lowering.emit(Kernel::scale, part(lowering, i, "backward.negative"), {d_first}, {negative},
                {.attributes = scaled_by(-1), .flops = count});
  sum("second", of_second, times("second.sin", negative, "sin"));
  sum("first", of_first, times("first.cos", d_first, "cos"));
  const TensorView dx = lowering.new_tensor(part(lowering, i, "grad_input"), x.shape, x.type,
                                            StorageClass::activation_gradient);
  lowering.emit(Kernel::concatenate, part(lowering, i, "backward"), {of_first, of_second}, {dx});
  lowering.give_input_gradient(i, dx);
}

/// For the kernel, which takes each angle twice.
TensorView whole_table(OperatorLowering& lowering, const TensorView& table,
                       const std::string& name) {
  if (!turns_halves(lowering)) return table;
  Shape shape = table.shape;
  shape.back() = shape.back() * Affine(2);
  TensorView whole = lowering.new_tensor(name, shape, table.type, StorageClass::activation);
  Attributes attributes;
  attributes.set("axis", static_cast<std::int64_t>(shape.size() - 1));
  attributes.set("start", std::int64_t{0});
  lowering.emit(Kernel::concatenate, name, {table, table}, {whole}, {.attributes = attributes});
  return whole;
}

void forward_rotary_fused(OperatorLowering& lowering) {
  const TensorView cos = whole_table(lowering, cosines(lowering), "cos.whole");
  const TensorView sin = whole_table(lowering, sines(lowering), "sin.whole");
  for (int i = 0; i < rotated_count(lowering); ++i) {
    const TensorView x = lowering.input(i);
    lowering.emit(Kernel::rotary_forward, part(lowering, i, "forward"), {x, cos, sin},
                  {lowering.new_output_like(x, i)}, {.flops = element_count(x.shape) * Affine(4)});
  }
  save_tables(lowering);
}

void backward_rotary_fused(OperatorLowering& lowering) {
  const TensorView cos = whole_table(lowering, lowering.saved("cos"), "backward.cos.whole");
  const TensorView sin = whole_table(lowering, lowering.saved("sin"), "backward.sin.whole");
  for (int i = rotated_count(lowering); i-- > 0;) {
    if (!lowering.has_output_gradient(i) || !lowering.input_needs_gradient(i)) continue;
    const TensorView dy = lowering.output_gradient(i);
    TensorView dx = lowering.new_input_gradient(i);
    dx.strides = dense_strides(dy.shape, dy.strides);
    lowering.emit(Kernel::rotary_backward, part(lowering, i, "backward"), {dy, cos, sin}, {dx},
                  {.flops = element_count(dx.shape) * Affine(4)});
    lowering.give_input_gradient(i, dx);
  }
}

bool decomposed(const OperatorLowering& lowering) {
  return lowering.attributes().text("implementation") == "decomposed";
}
void forward_rotary(OperatorLowering& lowering) {
  if (!decomposed(lowering)) return forward_rotary_fused(lowering);
  for (int i = 0; i < rotated_count(lowering); ++i) {
    if (turns_halves(lowering)) {
      forward_halves(lowering, i);
    } else {
      forward_decomposed(lowering, i);
    }
  }
  save_tables(lowering);
}
void backward_rotary(OperatorLowering& lowering) {
  if (!decomposed(lowering)) return backward_rotary_fused(lowering);
  lowering.hold_by_hand();
  for (int i = rotated_count(lowering); i-- > 0;) {
    if (!lowering.has_output_gradient(i) || !lowering.input_needs_gradient(i)) continue;
    if (turns_halves(lowering)) {
      backward_halves(lowering, i);
    } else {
      backward_decomposed(lowering, i);
    }
  }
}

}  // namespace

OperatorRow rows::rotary_table() {
  return {.name = "rotary_table",
          .doc =
              "cosines and sines of rotary positions, two tensors [length, features], or "
              "[length, features / 2]",
          .attributes =
              {{.name = "length", .type = AttributeType::integer, .doc = "positions", .minimum = 1},
               {.name = "features",
                .type = AttributeType::integer,
                .doc = "elements of a head",
                .minimum = 2},
               {.name = "base",
                .type = AttributeType::real,
                .doc = "base of the geometric sequence of wavelengths",
                .default_value = 10000.0,
                .minimum = 1},
               {.name = "kept",
                .type = AttributeType::choice,
                .doc = "the buffers: frequencies (tables made in each pass), or the tables",
                .default_value = std::string("frequencies"),
                .choices = {"frequencies", "tables"}},
               {.name = "repeated",
                .type = AttributeType::boolean,
                .doc = "each angle is there twice, for both halves of a head; once in gpt-oss",
                .default_value = true}},
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = infer_table,
          .lowering = {.stowage = {forward_table_stowage, nullptr},
                       .pytorch = {forward_table_pytorch, nullptr}},
          .makes_floats = true};
}

OperatorRow rows::rotary() {
  return {.name = "rotary",
          .doc = "query and key, or one of them, turned by position; then the table's two tensors",
          .attributes = {{.name = "implementation",
                          .type = AttributeType::choice,
                          .doc = "in PyTorch: single operations as transformers', or one kernel",
                          .default_value = std::string("decomposed"),
                          .choices = {"decomposed", "fused"}},
                         {.name = "layout",
                          .type = AttributeType::choice,
                          .doc = "what is turned together: i and i + features/2 (LLaMA), or "
                                 "neighbours (GPT-J)",
                          .default_value = std::string("halves"),
                          .choices = {"halves", "pairs"}}},
          .min_inputs = 3,
          .max_inputs = 4,
          .infer = infer_rotary,
          .lowering = {.stowage = {forward_rotary_fused, backward_rotary_fused},
                       .pytorch = {forward_rotary, backward_rotary}}};
}

}  // namespace stowage
