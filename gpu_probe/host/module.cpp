// The module's entry: kernels by name, and what they throw as text.
#include <cblas.h>
#include <omp.h>

#include <exception>

#include "gpu_probe/host/arguments.hpp"
#include "gpu_probe/host/kernel_table.hpp"

namespace stowage::host {
namespace {

using KernelFunction = void (*)(const KernelCall&);

KernelFunction function_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::convolution_forward:
      return convolution_forward;
    case Kernel::convolution_backward_data:
      return convolution_backward_data;
    case Kernel::convolution_backward_filter:
      return convolution_backward_filter;
    case Kernel::transposed_convolution_forward:
      return transposed_convolution_forward;
    case Kernel::transposed_convolution_backward_data:
      return transposed_convolution_backward_data;
    case Kernel::transposed_convolution_backward_filter:
      return transposed_convolution_backward_filter;
    case Kernel::channel_sum:
      return channel_sum;
    case Kernel::linear_forward:
      return linear_forward;
    case Kernel::linear_backward_data:
      return linear_backward_data;
    case Kernel::linear_backward_filter:
      return linear_backward_filter;
    case Kernel::matmul:
      return matmul;
    case Kernel::batch_norm_forward:
      return batch_norm_forward;
    case Kernel::batch_norm_inference:
      return batch_norm_inference;
    case Kernel::batch_norm_backward:
      return batch_norm_backward;
    case Kernel::layer_norm_forward:
      return layer_norm_forward;
    case Kernel::layer_norm_backward:
      return layer_norm_backward;
    case Kernel::relu_forward:
      return relu_forward;
    case Kernel::relu_backward:
      return relu_backward;
    case Kernel::gelu_forward:
      return gelu_forward;
    case Kernel::gelu_backward:
      return gelu_backward;
    case Kernel::max_pool_forward:
      return max_pool_forward;
    case Kernel::max_pool_backward:
      return max_pool_backward;
    case Kernel::avg_pool_forward:
      return avg_pool_forward;
    case Kernel::avg_pool_backward:
      return avg_pool_backward;
    case Kernel::adaptive_avg_pool_forward:
      return adaptive_avg_pool_forward;
    case Kernel::adaptive_avg_pool_backward:
      return adaptive_avg_pool_backward;
    case Kernel::dropout_forward:
      return dropout_forward;
    case Kernel::dropout_backward:
      return dropout_backward;
    case Kernel::add:
      return add;
    case Kernel::multiply:
      return multiply;
    case Kernel::sum_to_shape:
      return sum_to_shape;
    case Kernel::accumulate:
      return accumulate;
    case Kernel::concatenate:
      return concatenate;
    case Kernel::slice:
      return slice;
    case Kernel::permute:
      return permute;
    case Kernel::copy:
      return copy;
    case Kernel::fill:
      return fill;
    case Kernel::iota:
      return iota;
    case Kernel::embedding_forward:
      return embedding_forward;
    case Kernel::embedding_backward:
      return embedding_backward;
    case Kernel::softmax_forward:
      return softmax_forward;
    case Kernel::softmax_backward:
      return softmax_backward;
    case Kernel::cross_entropy_forward:
      return cross_entropy_forward;
    case Kernel::cross_entropy_backward:
      return cross_entropy_backward;
    case Kernel::mse_forward:
      return mse_forward;
    case Kernel::mse_backward:
      return mse_backward;
    case Kernel::sgd_update:
      return sgd_update;
    case Kernel::adam_update:
      return adam_update;
    default:
      return nullptr;  // PyTorch's own, or without a host kernel yet
  }
}

bool run(const KernelCall& call, std::string& error) {
  try {
    const KernelFunction function = function_of(call.kernel);
    require(function != nullptr, "the host kernels have no such kernel");
    function(call);
    return true;
  } catch (const std::exception& refusal) {
    error = fmt::format("{}: {}", to_string(call.kernel), refusal.what());
    return false;
  }
}

void set_threads(int threads) {
  omp_set_num_threads(threads);
  openblas_set_num_threads(threads);
}

constexpr HostKernelTable table{run, set_threads};

}  // namespace
}  // namespace stowage::host

extern "C" __attribute__((visibility("default"))) const stowage::HostKernelTable*
stowage_host_kernels() {
  return &stowage::host::table;
}
