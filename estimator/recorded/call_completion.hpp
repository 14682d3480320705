// CallCompletion: what a rule of the ATen table is written against.
//
// One object stands for one recorded call. The rule emits the kernel calls that PyTorch makes of
// it, in their order, and makes the storages that these have within the call. What the call was
// given and what it returns is there to the last of them.
#pragma once

#include <string_view>
#include <vector>

#include "estimator/recorded/aten_call.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

class CallCompletion {
 public:
  /// `step`: to which storages and convolutions are added. Both outlive it.
  CallCompletion(StepGraph& step, const AtenCall& call) : step_(step), call_(call) {}

  [[nodiscard]] const AtenCall& call() const { return call_; }
  [[nodiscard]] double compute_capability() const { return step_.settings.compute_capability; }

  struct Extras {
    Attributes attributes = {};
    Affine flops = 0;
    int convolution = -1;                     ///< from add_convolution
    std::vector<StorageId> temporaries = {};  ///< from scratch
  };
  /// The name is the recorded node's, or "<node>.<suffix>".
  KernelNode& emit(Kernel kernel, std::string_view suffix, std::vector<TensorView> reads,
                   std::vector<TensorView> writes, Extras extras);
  [[nodiscard]] int add_convolution(ConvolutionCall call);
  /// Storages within one kernel call; none of 0 bytes.
  [[nodiscard]] std::vector<StorageId> scratch(std::string_view suffix, Affine bytes);
  /// `view` if it lies so, else a copy that lives within the call (emits it).
  [[nodiscard]] TensorView contiguous(const TensorView& view, std::string_view suffix,
                                      bool channels_last = false);
  /// The same by the kernel's own wish (pytorch/argument_order.hpp).
  [[nodiscard]] TensorView as_read(Kernel kernel, std::size_t argument, const TensorView& view,
                                   const TensorView& leading);
  /// The recorder's storage holds nothing, as PyTorch without a GPU does not know its size.
  void resize(StorageId storage, Affine bytes);

  /// The nodes that take the recorded one's place. Precondition: one was emitted.
  [[nodiscard]] std::vector<KernelNode> take() &&;

 private:
  StorageId add_storage(std::string_view suffix, Affine bytes);

  StepGraph& step_;
  const AtenCall& call_;
  std::vector<KernelNode> nodes_;
};

}  // namespace stowage
