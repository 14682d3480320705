// lstm, gru and rnn as our executor runs them: one kernel forward, one backward.
#include "estimator/catalogue/recurrent.hpp"
#include "estimator/step/rnn_reserve.hpp"

namespace stowage {

void forward_own_network(OperatorLowering& lowering) {
  const RecurrentNetwork n = network_of(lowering);
  std::vector<TensorView> reads{lowering.input()};
  const std::vector<TensorView> first = first_states(lowering, n);
  reads.insert(reads.end(), first.begin(), first.end());
  append_parameters(lowering, reads);
  const TensorView y = lowering.new_output();
  std::vector<TensorView> writes{y};
  for (const TensorView& state : last_states(lowering, n)) writes.push_back(state);
  if (lowering.training()) {
    const std::int64_t value_bytes = element_size(statistics_type(y.type));
    const Affine bytes =
        n.sequence * n.batch *
        Affine(rnn_reserve_bytes(n.cell, n.layers, n.directions, n.hidden, value_bytes));
    writes.push_back(
        lowering.new_tensor("reserve", {bytes}, DataType::uint8, StorageClass::saved_auxiliary));
    lowering.save("reserve", writes.back());
  }
  lowering.emit(Kernel::rnn_forward, "forward", reads, writes,
                {.attributes = cell_attributes(lowering, n), .flops = flops_of(lowering, n)});
  lowering.save("input", lowering.input());
  lowering.save("h0", first[0]);
  if (n.has_cell_state()) lowering.save("c0", first[1]);
  lowering.save("output", y);
}

void backward_own_network(OperatorLowering& lowering) {
  constexpr StorageClass unasked = StorageClass::activation_gradient;
  const RecurrentNetwork n = network_of(lowering);
  std::vector<TensorView> reads = backward_reads(lowering, n, unasked);
  const bool states = lowering.attributes().boolean("states");
  const bool cell = states && n.has_cell_state() && lowering.has_output_gradient(2);
  if (states && lowering.has_output_gradient(1)) {
    reads.push_back(lowering.output_gradient(1));
  } else if (cell) {
    reads.push_back(zero_gradient(lowering, "grad_hn", n.hidden_state(), unasked));
  }
  if (cell) reads.push_back(lowering.output_gradient(2));
  std::vector<TensorView> writes = backward_writes(lowering, n, unasked);
  const std::vector<TensorView> weights = weight_gradients(lowering);
  std::vector<TensorView> all = writes;
  all.insert(all.end(), weights.begin(), weights.end());
  lowering.emit(
      Kernel::rnn_backward, "backward", reads, all,
      {.attributes = cell_attributes(lowering, n), .flops = flops_of(lowering, n) * Affine(2)});
  give_gradients(lowering, writes, weights);
}

}  // namespace stowage
