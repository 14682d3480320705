#include "estimator/model/packed_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace stowage {

namespace {

constexpr std::int64_t word_bits = 32;

constexpr std::array<std::string_view, 9> kind_names{
    "gptq",       "awq",    "awq_gemv",       "awq_gemv_fast", "int4",
    "int4_tiled", "scaled", "pack_quantized", "fp4_packed"};

constexpr std::array<std::string_view, 3> torchao_names{"none", "int8", "float8"};

constexpr std::array<std::string_view, 2> global_scale_names{"weight_global_scale",
                                                             "input_global_scale"};
constexpr std::array<std::string_view, 2> input_scale_names{"input_scale", "input_zero_point"};

std::int64_t divided_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }
std::int64_t rounded_up(std::int64_t count, std::int64_t to) { return divided_up(count, to) * to; }

std::int64_t blocks_of(std::int64_t length, std::int64_t block) {
  return block == 0 ? 1 : divided_up(length, block);
}

/// AutoAWQ's calculate_zeros_width: words of zero points a row of the gemv layouts.
std::int64_t zeros_width(std::int64_t in, std::int64_t group) {
  constexpr std::int64_t values_a_word = 8;
  const std::int64_t several = group == 0 || group >= 128 ? 1 : group == 64 ? 2 : 4;
  const std::int64_t words = divided_up(group == 0 ? 1 : in / group, values_a_word);
  return rounded_up(words, several) / several * several;
}

std::vector<PackedTensor> scaled_tensors(const PackedLayout& layout, std::int64_t out,
                                         std::int64_t in, DataType scale) {
  const bool is_torchao = layout.scale_name == "scale";
  std::vector<PackedTensor> tensors{{is_torchao ? "qdata" : "weight", {out, in}, DataType::uint8}};
  const bool whole = layout.block_rows == 0 && layout.block_columns == 0;
  const Shape scales =
      whole ? Shape{}
            : Shape{blocks_of(out, layout.block_rows), blocks_of(in, layout.block_columns)};
  tensors.push_back({layout.scale_name, scales, scale});
  if (layout.has_zero_points) {
    tensors.push_back({is_torchao ? "zero_point" : "weight_zero_point", scales, DataType::uint8});
  }
  return tensors;
}

}  // namespace

std::string_view to_string(PackedKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

PackedLayout gptq_layout(std::int64_t bits, std::int64_t group) {
  return {.kind = PackedKind::gptq, .name = "GPTQ", .bits = bits, .block_columns = group};
}

PackedLayout awq_layout(std::int64_t group) {
  return {.kind = PackedKind::awq, .name = "AWQ", .block_columns = group};
}

PackedLayout int4_layout(std::int64_t group) {
  return {.kind = PackedKind::int4, .name = "torchao's int4", .block_columns = group};
}

std::vector<PackedTensor> packed_tensors(const PackedLayout& layout, std::int64_t out,
                                         std::int64_t in, DataType computed) {
  using enum DataType;
  const std::int64_t bits = layout.bits, group = layout.block_columns;
  const std::int64_t groups = blocks_of(in, group);
  const DataType scale = layout.scale_type.value_or(computed);
  std::vector<PackedTensor> tensors;
  switch (layout.kind) {
    case PackedKind::gptq:
      tensors = {{"qweight", {in / word_bits * bits, out}, int32},
                 {"qzeros", {groups, out / word_bits * bits}, int32},
                 {"scales", {groups, out}, float16},
                 {"g_idx", {in}, int32}};
      break;
    case PackedKind::awq:
      tensors = {{"qweight", {in, out * bits / word_bits}, int32},
                 {"qzeros", {groups, out * bits / word_bits}, int32},
                 {"scales", {groups, out}, float16}};
      break;
    case PackedKind::awq_gemv: {
      const std::int64_t width = zeros_width(in, group);
      tensors = {{"qweight", {out, in * bits / word_bits}, int32},
                 {"qzeros", {out, width}, int32},
                 {"scales", {out, 8 * width}, float16}};
      break;
    }
    case PackedKind::awq_gemv_fast: {  // i16 [out / 4, in]: float16 has as many bytes
      const std::int64_t width = zeros_width(in, group);
      tensors = {{"qweight", {out / 4, in}, float16},
                 {"qzeros", {8 * width, out}, float16},
                 {"scales", {8 * width, out}, float16}};
      break;
    }
    case PackedKind::int4:
      tensors = {{"qdata", {out, in / 2}, uint8},
                 {"scale", {groups, out}, scale},
                 {"zero_point", {groups, out}, scale}};
      break;
    case PackedKind::int4_tiled: {
      const std::int64_t rows = rounded_up(out, 8), columns = rounded_up(in, 1024);
      tensors = {{"qdata", {rows, columns / 2}, uint8},
                 {"scale_and_zero", {blocks_of(columns, group), rows, 2}, scale}};
      break;
    }
    case PackedKind::scaled:
      tensors = scaled_tensors(layout, out, in, scale);
      break;
    case PackedKind::pack_quantized:
      tensors = {{"weight_packed", {out, divided_up(in * bits, word_bits)}, int32},
                 {"weight_scale", {blocks_of(out, layout.block_rows), groups}, scale},
                 {"weight_shape", {2}, int64}};
      if (layout.has_zero_points) {
        tensors.push_back(
            {"weight_zero_point", {divided_up(out * bits, word_bits), groups}, int32});
      }
      break;
    case PackedKind::fp4_packed:
      tensors = {{"weight_packed", {out, in / 2}, uint8}, {"weight_scale", {out, groups}, uint8}};
      break;
  }
  for (int i = 0; i < layout.scalars; ++i) {
    const auto at = static_cast<std::size_t>(i);
    tensors.push_back({layout.kind == PackedKind::fp4_packed ? global_scale_names.at(at)
                                                             : input_scale_names.at(at),
                       {1},
                       layout.kind == PackedKind::scaled ? scale : float32});
  }
  return tensors;
}

std::string size_refusal(const PackedLayout& layout, std::int64_t out, std::int64_t in) {
  const std::int64_t group = layout.block_columns;
  const auto indivisible = [&](std::string_view axis, std::int64_t size, std::int64_t by) {
    return fmt::format("its {} {} features are no multiple of {}", size, axis, by);
  };
  switch (layout.kind) {
    case PackedKind::gptq:
      if (in % word_bits != 0) return indivisible("input", in, word_bits);
      if (out % word_bits != 0) return indivisible("output", out, word_bits);
      return {};
    case PackedKind::awq:
    case PackedKind::awq_gemv:
    case PackedKind::awq_gemv_fast:
      if (group > 0 && in % group != 0) return indivisible("input", in, group);
      if (in % 8 != 0) return indivisible("input", in, 8);
      return out % 8 == 0 ? std::string() : indivisible("output", out, 8);
    case PackedKind::fp4_packed:
      return in % group == 0 ? std::string() : indivisible("input", in, group);
    case PackedKind::int4:
    case PackedKind::int4_tiled:
    case PackedKind::scaled:
    case PackedKind::pack_quantized:
      return {};
  }
  return {};
}

bool leaves_as_is(const PackedLayout& layout, std::int64_t out, std::int64_t in) {
  constexpr std::int64_t float8_multiple = 16;  // _fp8_mm_compat
  if (layout.torchao == TorchaoBytes::float8 && layout.inputs) {
    return out % float8_multiple != 0 || in % float8_multiple != 0;
  }
  const bool is_int4 = layout.kind == PackedKind::int4 || layout.kind == PackedKind::int4_tiled;
  return is_int4 && layout.block_columns > 0 && in % layout.block_columns != 0;
}

bool has_fused_product(const PackedLayout& layout) {
  return layout.kind != PackedKind::gptq || layout.bits == 4 || layout.bits == 8;
}

std::string describe(const PackedLayout& layout) {
  std::string words = layout.name;
  if (layout.kind != PackedKind::scaled && layout.kind != PackedKind::fp4_packed) {
    words += fmt::format(", {} bits", layout.bits);
  }
  const std::int64_t rows = layout.block_rows, columns = layout.block_columns;
  if (rows == 0 && columns == 0) return words + ", one scale";
  if (rows == 1 && columns == 0) return words + ", a scale a row";
  if (rows == 1) return words + fmt::format(", groups of {}", columns);
  return words + fmt::format(", blocks of {} x {}", rows, columns);
}

std::string tensor_names(const PackedLayout& layout) {
  std::vector<std::string_view> names;
  for (const PackedTensor& tensor : packed_tensors(layout, 1024, 1024, DataType::float16)) {
    names.push_back(tensor.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void set_attributes(Attributes& attributes, const PackedLayout& layout) {
  attributes.set("layout", std::string(to_string(layout.kind)));
  attributes.set("bits", layout.bits);
  attributes.set("block", std::vector<std::int64_t>{layout.block_rows, layout.block_columns});
  attributes.set("scale_name", std::string(layout.scale_name));
  attributes.set("scale_type", layout.scale_type ? std::string(to_string(*layout.scale_type))
                                                 : std::string("input"));
  attributes.set("zero_points", layout.has_zero_points);
  attributes.set("scalars", std::int64_t{layout.scalars});
  attributes.set("quantised_inputs", layout.inputs);
  attributes.set("torchao", std::string(torchao_names[static_cast<std::size_t>(layout.torchao)]));
  attributes.set("fused", layout.fused);
  attributes.set("input_zero_points", layout.input_zero_points);
}

PackedLayout layout_of(const Attributes& attributes) {
  PackedLayout layout;
  const auto* const kind =
      std::find(kind_names.begin(), kind_names.end(), attributes.text("layout"));
  layout.kind = static_cast<PackedKind>(kind - kind_names.begin());
  layout.bits = attributes.integer("bits");
  layout.block_rows = attributes.integers("block")[0];
  layout.block_columns = attributes.integers("block")[1];
  layout.scale_name = *std::find(packed_scale_names.begin(), packed_scale_names.end(),
                                 attributes.text("scale_name"));
  layout.scale_type = parse_data_type(attributes.text("scale_type"));
  layout.has_zero_points = attributes.boolean("zero_points");
  layout.scalars = static_cast<int>(attributes.integer("scalars"));
  layout.inputs = attributes.boolean("quantised_inputs");
  const auto* const bytes =
      std::find(torchao_names.begin(), torchao_names.end(), attributes.text("torchao"));
  layout.torchao = static_cast<TorchaoBytes>(bytes - torchao_names.begin());
  layout.fused = attributes.boolean("fused");
  layout.input_zero_points = attributes.boolean("input_zero_points");
  return layout;
}

}  // namespace stowage
