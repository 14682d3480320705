// CallCompletion: the interface of the rules in the ATen table.
//
// One object completes one recorded call. The rule emits the kernel calls that PyTorch makes for
// it, in order, and adds the storages that live within the call. The call's arguments and results
// live until its last kernel.
#pragma once

#include <string_view>
#include <vector>

#include "estimator/recorded/aten_call.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

class CallCompletion {
 public:
  /// `step`: storages and convolutions are added to it. Both arguments must outlive the object.
  CallCompletion(StepGraph& step, const AtenCall& call) : step_(step), call_(call) {}

  [[nodiscard]] const AtenCall& call() const { return call_; }
  [[nodiscard]] double compute_capability() const { return step_.settings.compute_capability; }

  struct Extras {
    Attributes attributes = {};
    Affine flops = 0;
    int convolution = -1;                     ///< from add_convolution()
    std::vector<StorageId> temporaries = {};  ///< from scratch()
  };
  /// Appends a kernel call. Its name is the recorded node's, or "<node>.<suffix>".
  KernelNode& emit(Kernel kernel, std::string_view suffix, std::vector<TensorView> reads,
                   std::vector<TensorView> writes, Extras extras);
  [[nodiscard]] int add_convolution(ConvolutionCall call);
  /// A temporary storage of one kernel call; for 0 bytes there is none.
  [[nodiscard]] std::vector<StorageId> scratch(std::string_view suffix, Affine bytes);
  /// `view` if it has the memory order asked for; else emits a copy that lives within the call.
  [[nodiscard]] TensorView contiguous(const TensorView& view, std::string_view suffix,
                                      bool channels_last = false);
  /// As above, in the memory order in which the kernel reads the argument
  /// (pytorch/argument_order.hpp).
  [[nodiscard]] TensorView argument_view(Kernel kernel, std::size_t argument,
                                         const TensorView& view, const TensorView& leading);
  /// Sets the size of a storage that was recorded as empty, because PyTorch does not know it
  /// without a GPU.
  void resize(StorageId storage, Affine bytes);

  /// The nodes that replace the recorded one. Precondition: one was emitted.
  [[nodiscard]] std::vector<KernelNode> take() &&;

 private:
  StorageId add_storage(std::string_view suffix, Affine bytes);

  StepGraph& step_;
  const AtenCall& call_;
  std::vector<KernelNode> nodes_;
};

}  // namespace stowage
