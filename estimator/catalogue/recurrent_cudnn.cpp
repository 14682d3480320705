// lstm, gru and rnn as PyTorch runs them.
//
// PyTorch on CUDA calls cuDNN (ATen/native/cudnn/RNN.cpp, 2.15): it saves the input, the first
// states (zeros that it makes where none are given), the result and cuDNN's reserve. Its weights
// are views of one buffer, and so are their gradients; here each is a storage of its own, of the
// same bytes in sum. Reserve and workspace: pytorch/recurrent.hpp.
#include <fmt/format.h>

#include "estimator/catalogue/recurrent.hpp"
#include "estimator/pytorch/recurrent.hpp"

namespace stowage {

namespace {

Affine parameter_bytes(const OperatorLowering& lowering) {
  Affine bytes = 0;
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    bytes = bytes + byte_count(lowering.parameter(i));
  }
  return bytes;
}

CudnnRecurrence recurrence_of(const RecurrentNetwork& n) {
  return {.cell = n.cell,
          .layers = n.layers,
          .directions = n.directions,
          .hidden = n.hidden,
          .positions = n.sequence * n.batch};
}

Affine cudnn_workspace(const OperatorLowering& lowering) {
  return cudnn_recurrent_workspace(parameter_bytes(lowering));
}

StorageId recurrent_scratch(OperatorLowering& lowering, std::string_view name, Affine bytes) {
  return lowering.new_tensor(name, {bytes}, DataType::uint8, StorageClass::workspace).storage;
}

}  // namespace

// cuDNN works on [sequence, batch, features]: with batch_first the input is copied, and the result
// is a view of one laid out so.
void forward_cudnn_network(OperatorLowering& lowering) {
  const RecurrentNetwork n = network_of(lowering);
  const TensorView x = lowering.input();
  std::vector<TensorView> reads{x};
  const std::vector<TensorView> first = first_states(lowering, n);
  reads.insert(reads.end(), first.begin(), first.end());
  append_parameters(lowering, reads);
  TensorView y = lowering.new_output();
  if (n.batch_first) {
    y.strides = {y.shape[2], y.shape[0] * y.shape[2], 1};
    lowering.set_output(0, y);
  }
  std::vector<TensorView> writes{y};
  for (const TensorView& state : last_states(lowering, n)) writes.push_back(state);
  std::vector<StorageId> temporaries{recurrent_scratch(
      lowering, "workspace", cudnn_workspace(lowering) + sequence_copy(x, n.batch_first))};
  if (lowering.training()) {
    const TensorView reserve =
        lowering.new_tensor("reserve", {cudnn_reserve(recurrence_of(n), x.type)}, DataType::uint8,
                            StorageClass::saved_auxiliary);
    writes.push_back(reserve);
    lowering.save("reserve", reserve);
  }
  lowering.emit(Kernel::rnn_forward, "forward", reads, writes,
                {.attributes = cell_attributes(lowering, n),
                 .temporaries = temporaries,
                 .flops = flops_of(lowering, n)});
  lowering.save("input", x);
  lowering.save("h0", first[0]);
  if (n.has_cell_state()) lowering.save("c0", first[1]);
  lowering.save("output", y);
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    lowering.save(fmt::format("weight{}", i), lowering.parameter(i));
  }
}

// Where no gradient of a last state arrives, PyTorch makes zeros.
void backward_cudnn_network(OperatorLowering& lowering) {
  const RecurrentNetwork n = network_of(lowering);
  std::vector<TensorView> reads = backward_reads(lowering, n, StorageClass::workspace);
  const TensorView dy = reads.back();
  const TensorView& x = lowering.saved("input");
  Affine inner = cudnn_workspace(lowering) + sequence_copy(x, n.batch_first) +
                 sequence_copy(dy, n.batch_first);
  const Affine element = element_size(x.type);
  for (int i = 1; i <= (n.has_cell_state() ? 2 : 1); ++i) {
    if (lowering.attributes().boolean("states") && lowering.has_output_gradient(i)) {
      reads.push_back(lowering.output_gradient(i));
    } else {
      inner = inner + element_count(i == 1 ? n.hidden_state() : n.cell_state()) * element;
    }
  }
  std::vector<TensorView> writes = backward_writes(lowering, n, StorageClass::workspace);
  const std::vector<TensorView> weights = weight_gradients(lowering);
  std::vector<TensorView> all = writes;
  all.insert(all.end(), weights.begin(), weights.end());
  lowering.emit(Kernel::rnn_backward, "backward", reads, all,
                {.attributes = cell_attributes(lowering, n),
                 .temporaries = {recurrent_scratch(lowering, "backward_workspace", inner)},
                 .flops = flops_of(lowering, n) * Affine(2)});
  give_gradients(lowering, writes, weights);
}

}  // namespace stowage
