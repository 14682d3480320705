// Calls that are one kernel of ours, with its arguments in another order.
#include "estimator/pytorch/kernel_scratch.hpp"
#include "estimator/recorded/aten_table.hpp"

namespace stowage {

namespace {

/// Emits `kernel` over the arguments that the row names.
bool emit_plain(CallCompletion& completion, const AtenRow& row, Kernel kernel,
                std::vector<StorageId> temporaries = {}) {
  const AtenCall& call = completion.call();
  std::vector<TensorView> given;
  std::string_view names = row.arguments;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const std::span<const TensorView> tensors = call.tensors(name);
    if (given.empty() && tensors.empty()) (void)call.tensor(name);  // refuses
    given.insert(given.end(), tensors.begin(), tensors.end());
  }
  const TensorView leading = row.leading.empty() ? given.front() : call.tensor(row.leading);
  std::vector<TensorView> reads;
  for (const TensorView& view : given) {
    reads.push_back(completion.argument_view(kernel, reads.size(), view, leading));
  }
  const Affine flops = element_count(given.front().shape) * Affine(row.flops);
  completion.emit(kernel, {}, std::move(reads), call.node().writes,
                  {.flops = flops, .temporaries = std::move(temporaries)});
  return true;
}

}  // namespace

bool complete_plain(CallCompletion& completion) {
  const AtenRow& row = *find_aten(kernel_name(completion.call().node()));
  return emit_plain(completion, row, row.kernel);
}

bool complete_softmax_backward(CallCompletion& completion) {
  const AtenRow& row = *find_aten(kernel_name(completion.call().node()));
  const TensorView& result = completion.call().tensor("output");
  return emit_plain(completion, row, row.kernel,
                    completion.scratch(softmax_product, softmax_backward_scratch(result)));
}

bool complete_batch_norm(CallCompletion& completion) {
  const AtenRow& row = *find_aten(kernel_name(completion.call().node()));
  const bool by_batch = completion.call().boolean("training", true);
  return emit_plain(completion, row,
                    by_batch ? Kernel::batch_norm_forward : Kernel::batch_norm_inference);
}

}  // namespace stowage
