// The module's entry: kernels by name, and what they throw as text.
#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <exception>
#include <iterator>

#include "gpu_probe/host/kernels/arguments.hpp"
#include "gpu_probe/host/kernels/kernel_table.hpp"

namespace stowage::host {
namespace {

using KernelFunction = void (*)(const KernelCall&);

struct Entry {
  Kernel kernel;
  KernelFunction function;
};

constexpr Entry entries[] = {
    {Kernel::convolution_forward, convolution_forward},
    {Kernel::convolution_backward_data, convolution_backward_data},
    {Kernel::convolution_backward_filter, convolution_backward_filter},
    {Kernel::transposed_convolution_forward, transposed_convolution_forward},
    {Kernel::transposed_convolution_backward_data, transposed_convolution_backward_data},
    {Kernel::transposed_convolution_backward_filter, transposed_convolution_backward_filter},
    {Kernel::channel_sum, channel_sum},
    {Kernel::linear_forward, linear_forward},
    {Kernel::linear_backward_data, linear_backward_data},
    {Kernel::linear_backward_filter, linear_backward_filter},
    {Kernel::matmul, matmul},
    {Kernel::batch_norm_forward, batch_norm_forward},
    {Kernel::batch_norm_inference, batch_norm_inference},
    {Kernel::batch_norm_backward, batch_norm_backward},
    {Kernel::layer_norm_forward, layer_norm_forward},
    {Kernel::layer_norm_backward, layer_norm_backward},
    {Kernel::relu_forward, relu_forward},
    {Kernel::relu_backward, relu_backward},
    {Kernel::gelu_forward, gelu_forward},
    {Kernel::gelu_backward, gelu_backward},
    {Kernel::max_pool_forward, max_pool_forward},
    {Kernel::max_pool_backward, max_pool_backward},
    {Kernel::avg_pool_forward, avg_pool_forward},
    {Kernel::avg_pool_backward, avg_pool_backward},
    {Kernel::adaptive_avg_pool_forward, adaptive_avg_pool_forward},
    {Kernel::adaptive_avg_pool_backward, adaptive_avg_pool_backward},
    {Kernel::dropout_forward, dropout_forward},
    {Kernel::dropout_backward, dropout_backward},
    {Kernel::add, add},
    {Kernel::multiply, multiply},
    {Kernel::sum_to_shape, sum_to_shape},
    {Kernel::accumulate, accumulate},
    {Kernel::concatenate, concatenate},
    {Kernel::slice, slice},
    {Kernel::permute, permute},
    {Kernel::copy, copy},
    {Kernel::cast, cast},
    {Kernel::fill, fill},
    {Kernel::iota, iota},
    {Kernel::embedding_forward, embedding_forward},
    {Kernel::embedding_backward, embedding_backward},
    {Kernel::softmax_forward, softmax_forward},
    {Kernel::softmax_backward, softmax_backward},
    {Kernel::log_softmax_forward, log_softmax_forward},
    {Kernel::log_softmax_backward, log_softmax_backward},
    {Kernel::nll_loss_forward, nll_loss_forward},
    {Kernel::nll_loss_backward, nll_loss_backward},
    {Kernel::cross_entropy_forward, cross_entropy_forward},
    {Kernel::cross_entropy_backward, cross_entropy_backward},
    {Kernel::mse_forward, mse_forward},
    {Kernel::mse_backward, mse_backward},
    {Kernel::sgd_update, sgd_update},
    {Kernel::adam_update, adam_update},
    {Kernel::optimizer_update, optimizer_update},
    {Kernel::unary_forward, unary_forward},
    {Kernel::unary_backward, unary_backward},
    {Kernel::prelu_forward, prelu_forward},
    {Kernel::prelu_backward, prelu_backward},
    {Kernel::glu_forward, glu_forward},
    {Kernel::glu_backward, glu_backward},
    {Kernel::subtract, subtract},
    {Kernel::divide, divide},
    {Kernel::scale, scale},
    {Kernel::reduce, reduce},
    {Kernel::expand, expand},
    {Kernel::pad, pad},
    {Kernel::pad_backward, pad_backward},
    {Kernel::roll, roll},
    {Kernel::upsample_forward, upsample_forward},
    {Kernel::upsample_backward, upsample_backward},
    {Kernel::adaptive_max_pool_forward, adaptive_max_pool_forward},
    {Kernel::adaptive_max_pool_backward, adaptive_max_pool_backward},
    {Kernel::group_norm_forward, group_norm_forward},
    {Kernel::group_norm_backward, group_norm_backward},
    {Kernel::rms_norm_forward, rms_norm_forward},
    {Kernel::rms_norm_backward, rms_norm_backward},
    {Kernel::local_response_norm_forward, local_response_norm_forward},
    {Kernel::local_response_norm_backward, local_response_norm_backward},
    {Kernel::feature_dropout_forward, feature_dropout_forward},
    {Kernel::feature_dropout_backward, feature_dropout_backward},
    {Kernel::rotary_forward, rotary_forward},
    {Kernel::rotary_backward, rotary_backward},
    {Kernel::rotary_table, rotary_table},
    {Kernel::relative_buckets, relative_buckets},
    {Kernel::rnn_forward, rnn_forward},
    {Kernel::rnn_backward, rnn_backward},
    {Kernel::l1_forward, l1_forward},
    {Kernel::l1_backward, l1_backward},
    {Kernel::bce_forward, bce_forward},
    {Kernel::bce_backward, bce_backward},
    {Kernel::kl_div_forward, kl_div_forward},
    {Kernel::kl_div_backward, kl_div_backward},
};

/// Null: there is none.
KernelFunction function_of(Kernel kernel) {
  const auto found = std::find_if(std::begin(entries), std::end(entries),
                                  [kernel](const Entry& e) { return e.kernel == kernel; });
  return found == std::end(entries) ? nullptr : found->function;
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

extern "C" __attribute__((visibility("default"))) const char* stowage_host_kernels_build() {
  return STOWAGE_HOST_KERNELS_BUILD;
}
