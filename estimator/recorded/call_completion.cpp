#include "estimator/recorded/call_completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <unordered_set>
#include <utility>

#include "estimator/pytorch/argument_order.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

StorageId CallCompletion::add_storage(std::string_view suffix, Affine bytes) {
  step_.storages.push_back({.name = dotted(call_.node().name, suffix),
                            .storage_class = StorageClass::workspace,
                            .bytes = bytes,
                            .op = call_.node().op});
  return StorageId::of(step_.storages.size() - 1);
}

std::vector<StorageId> CallCompletion::scratch(std::string_view suffix, Affine bytes) {
  if (bytes == Affine(0)) return {};
  return {add_storage(suffix, bytes)};
}

KernelNode& CallCompletion::emit(Kernel kernel, std::string_view suffix,
                                 std::vector<TensorView> reads, std::vector<TensorView> writes,
                                 Extras extras) {
  const KernelNode& recorded = call_.node();
  nodes_.push_back({.name = suffix.empty() ? recorded.name : dotted(recorded.name, suffix),
                    .kernel = kernel,
                    .phase = recorded.phase,
                    .op = recorded.op,
                    .micro_batch = recorded.micro_batch,
                    .reads = std::move(reads),
                    .writes = std::move(writes),
                    .temporaries = std::move(extras.temporaries),
                    .attributes = std::move(extras.attributes),
                    .flops = extras.flops,
                    .convolution = extras.convolution});
  return nodes_.back();
}

int CallCompletion::add_convolution(ConvolutionCall call) {
  std::vector<ConvolutionCall>& calls = step_.convolutions;
  if (!calls.empty() && calls.back().window == call.window) call.window = calls.back().window;
  calls.push_back(std::move(call));
  return static_cast<int>(calls.size()) - 1;
}

TensorView CallCompletion::contiguous(const TensorView& view, std::string_view suffix,
                                      bool channels_last) {
  const bool has_channels = view.shape.size() == 4 || view.shape.size() == 5;
  if (is_contiguous(view, channels_last && has_channels)) return view;
  TensorView copy =
      laid_out(contiguous_view(StorageId{}, view.shape, view.type), channels_last && has_channels);
  copy.storage = add_storage(suffix, byte_count(copy));
  emit(Kernel::copy, suffix, {view}, {copy}, {});
  return copy;
}

TensorView CallCompletion::argument_view(Kernel kernel, std::size_t argument,
                                         const TensorView& view, const TensorView& leading) {
  const ArgumentOrder order = argument_order(kernel, argument, leading);
  if (order == ArgumentOrder::unchanged) return view;
  return contiguous(view, fmt::format("argument{}", argument),
                    order == ArgumentOrder::channels_last);
}

void CallCompletion::resize(StorageId storage, Affine bytes) {
  step_.storages[storage.index()].bytes = bytes;
}

std::vector<KernelNode> CallCompletion::take() && {
  assert(!nodes_.empty());
  const KernelNode& recorded = call_.node();
  KernelNode& last = nodes_.back();
  last.temporaries.insert(last.temporaries.end(), recorded.temporaries.begin(),
                          recorded.temporaries.end());
  last.holds = recorded.holds;
  std::unordered_set<std::int32_t> there;
  for (const StorageId id : last.holds) there.insert(id.value);
  for (const auto* views : {&last.reads, &last.writes}) {
    for (const TensorView& view : *views) there.insert(view.storage.value);
  }
  for (const auto* views : {&recorded.reads, &recorded.writes}) {
    for (const TensorView& view : *views) {
      if (there.insert(view.storage.value).second) last.holds.push_back(view.storage);
    }
  }
  return std::move(nodes_);
}

}  // namespace stowage
