// ExpertsLowering: what PyTorch runs for routed_experts.
//
// It is what transformers 5 runs by default (integrations/moe.py, grouped_mm_experts_forward, with
// the routers in front of it): pairs of a token and one of its experts are sorted by expert, so
// that each of the two products is one grouped kernel over all experts' weights. There is a row for
// each pair whatever the router chooses, so all sizes are known.
//
//   form      router                            gate
//   silu      softmax, the largest, divided     silu of the first half times the second
//   clamped   the largest, their softmax        neighbours, clamped, and a bias behind each product
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

struct ExpertSizes {
  Affine tokens, pairs;
  std::int64_t hidden = 0, inner = 0, experts = 0, chosen = 0;
  bool clamped = false;
};
[[nodiscard]] ExpertSizes expert_sizes(const Attributes& attributes, const Shape& rows,
                                       const Shape& down);

/// The lowering of one call, with short functions for its tensors and kernels.
class ExpertsLowering {
 public:
  explicit ExpertsLowering(OperatorLowering& lowering)
      : lowering_(lowering),
        n_(expert_sizes(lowering.attributes(), lowering.input(0).shape, lowering.input(3).shape)) {}

  void forward();
  void backward();

 private:
  TensorView make(std::string_view name, const Shape& shape, DataType type,
                  StorageClass kind = StorageClass::activation) {
    return lowering_.new_tensor(name, shape, type, kind);
  }
  TensorView gradient(std::string_view name, const Shape& shape, DataType type) {
    return make(name, shape, type, StorageClass::activation_gradient);
  }
  void call(Kernel kernel, std::string_view name, KernelArguments reads, KernelArguments writes,
            NodeExtras extras = {}) {
    lowering_.emit(kernel, name, std::move(reads), std::move(writes), std::move(extras));
  }
  [[nodiscard]] bool normalized() const { return lowering_.attributes().boolean("normalized"); }
  [[nodiscard]] Shape pairs(std::int64_t features) const { return {n_.pairs, features}; }
  [[nodiscard]] Affine product_flops(std::int64_t a, std::int64_t b) const {
    return n_.pairs * Affine(2 * a * b);
  }
  void forward_fused();
  /// Another format of a gradient, converted.
  TensorView narrowed(const TensorView& from, DataType type, std::string_view name,
                      std::vector<StorageId> holds);

  // experts_router.cpp
  struct Chosen {
    TensorView weights, experts;  ///< [tokens, chosen]
  };
  Chosen choose();
  Chosen choose_before_softmax();
  void weight_gradients(const TensorView& d_weights);
  void weight_gradients_before_softmax(const TensorView& d_weights);
  // experts_gate.cpp
  TensorView apply_gate(const TensorView& projected);
  TensorView gated_by_neighbours(const TensorView& projected);
  TensorView gate_gradient(const TensorView& d_gated);
  TensorView neighbours_gradient(const TensorView& d_gated);
  /// The bias of each pair's expert; `input`: the biases. Autograd keeps the experts of the pairs.
  TensorView bias_of_pairs(int input, const TensorView& experts, std::string_view name,
                           std::vector<StorageId> holds);
  void give_bias_gradient(int input, const TensorView& gradient, std::string_view name,
                          std::vector<StorageId> holds);

  OperatorLowering& lowering_;
  ExpertSizes n_;
};

}  // namespace stowage
