// The host kernels: one function a kernel of the `stowage` set, for kernel.hpp's argument order.
//
// float32 only (indices int64, masks uint8 or boolean; step/kernel_support.hpp lists what runs in
// other types), row-major, contiguous. Arguments may not overlap except where kernel.hpp says "in
// place". Every function checks its arguments' types and shapes and throws KernelError where they
// do not suit. Sums over many elements are taken in double, in a fixed order, so that the same
// inputs give the same bits at any address.
#pragma once

#include <stdexcept>

#include "gpu_probe/backend/backend.hpp"

namespace stowage::host {

class KernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// convolution.cpp
void convolution_forward(const KernelCall& call);
void convolution_backward_data(const KernelCall& call);
void convolution_backward_filter(const KernelCall& call);
void transposed_convolution_forward(const KernelCall& call);
void transposed_convolution_backward_data(const KernelCall& call);
void transposed_convolution_backward_filter(const KernelCall& call);
// matrix.cpp
void linear_forward(const KernelCall& call);
void linear_backward_data(const KernelCall& call);
void linear_backward_filter(const KernelCall& call);
void matmul(const KernelCall& call);
// normalisation.cpp
void batch_norm_forward(const KernelCall& call);
void batch_norm_inference(const KernelCall& call);
void batch_norm_backward(const KernelCall& call);
void layer_norm_forward(const KernelCall& call);
void layer_norm_backward(const KernelCall& call);
// group_norm.cpp
void group_norm_forward(const KernelCall& call);
void group_norm_backward(const KernelCall& call);
// rms_norm.cpp
void rms_norm_forward(const KernelCall& call);
void rms_norm_backward(const KernelCall& call);
// local_response_norm.cpp
void local_response_norm_forward(const KernelCall& call);
void local_response_norm_backward(const KernelCall& call);
// elementwise.cpp
void relu_forward(const KernelCall& call);
void relu_backward(const KernelCall& call);
void gelu_forward(const KernelCall& call);
void gelu_backward(const KernelCall& call);
void accumulate(const KernelCall& call);
void scale(const KernelCall& call);
// unary.cpp
void unary_forward(const KernelCall& call);
void unary_backward(const KernelCall& call);
// gated.cpp
void prelu_forward(const KernelCall& call);
void prelu_backward(const KernelCall& call);
void glu_forward(const KernelCall& call);
void glu_backward(const KernelCall& call);
// dropout.cpp
void dropout_forward(const KernelCall& call);
void dropout_backward(const KernelCall& call);
void feature_dropout_forward(const KernelCall& call);
void feature_dropout_backward(const KernelCall& call);
// broadcast.cpp
void add(const KernelCall& call);
void multiply(const KernelCall& call);
void subtract(const KernelCall& call);
void divide(const KernelCall& call);
void sum_to_shape(const KernelCall& call);
void channel_sum(const KernelCall& call);
// reduction.cpp
void reduce(const KernelCall& call);
void expand(const KernelCall& call);
// pooling.cpp
void max_pool_forward(const KernelCall& call);
void max_pool_backward(const KernelCall& call);
void avg_pool_forward(const KernelCall& call);
void avg_pool_backward(const KernelCall& call);
void adaptive_avg_pool_forward(const KernelCall& call);
void adaptive_avg_pool_backward(const KernelCall& call);
void adaptive_max_pool_forward(const KernelCall& call);
void adaptive_max_pool_backward(const KernelCall& call);
// resampling.cpp
void upsample_forward(const KernelCall& call);
void upsample_backward(const KernelCall& call);
// padding.cpp
void pad(const KernelCall& call);
void pad_backward(const KernelCall& call);
void roll(const KernelCall& call);
// layout.cpp
void concatenate(const KernelCall& call);
void slice(const KernelCall& call);
void permute(const KernelCall& call);
void copy(const KernelCall& call);
void cast(const KernelCall& call);  // cast.cpp
void fill(const KernelCall& call);
void iota(const KernelCall& call);
// embedding.cpp
void embedding_forward(const KernelCall& call);
void embedding_backward(const KernelCall& call);
// softmax.cpp
void softmax_forward(const KernelCall& call);
void softmax_backward(const KernelCall& call);
void log_softmax_forward(const KernelCall& call);
void log_softmax_backward(const KernelCall& call);
// loss.cpp
void cross_entropy_forward(const KernelCall& call);
void cross_entropy_backward(const KernelCall& call);
void nll_loss_forward(const KernelCall& call);
void nll_loss_backward(const KernelCall& call);
// pointwise_loss.cpp
void mse_forward(const KernelCall& call);
void mse_backward(const KernelCall& call);
void l1_forward(const KernelCall& call);
void l1_backward(const KernelCall& call);
void bce_forward(const KernelCall& call);
void bce_backward(const KernelCall& call);
void kl_div_forward(const KernelCall& call);
void kl_div_backward(const KernelCall& call);
// rotary.cpp
void rotary_forward(const KernelCall& call);
void rotary_backward(const KernelCall& call);
// positions.cpp
void rotary_table(const KernelCall& call);
void relative_buckets(const KernelCall& call);
// rnn.cpp
void rnn_forward(const KernelCall& call);
void rnn_backward(const KernelCall& call);
// update.cpp
void sgd_update(const KernelCall& call);
void adam_update(const KernelCall& call);
// optimizer_update.cpp
void optimizer_update(const KernelCall& call);

}  // namespace stowage::host
