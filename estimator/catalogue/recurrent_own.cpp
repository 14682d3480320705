// lstm, gru and rnn as our executor runs them: one kernel forward, one backward.
#include "estimator/catalogue/recurrent.hpp"
#include "estimator/step/rnn_reserve.hpp"
#include "estimator/step/rnn_scratch.hpp"

namespace stowage {

namespace {

TensorView bytes_of_network(OperatorLowering& lowering, std::string_view name, const Affine& values,
                            StorageClass storage_class) {
  const std::int64_t each = element_size(statistics_type(lowering.input().type));
  return lowering.new_tensor(name, {values * Affine(each)}, DataType::uint8, storage_class);
}

RnnSizes sizes_of_network(const OperatorLowering& lowering, const RecurrentNetwork& n) {
  RnnSizes sizes{.gates = n.gates,
                 .layers = n.layers,
                 .directions = n.directions,
                 .in = n.inputs,
                 .hidden = n.hidden,
                 .copies = element_size(lowering.input().type) == 2};
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    sizes.weights += element_count(lowering.parameter(i).shape).constant;
  }
  return sizes;
}

/// For a device; the host's kernels leave it alone.
TensorView scratch_of_network(OperatorLowering& lowering, const RecurrentNetwork& n,
                              std::string_view name, const RnnScratch& wanted) {
  return bytes_of_network(lowering, name,
                          n.sequence * n.batch * Affine(wanted.of_position) +
                              n.batch * Affine(wanted.of_sequence) + Affine(wanted.once),
                          StorageClass::temporary);
}

}  // namespace

void forward_own_network(OperatorLowering& lowering) {
  const RecurrentNetwork n = network_of(lowering);
  std::vector<TensorView> reads{lowering.input()};
  const std::vector<TensorView> first = first_states(lowering, n);
  reads.insert(reads.end(), first.begin(), first.end());
  append_parameters(lowering, reads);
  const TensorView y = lowering.new_output();
  std::vector<TensorView> writes{y};
  for (const TensorView& state : last_states(lowering, n)) writes.push_back(state);
  const bool training = lowering.training();
  writes.push_back(bytes_of_network(
      lowering, "reserve",
      n.sequence * n.batch * Affine(rnn_reserve_values(n.cell, n.layers, n.directions, n.hidden)),
      training ? StorageClass::saved_auxiliary : StorageClass::temporary));
  std::vector<StorageId> temporaries;
  if (training) {
    lowering.save("reserve", writes.back());
  } else {
    temporaries.push_back(writes.back().storage);
  }
  writes.push_back(scratch_of_network(lowering, n, "scratch",
                                      rnn_forward_scratch(sizes_of_network(lowering, n))));
  temporaries.push_back(writes.back().storage);
  Attributes attributes = cell_attributes(lowering, n);
  if (!training) attributes.set("dropout", 0.0);
  lowering.emit(Kernel::rnn_forward, "forward", reads, writes,
                {.attributes = attributes,
                 .temporaries = std::move(temporaries),
                 .flops = flops_of(lowering, n)});
  lowering.save("input", lowering.input());
  lowering.save("h0", first[0]);
  if (n.has_cell_state()) lowering.save("c0", first[1]);
  lowering.save("output", y);
}

void backward_own_network(OperatorLowering& lowering) {
  constexpr StorageClass unused_class = StorageClass::activation_gradient;
  const RecurrentNetwork n = network_of(lowering);
  std::vector<TensorView> reads = backward_reads(lowering, n, unused_class);
  const bool states = lowering.attributes().boolean("states");
  const bool cell = states && n.has_cell_state() && lowering.has_output_gradient(2);
  if (states && lowering.has_output_gradient(1)) {
    reads.push_back(lowering.output_gradient(1));
  } else if (cell) {
    reads.push_back(zero_gradient(lowering, "grad_hn", n.hidden_state(), unused_class));
  }
  if (cell) reads.push_back(lowering.output_gradient(2));
  std::vector<TensorView> writes = backward_writes(lowering, n, unused_class);
  const std::vector<TensorView> weights = weight_gradients(lowering);
  std::vector<TensorView> all = writes;
  all.insert(all.end(), weights.begin(), weights.end());
  all.push_back(scratch_of_network(lowering, n, "backward.scratch",
                                   rnn_backward_scratch(sizes_of_network(lowering, n))));
  lowering.emit(Kernel::rnn_backward, "backward", reads, all,
                {.attributes = cell_attributes(lowering, n),
                 .temporaries = {all.back().storage},
                 .flops = flops_of(lowering, n) * Affine(2)});
  give_gradients(lowering, writes, weights);
}

}  // namespace stowage
