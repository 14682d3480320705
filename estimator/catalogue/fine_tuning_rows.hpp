// Operators that no description names: those that the room `adapt` puts into a model's graph. They
// are rows as the others are, outside the catalogue's list.
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/model/operator_row.hpp"

namespace stowage {

/// An adapter's part, added as peft 0.21 does (tuners/lora/layer.py, Linear.forward):
///   y = (result + factor * branch).to(result's format)
/// Inputs: result, branch, and a tensor that the calling frame holds meanwhile: the branch's own
/// copy of its input. Attribute `factor`.
[[nodiscard]] const OperatorRow& adapter_sum_row();

// Linear layers of quantised weights, which are never trained. Attributes `features`, `bias`; the
// parameters are the bytes of the weight, [bias], then what they are dequantised with, as buffers.
//
//   4 bits   double_quant, format (nf4 or fp4): bytes [(n + 1) / 2, 1] of n values; a maximum of
//            each 64 values and a code of 16; double: the maxima in 8 bits, one float32 of each 256
//            of them, a code of 256, an offset (bitsandbytes 0.50, functional.py, quantize_4bit)
//   8 bits   bytes [out, in], a float32 scale a row (bitsandbytes 0.50, Linear8bitLt)
//   float8   bytes [out, in], a float32 scale a row (torchao 0.18, Float8WeightOnlyConfig)
[[nodiscard]] const OperatorRow& linear_4bit_row();
[[nodiscard]] const OperatorRow& linear_8bit_row();
[[nodiscard]] const OperatorRow& linear_float8_row();
/// Such a weight of 4 or 8 bits in a format, without a layer: peft's dequantize_module_weight.
/// Attributes `in`, `features`, `bits`, `double_quant`, `bias` (the layer has one); the parameters
/// are the layer's.
[[nodiscard]] const OperatorRow& dequantised_weight_row();

// What DoRA is made of, beside rows of the catalogue (peft 0.21, tuners/lora/dora.py).

/// torch.eye: attribute `size`; without inputs.
[[nodiscard]] const OperatorRow& identity_matrix_row();
/// The norm of each row of w + factor * update; no gradient passes. Inputs: w, update, both
/// [out, in]. Attribute `factor`.
[[nodiscard]] const OperatorRow& weight_norm_row();
/// Inputs: variables of a Python function that returns here. They live until the kernel before has
/// run; the result is the first, which nobody reads.
[[nodiscard]] const OperatorRow& frame_end_row();
/// Tensor.clone().
[[nodiscard]] const OperatorRow& copied_row();
/// x w^T, w without a gradient. Inputs: x, dropped out; w; the layer's own result, which stands for
/// it where nothing is dropped out (an inference), and the bias to take from that.
[[nodiscard]] const OperatorRow& base_product_row();
/// cross_entropy as torch.compile makes it, where the loss alone is compiled.
[[nodiscard]] const OperatorRow& compiled_cross_entropy_row();

}  // namespace stowage
