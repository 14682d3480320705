// Linear layers of torchao's tensors in PyTorch's eager mode: what its Python code (0.18) allocates
// for one product, operator by operator. A server that compiles or fuses it has none of this
// (PackedLayout::fused).
//
// Of a weight [out, in] and inputs [rows, in], beside the inputs, which the calling frame holds:
//
//   int8            the weight in the inputs' format, the product; times the scales, out of place
//   int8 in groups  the weight in the inputs' format, less the zero points, times the scales in
//                   float32, in the inputs' format (_dequantize_affine_no_dtype_check)
//   float8          the weight in float32, times its scales in float32, in the inputs' format; all
//                   three are variables until the last is made, and so are the scales of groups,
//                   spread over the weight (_dequantize_affine_float8)
//   int8, inputs in int8
//                   two copies of the inputs in float32 at a time, the inputs in int8; a copy of
//                   the transposed weight (safe_int_mm); the product in int32, times the inputs'
//                   scales in float32, in the inputs' format, times the weight's in float32, in the
//                   inputs' format. Up to 16 rows cuBLAS has no such product: both operands are
//                   there in float32 as well
//   float8, inputs in float8
//                   three copies of the inputs in float32 (_quantize_affine_float8), the inputs in
//                   float8; one product (_scaled_mm)
//   int4            the product of a fused kernel, and the bias added out of place (mslk)
//   int4 in tiles   the inputs in bfloat16, padded to 1,024 (a copy even where there is nothing to
//                   pad), the product in bfloat16
//
// Sources: quantization/quantize_/workflows/int8/int8_tensor.py, float8/float8_tensor.py,
// int4/int4_tensor.py, int4/int4_tile_packed_to_4d_tensor.py, quantization/quant_primitives.py,
// kernel/intmm.py. Measured: tests/reference/torchao_linear.py, and whole networks on an H200
// (bench/ground_truth).
#pragma once

#include "estimator/model/packed_layout.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// Forward of a layer whose layout is not `fused`, under PyTorch's kernels. Where its input needs a
/// gradient, the restored weight is saved as "restored".
void forward_torchao(OperatorLowering& lowering, const PackedLayout& layout);

}  // namespace stowage
