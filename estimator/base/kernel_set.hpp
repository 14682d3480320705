// Whose kernels a step graph is made of, and what follows from that.
#pragma once

#include <array>
#include <string_view>

namespace stowage {

enum class KernelSet {
  pytorch,  ///< what eager PyTorch runs on a CUDA device: int64 pooling indices, foreach
            ///< temporaries
  stowage,  ///< what our own executor runs, on the GPU and on the CPU alike
};

/// The facts of a kernel set beside the operators' rules (RulesBySet in model/operator_row.hpp).
/// Code asks for the fact that it needs, never for the set, so that a set that is added is a row
/// here and rules for the operators that differ.
struct KernelSetTraits {
  KernelSet set = KernelSet::stowage;
  std::string_view name;

  /// A backend of gpu_probe runs the kernels, so that a step's arguments must suit them.
  bool executable = true;
  /// Kernels take whole storages, row-major: no strides, no offset, no channels innermost.
  bool contiguous_only = true;
  /// Kernels take operands of one format, so that a step converts them first. PyTorch's pointwise
  /// kernels promote as they read (aten/src/ATen/TensorIterator.cpp).
  bool casts_to_promote = true;
  /// Memory is freed when its last reference goes: callers hold arguments until they return,
  /// autograd's nodes what they saved, a view its base, the script its variables. Otherwise memory
  /// is there from its first use to its last.
  bool frees_by_reference = false;
  /// Backward is torch.autograd's: a parameter's gradients are summed before they reach .grad, an
  /// overwritten view's go through its base (CopySlices), and overwriting what backward needs is
  /// refused.
  bool autograd = false;
  /// An operator may copy its argument and hand the copy to several kernels: scratch that
  /// outlives a node. Otherwise each node has its own.
  bool shares_scratch = false;
  /// What lasts the whole step is on the GPU though no kernel touches it: counters of batches,
  /// a data loader's next batches (`prefetch`). Otherwise only what a kernel touches is loaded.
  bool loads_untouched = false;
  /// Which kernel a convolution or attention calls depends on the card's compute capability and on
  /// torch.backends (ConvolutionSettings); some run without cuDNN
  /// (workspace/native_convolution.hpp).
  bool dispatches_by_card = false;
  /// The update is a library's optimizer: its calls for several parameters at once, temporaries,
  /// bookkeeping and state on the host. Otherwise a kernel updates one parameter, for the
  /// optimizers that have such a kernel.
  bool library_optimizer = false;
};

/// In the order of KernelSet.
inline constexpr std::array kernel_set_table{
    KernelSetTraits{.set = KernelSet::pytorch,
                    .name = "pytorch",
                    .executable = false,
                    .contiguous_only = false,
                    .casts_to_promote = false,
                    .frees_by_reference = true,
                    .autograd = true,
                    .shares_scratch = true,
                    .loads_untouched = true,
                    .dispatches_by_card = true,
                    .library_optimizer = true},
    KernelSetTraits{.set = KernelSet::stowage, .name = "stowage"},
};

[[nodiscard]] constexpr const KernelSetTraits& traits(KernelSet set) {
  return kernel_set_table[static_cast<std::size_t>(set)];
}
[[nodiscard]] constexpr std::string_view to_string(KernelSet set) { return traits(set).name; }

inline constexpr auto all_kernel_sets = [] {
  std::array<KernelSet, kernel_set_table.size()> sets{};
  for (std::size_t i = 0; i < sets.size(); ++i) sets[i] = kernel_set_table[i].set;
  return sets;
}();
static_assert([] {
  for (std::size_t i = 0; i < kernel_set_table.size(); ++i) {
    if (static_cast<std::size_t>(kernel_set_table[i].set) != i) return false;
  }
  return true;
}());

}  // namespace stowage
