// PackedLayout: how the quantised weight of a linear layer lies in memory, tensor by tensor, as the
// libraries' own modules register it. bitsandbytes' layouts and torchao's float8 per row, which
// `base` has, are not here: they have rows of their own (catalogue/fine_tuning_rows.hpp).
//
// Of a weight [out, in] in groups of `group` values of a row, n = ceil(in / group):
//
//   gptq            qweight i32 [in bits / 32, out], qzeros i32 [n, out bits / 32],
//                   scales f16 [n, out], g_idx i32 [in]
//   awq             qweight i32 [in, out / 8], qzeros i32 [n, out / 8], scales f16 [n, out]
//   awq_gemv        qweight i32 [out, in / 8], qzeros i32 [out, z], scales f16 [out, 8 z]
//   awq_gemv_fast   qweight i16 [out / 4, in], qzeros and scales f16 [8 z, out]
//   int4            qdata [out, in / 2], scale and zero_point [n, out] in the weight's format
//   int4_tiled      qdata [out, in / 2], scale_and_zero [n, out, 2]; out is rounded up to 8, and
//                   in to 1,024
//   scaled          a byte a value, with scales of blocks
//   pack_quantized  weight_packed i32 [out, ceil(in bits / 32)], weight_scale, weight_shape i64
//                   [2]; if asymmetric weight_zero_point i32 [ceil(out bits / 32), n]
//   fp4_packed      weight_packed [out, in / 2], weight_scale of a byte a group; nvfp4: global
//                   scales of the weight and of the input
//
// z, the words of zero points, is n / 8 rounded up: for groups of 64 to a multiple of 2, for groups
// of 32 to one of 4 (AutoAWQ, calculate_zeros_width).
//
// Sources: GPTQModel at f4c327a1 (nn_modules/qlinear, GPTQQuantLinear and AWQuantLinear; g_idx is
// there with desc_act and without); AutoAWQ 0.2.9 (WQLinear_GEMM, _GEMV, _GEMVFast); torchao 0.18
// (Int4Tensor, Int4TilePackedTo4dTensor, Int8Tensor, Float8Tensor); transformers 5.24 (FP8Linear,
// FbgemmFp8Linear); compressed-tensors 0.20 (compressors). Measured:
// tests/reference/quantised_layouts.py.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/attributes.hpp"
#include "estimator/base/data_type.hpp"
#include "estimator/base/shape.hpp"

namespace stowage {

enum class PackedKind : std::uint8_t {
  gptq,
  awq,
  awq_gemv,
  awq_gemv_fast,
  int4,
  int4_tiled,
  scaled,
  pack_quantized,
  fp4_packed
};
[[nodiscard]] std::string_view to_string(PackedKind kind);

/// What torchao's layouts of a byte a value hold (Int8Tensor, Float8Tensor).
enum class TorchaoBytes : std::uint8_t { none, int8, float8 };

struct PackedLayout {
  PackedKind kind = PackedKind::gptq;
  std::string name = "gptq";  ///< for messages: "GPTQ", "fp8 in blocks"
  std::int64_t bits = 4;      ///< of a value
  /// The block of values [rows, columns] that shares a scale; 0: the whole axis.
  std::int64_t block_rows = 1, block_columns = 128;
  /// `scaled`: as the library calls it; of packed_scale_names.
  std::string_view scale_name = "weight_scale";
  std::optional<DataType> scale_type = {};  ///< nullopt: the format of the weight before
  bool has_zero_points = false;             ///< scaled, pack_quantized: asymmetric
  int scalars = 0;      ///< further float32 numbers: the scale of inputs, global scales
  bool inputs = false;  ///< inputs are quantised to 8 bits before the product
  TorchaoBytes torchao = TorchaoBytes::none;
  /// The product is a kernel of its own. Otherwise torchao's Python code runs it, operator by
  /// operator (catalogue/torchao_linear.hpp).
  bool fused = true;
  bool input_zero_points = false;  ///< `inputs` of torchao's int8 are asymmetric
  bool operator==(const PackedLayout&) const = default;
};

/// GPTQ, AWQ (gemm) and torchao's int4 with the given bits and group (0: whole rows).
[[nodiscard]] PackedLayout gptq_layout(std::int64_t bits, std::int64_t group);
[[nodiscard]] PackedLayout awq_layout(std::int64_t group);
[[nodiscard]] PackedLayout int4_layout(std::int64_t group);

inline constexpr std::array<std::string_view, 4> packed_scale_names{
    "weight_scale", "weight_scale_inv", "scale", "SCB"};

struct PackedTensor {
  std::string_view name;  ///< "qweight"; of static storage
  Shape shape;
  DataType type = DataType::uint8;  ///< types of one byte are all uint8
};
/// The weight's values first, then its tables. `computed`: the format of the layer's input.
[[nodiscard]] std::vector<PackedTensor> packed_tensors(const PackedLayout& layout, std::int64_t out,
                                                       std::int64_t in, DataType computed);
/// Why the library has no such layer of this size; empty: it has.
[[nodiscard]] std::string size_refusal(const PackedLayout& layout, std::int64_t out,
                                       std::int64_t in);
/// Whether the library leaves a layer of this size as it is. torchao: int4 if rows are no whole
/// number of groups, float8 with float8 inputs unless both sizes are multiples of 16.
[[nodiscard]] bool leaves_as_is(const PackedLayout& layout, std::int64_t out, std::int64_t in);
/// Whether libraries have a kernel that multiplies without restoring the weight first: not for
/// GPTQ's 2 and 3 bits.
[[nodiscard]] bool has_fused_product(const PackedLayout& layout);

/// "GPTQ, 8 bits, groups of 128", "fp8, blocks of 128 x 128"
[[nodiscard]] std::string describe(const PackedLayout& layout);
/// "qweight, qzeros, scales, g_idx"
[[nodiscard]] std::string tensor_names(const PackedLayout& layout);

/// The layout as attributes of an operator, and back.
void set_attributes(Attributes& attributes, const PackedLayout& layout);
[[nodiscard]] PackedLayout layout_of(const Attributes& attributes);

}  // namespace stowage
