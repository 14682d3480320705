// Functions that the rows of lstm, gru and rnn and their two lowerings share.
//
// PyTorch on CUDA runs the network in one call of cuDNN (recurrent_cudnn.cpp); our executor has a
// kernel of its own for the same arguments (recurrent_own.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// The sizes of a recurrent network, from its attributes and the input's shape.
struct RecurrentNetwork {
  std::string cell;  // lstm, gru, tanh, relu
  std::int64_t gates = 1, layers = 1, directions = 1, hidden = 1;
  std::int64_t result = 1;  // features of one direction's result: `hidden`, or the projection's
  std::int64_t inputs = 1;
  bool has_bias = true, projects = false, batch_first = false;
  Affine sequence, batch;
  [[nodiscard]] bool has_cell_state() const { return cell == "lstm"; }
  [[nodiscard]] Shape hidden_state() const { return {layers * directions, batch, result}; }
  [[nodiscard]] Shape cell_state() const { return {layers * directions, batch, hidden}; }
};

[[nodiscard]] RecurrentNetwork network_of(const Attributes& attributes, const Shape& x);
[[nodiscard]] RecurrentNetwork network_of(const OperatorLowering& lowering);

// The arguments of rnn_forward and rnn_backward, in their signatures' order.
[[nodiscard]] Attributes cell_attributes(const OperatorLowering& lowering,
                                         const RecurrentNetwork& n);
/// Operations of the forward pass.
[[nodiscard]] Affine flops_of(const OperatorLowering& lowering, const RecurrentNetwork& n);
/// The initial states: inputs of the operator, or zeros.
[[nodiscard]] std::vector<TensorView> first_states(OperatorLowering& lowering,
                                                   const RecurrentNetwork& n);
/// The final states; they are made even if they are no outputs.
[[nodiscard]] std::vector<TensorView> last_states(OperatorLowering& lowering,
                                                  const RecurrentNetwork& n);
void append_parameters(const OperatorLowering& lowering, std::vector<TensorView>& reads);
// `unused_class`: the storage class of gradients that the kernel takes or writes though no other
// operator provides or reads them. PyTorch makes them within its call of cuDNN (_cudnn_rnn_backward
// in ATen/native/cudnn/RNN.cpp), so there they are workspace.
[[nodiscard]] TensorView zero_gradient(OperatorLowering& lowering, std::string_view name,
                                       const Shape& shape, StorageClass unused_class);
/// x, h0, [c0], weights, y, reserve, dy.
[[nodiscard]] std::vector<TensorView> backward_reads(OperatorLowering& lowering,
                                                     const RecurrentNetwork& n,
                                                     StorageClass unused_class);
/// dx, dh0, [dc0]. The states' gradients are those of inputs if the initial states are inputs.
[[nodiscard]] std::vector<TensorView> backward_writes(OperatorLowering& lowering,
                                                      const RecurrentNetwork& n,
                                                      StorageClass unused_class);
[[nodiscard]] std::vector<TensorView> weight_gradients(OperatorLowering& lowering);
/// Passes the gradients on. `writes`: from backward_writes().
void give_gradients(OperatorLowering& lowering, const std::vector<TensorView>& writes,
                    const std::vector<TensorView>& weights);

// The lowering rules.
void forward_cudnn_network(OperatorLowering& lowering);
void backward_cudnn_network(OperatorLowering& lowering);
void forward_own_network(OperatorLowering& lowering);
void backward_own_network(OperatorLowering& lowering);

}  // namespace stowage
