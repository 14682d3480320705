// Matrix products, which are cuBLAS's: mm, bmm and their like; addmm is cuBLASLt's where its bias
// is a vector (ATen/native/cuda/Blas.cpp).
#include <fmt/format.h>

#include "estimator/recorded/aten_table.hpp"

namespace stowage {

namespace {

/// Operations of a product over `depth`.
Affine product_flops(const TensorView& result, const TensorView& first) {
  const Affine depth = first.shape.empty() ? Affine(1) : first.shape.back();
  return element_count(result.shape) * Affine(2) * depth;
}

/// The operands by their names in the schemas: the first that there is.
const TensorView& operand_of(const AtenCall& call, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const TensorView* found = call.find(name)) return *found;
  }
  call.refuse(fmt::format("and lacks the tensor '{}'", *names.begin()));
}

}  // namespace

bool complete_product(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const TensorView& a = operand_of(call, {"self"});
  const TensorView& b = operand_of(call, {"mat2", "vec", "tensor", "other"});
  completion.emit(Kernel::matmul, {}, {a, b}, {call.result(0)},
                  {.flops = product_flops(call.result(0), a)});
  return true;
}

bool complete_biased_product(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const TensorView& bias = call.tensor("self");
  const TensorView& a = operand_of(call, {"mat1", "batch1", "mat"});
  const TensorView& b = operand_of(call, {"mat2", "batch2", "vec"});
  const bool is_layer = call.find("mat1") != nullptr && bias.shape.size() == 1;
  Affine flops = product_flops(call.result(0), a);
  // addbmm sums over the matrices.
  if (a.shape.size() == 3 && call.result(0).shape.size() == 2) flops = flops * a.shape[0];
  completion.emit(is_layer ? Kernel::linear_forward : Kernel::matmul, {}, {a, b, bias},
                  {call.result(0)}, {.flops = flops});
  return true;
}

bool complete_linear(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const TensorView& x = call.tensor("input");
  std::vector<TensorView> reads{x, call.tensor("weight", 2)};
  if (const TensorView* bias = call.find("bias")) reads.push_back(*bias);
  completion.emit(Kernel::linear_forward, {}, std::move(reads), {call.result(0)},
                  {.flops = product_flops(call.result(0), x)});
  return true;
}

}  // namespace stowage
