// cuDNN's recurrent layers (ATen/native/cudnn/RNN.cpp).
#include <fmt/format.h>

#include <array>

#include "estimator/pytorch/recurrent.hpp"
#include "estimator/recorded/aten_table.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t reserve_place = 3;

Affine weight_bytes(const AtenCall& call) {
  Affine bytes = 0;
  for (const TensorView& weight : call.tensors("weight")) bytes = bytes + byte_count(weight);
  return bytes;
}

/// cudnnRNNMode_t.
CudnnRecurrence recurrence_of(const AtenCall& call, const TensorView& x) {
  constexpr std::array<std::string_view, 4> cells{"relu", "tanh", "lstm", "gru"};
  const std::int64_t mode = call.integer("mode");
  if (mode < 0 || mode >= std::ssize(cells)) call.refuse("whose 'mode' is no cell of cuDNN's");
  CudnnRecurrence found{.cell = cells[static_cast<std::size_t>(mode)],
                        .layers = call.integer("num_layers"),
                        .directions = call.boolean("bidirectional", false) ? 2 : 1,
                        .hidden = call.integer("hidden_size"),
                        .positions = x.shape[0] * x.shape[1]};
  if (found.layers < 1 || found.hidden < 1) call.refuse("without layers or features");
  return found;
}

/// Two operations for each weight of a matrix, at each position.
Affine recurrent_flops(const AtenCall& call, Affine positions) {
  Affine products = 0;
  for (const TensorView& weight : call.tensors("weight")) {
    if (weight.shape.size() == 2) products = products + element_count(weight.shape);
  }
  return positions * products * Affine(2);
}

std::vector<TensorView> recurrent_reads(const AtenCall& call) {
  std::vector<TensorView> reads{call.tensor("input"), call.tensor("hx")};
  if (const TensorView* cell = call.find("cx")) reads.push_back(*cell);
  reads.insert(reads.end(), call.tensors("weight").begin(), call.tensors("weight").end());
  return reads;
}

}  // namespace

bool complete_cudnn_rnn(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const TensorView& x = call.tensor("input", 3);
  const CudnnRecurrence n = recurrence_of(call, x);
  const Affine bytes = cudnn_recurrent_workspace(weight_bytes(call)) +
                       sequence_copy(x, call.boolean("batch_first", false));
  const TensorView* reserve = call.find_result(reserve_place);
  if (reserve != nullptr && call.boolean("train", true) &&
      element_count(reserve->shape) == Affine(0)) {
    completion.resize(reserve->storage, cudnn_reserve(n, x.type));
  }
  completion.emit(Kernel::rnn_forward, {}, recurrent_reads(call), call.node().writes,
                  {.flops = recurrent_flops(call, n.positions),
                   .temporaries = completion.scratch("workspace", bytes)});
  return true;
}

bool complete_cudnn_rnn_backward(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const TensorView& x = call.tensor("input", 3);
  const CudnnRecurrence n = recurrence_of(call, x);
  const bool batch_first = call.boolean("batch_first", false);
  Affine bytes = cudnn_recurrent_workspace(weight_bytes(call)) + sequence_copy(x, batch_first);
  std::vector<TensorView> reads = recurrent_reads(call);
  reads.push_back(call.tensor("output", 3));
  if (call.find("grad_output") != nullptr) {
    const TensorView& dy = call.tensor("grad_output", 3);
    bytes = bytes + sequence_copy(dy, batch_first);
    reads.push_back(dy);
  } else {
    bytes = bytes + byte_count(call.tensor("output"));
  }
  // Where no gradient of a last state arrives, PyTorch makes zeros.
  for (const auto& [state, gradient] : {std::pair{"hx", "grad_hy"}, std::pair{"cx", "grad_cy"}}) {
    const TensorView* const of = call.find(state);
    if (of == nullptr) continue;
    const TensorView* const given = call.find(gradient);
    if (given == nullptr) bytes = bytes + byte_count(*of);
    if (given != nullptr) reads.push_back(*given);
  }
  completion.emit(Kernel::rnn_backward, {}, std::move(reads), call.node().writes,
                  {.flops = recurrent_flops(call, n.positions) * Affine(2),
                   .temporaries = completion.scratch("workspace", bytes)});
  return true;
}

}  // namespace stowage
