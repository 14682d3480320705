// The printed names of the step graph's enumerations.
#include <array>

#include "estimator/step/step_graph.hpp"

namespace stowage {

std::string_view to_string(Mode mode) { return mode == Mode::train ? "train" : "inference"; }

std::string_view to_string(Offload offload) {
  constexpr std::array<std::string_view, 4> names{"none", "optimizer", "parameters", "all"};
  return names[static_cast<std::size_t>(offload)];
}

std::string_view to_string(Phase phase) {
  constexpr std::array<std::string_view, 4> names{"forward", "loss", "backward", "update"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view to_string(StorageClass storage_class) {
  constexpr std::array<std::string_view, storage_class_count> names{
      "input",     "augmented_input", "parameter",  "parameter_copy",      "buffer",
      "gradient",  "optimizer_state", "activation", "activation_gradient", "saved_auxiliary",
      "workspace", "temporary",       "kv_cache"};
  return names[static_cast<std::size_t>(storage_class)];
}

std::string_view kernel_name(const KernelNode& node) {
  return node.kernel == Kernel::foreign ? std::string_view(*node.foreign_kernel)
                                        : to_string(node.kernel);
}

}  // namespace stowage
