// The printed names of the step graph's enumerations.
#include <array>
#include <unordered_map>

#include "estimator/step/kernel.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

std::string_view to_string(Mode mode) { return mode == Mode::train ? "train" : "inference"; }

std::string_view to_string(Phase phase) {
  constexpr std::array<std::string_view, 4> names{"forward", "loss", "backward", "update"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view to_string(StorageClass storage_class) {
  constexpr std::array<std::string_view, storage_class_count> names{
      "input",     "augmented_input", "parameter",  "parameter_copy",      "buffer",
      "gradient",  "optimizer_state", "activation", "activation_gradient", "saved_auxiliary",
      "workspace", "temporary"};
  return names[static_cast<std::size_t>(storage_class)];
}

std::string_view to_string(Kernel kernel) {
  if (kernel == Kernel::foreign) return "foreign";
  constexpr std::array<std::string_view, kernel_count> names{
      "convolution_forward",
      "convolution_backward_data",
      "convolution_backward_filter",
      "transposed_convolution_forward",
      "transposed_convolution_backward_data",
      "transposed_convolution_backward_filter",
      "channel_sum",
      "linear_forward",
      "linear_backward_data",
      "linear_backward_filter",
      "matmul",
      "batch_norm_forward",
      "batch_norm_inference",
      "batch_norm_backward",
      "layer_norm_forward",
      "layer_norm_backward",
      "relu_forward",
      "relu_backward",
      "gelu_forward",
      "gelu_backward",
      "max_pool_forward",
      "max_pool_backward",
      "avg_pool_forward",
      "avg_pool_backward",
      "adaptive_avg_pool_forward",
      "adaptive_avg_pool_backward",
      "dropout_forward",
      "dropout_backward",
      "add",
      "multiply",
      "sum_to_shape",
      "accumulate",
      "concatenate",
      "slice",
      "permute",
      "copy",
      "fill",
      "iota",
      "embedding_forward",
      "embedding_backward",
      "softmax_forward",
      "softmax_backward",
      "attention_forward",
      "attention_backward",
      "log_softmax_forward",
      "log_softmax_backward",
      "nll_loss_forward",
      "nll_loss_backward",
      "cross_entropy_forward",
      "cross_entropy_backward",
      "mse_forward",
      "mse_backward",
      "sgd_update",
      "adam_update",
      "foreach_update",
      "unary_forward",
      "unary_backward",
      "prelu_forward",
      "prelu_backward",
      "glu_forward",
      "glu_backward",
      "subtract",
      "divide",
      "scale",
      "reduce",
      "expand",
      "pad",
      "pad_backward",
      "roll",
      "upsample_forward",
      "upsample_backward",
      "adaptive_max_pool_forward",
      "adaptive_max_pool_backward",
      "group_norm_forward",
      "group_norm_backward",
      "rms_norm_forward",
      "rms_norm_backward",
      "local_response_norm_forward",
      "local_response_norm_backward",
      "feature_dropout_forward",
      "feature_dropout_backward",
      "rotary_forward",
      "rotary_backward",
      "rnn_forward",
      "rnn_backward",
      "l1_forward",
      "l1_backward",
      "bce_forward",
      "bce_backward",
      "kl_div_forward",
      "kl_div_backward",
      "optimizer_update",
      "cast",
      "custom_forward",
      "custom_backward",
      "rotary_table",
      "relative_buckets"};
  return names[static_cast<std::size_t>(kernel)];
}

std::optional<Kernel> find_kernel(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, Kernel> kernels;
    for (int i = 0; i < kernel_count; ++i) {
      kernels.emplace(to_string(static_cast<Kernel>(i)), static_cast<Kernel>(i));
    }
    return kernels;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? std::nullopt : std::optional(found->second);
}

std::string_view kernel_name(const KernelNode& node) {
  return node.kernel == Kernel::foreign ? std::string_view(*node.foreign_kernel)
                                        : to_string(node.kernel);
}

}  // namespace stowage
