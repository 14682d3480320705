// Operators that only the room `adapt` inserts into a model's graph. Their rows are like the
// others, but not in the catalogue's list, so that no description can name them.
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/model/operator_row.hpp"

namespace stowage {

/// The sum of a layer's result and an adapter's, as in peft 0.21 (tuners/lora/layer.py,
/// Linear.forward):
///   y = (result + factor * branch).to(result's format)
/// Inputs: result, branch, and the branch's own copy of its input, which the calling Python frame
/// holds. Attribute `factor`.
[[nodiscard]] const OperatorRow& adapter_sum_row();

// Linear layers with quantised weights, which are never trained. Attributes `features`, `bias`.
// Parameters: the bytes of the weight, [bias], then the tables for dequantising, as buffers.
//
//   4 bits   double_quant, format (nf4 or fp4): bytes [(n + 1) / 2, 1] of n values; a maximum of
//            each 64 values and a code of 16; double: the maxima in 8 bits, one float32 of each 256
//            of them, a code of 256, an offset (bitsandbytes 0.50, functional.py, quantize_4bit)
//   8 bits   bytes [out, in], a float32 scale a row (bitsandbytes 0.50, Linear8bitLt)
//   float8   bytes [out, in], a float32 scale a row (torchao 0.18, Float8WeightOnlyConfig)
[[nodiscard]] const OperatorRow& linear_4bit_row();
[[nodiscard]] const OperatorRow& linear_8bit_row();
[[nodiscard]] const OperatorRow& linear_float8_row();
/// A weight in one of the layouts of model/packed_layout.hpp, whose values are the attributes
/// `layout`, `bits`, `block` and so on. Parameters: the weight's values, [bias], its tables.
[[nodiscard]] const OperatorRow& linear_packed_row();
/// The weights of several linear layers [features, in] in one of those layouts: those of experts,
/// which fused kernels read packed. No inputs. The output is [shape] in the model's format: an
/// expanded view of the packed values under PyTorch's kernels, restored by ours. Attributes: those
/// of the layout, `shape`, `layers`, `features`, `in`.
[[nodiscard]] const OperatorRow& packed_parameter_row();
/// A quantised weight of 4 or 8 bits, dequantised without a product: peft's
/// dequantize_module_weight. Attributes `in`, `features`, `bits`, `double_quant`, `bias` (the layer
/// has one); the parameters are the layer's.
[[nodiscard]] const OperatorRow& dequantised_weight_row();

// Operators of DoRA that the catalogue does not have (peft 0.21, tuners/lora/dora.py).

/// torch.eye: attribute `size`; without inputs.
[[nodiscard]] const OperatorRow& identity_matrix_row();
/// The norm of each row of w + factor * update, without a gradient. Inputs: w, update, both [out,
/// in]. Attribute `factor`.
[[nodiscard]] const OperatorRow& weight_norm_row();
/// The return of a Python function. Inputs: its variables, which live until the previous kernel has
/// run. The output is the first input, and no operator reads it.
[[nodiscard]] const OperatorRow& frame_end_row();
/// Tensor.clone().
[[nodiscard]] const OperatorRow& copied_row();
/// x w^T, without a gradient of w. Inputs: x after dropout; w; the layer's own result, and the bias
/// to subtract from it. Without dropout (inference) the layer's result minus the bias is used
/// instead of a product.
[[nodiscard]] const OperatorRow& base_product_row();
/// cross_entropy when only the loss is compiled by torch.compile.
[[nodiscard]] const OperatorRow& compiled_cross_entropy_row();

}  // namespace stowage
