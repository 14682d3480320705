// The catalogue's rows, one function each, by family; catalogue.cpp lists them.
#pragma once

#include "estimator/model/operator_row.hpp"

namespace stowage::rows {

// convolution.cpp, transposed_convolution.cpp
[[nodiscard]] OperatorRow conv1d();
[[nodiscard]] OperatorRow conv2d();
[[nodiscard]] OperatorRow conv3d();
[[nodiscard]] OperatorRow conv_transpose1d();
[[nodiscard]] OperatorRow conv_transpose2d();
[[nodiscard]] OperatorRow conv_transpose3d();
// linear.cpp
[[nodiscard]] OperatorRow linear();
[[nodiscard]] OperatorRow matmul();
// einsum.cpp
[[nodiscard]] OperatorRow einsum();
// batch_norm.cpp, normalization.cpp, instance_norm.cpp, rms_norm.cpp, local_response_norm.cpp
[[nodiscard]] OperatorRow batch_norm();
[[nodiscard]] OperatorRow layer_norm();
[[nodiscard]] OperatorRow group_norm();
[[nodiscard]] OperatorRow instance_norm();
[[nodiscard]] OperatorRow rms_norm();
[[nodiscard]] OperatorRow rms_norm_plus_one();
[[nodiscard]] OperatorRow rms_norm_wide();
[[nodiscard]] OperatorRow local_response_norm();
// padding.cpp, resampling.cpp
[[nodiscard]] OperatorRow pad();
[[nodiscard]] OperatorRow upsample();
[[nodiscard]] OperatorRow pixel_shuffle();
[[nodiscard]] OperatorRow pixel_unshuffle();
// unary_function.cpp (the row of a function in unary_table.cpp), activation.cpp, gelu.cpp
[[nodiscard]] OperatorRow unary(std::string_view name);
[[nodiscard]] OperatorRow prelu();
[[nodiscard]] OperatorRow glu();
[[nodiscard]] OperatorRow swiglu();
[[nodiscard]] OperatorRow gelu();
// pooling.cpp
[[nodiscard]] OperatorRow max_pool1d();
[[nodiscard]] OperatorRow max_pool2d();
[[nodiscard]] OperatorRow max_pool3d();
[[nodiscard]] OperatorRow avg_pool1d();
[[nodiscard]] OperatorRow avg_pool2d();
[[nodiscard]] OperatorRow avg_pool3d();
// adaptive_pooling.cpp
[[nodiscard]] OperatorRow adaptive_avg_pool1d();
[[nodiscard]] OperatorRow adaptive_avg_pool2d();
[[nodiscard]] OperatorRow adaptive_avg_pool3d();
[[nodiscard]] OperatorRow adaptive_max_pool1d();
[[nodiscard]] OperatorRow adaptive_max_pool2d();
[[nodiscard]] OperatorRow adaptive_max_pool3d();
// dropout.cpp
[[nodiscard]] OperatorRow dropout();
[[nodiscard]] OperatorRow feature_dropout();
[[nodiscard]] OperatorRow drop_path();
// arithmetic.cpp
[[nodiscard]] OperatorRow add();
[[nodiscard]] OperatorRow sub();
[[nodiscard]] OperatorRow mul();
[[nodiscard]] OperatorRow div();
// combined_arithmetic.cpp
[[nodiscard]] OperatorRow maximum();
[[nodiscard]] OperatorRow minimum();
[[nodiscard]] OperatorRow addcmul();
[[nodiscard]] OperatorRow addcdiv();
// scale.cpp
[[nodiscard]] OperatorRow scale();
// reduction.cpp
[[nodiscard]] OperatorRow mean();
[[nodiscard]] OperatorRow sum();
[[nodiscard]] OperatorRow expand();
// statistic.cpp
[[nodiscard]] OperatorRow amax();
[[nodiscard]] OperatorRow amin();
[[nodiscard]] OperatorRow var();
[[nodiscard]] OperatorRow std_deviation();
[[nodiscard]] OperatorRow norm();
// along_axis.cpp
[[nodiscard]] OperatorRow max();
[[nodiscard]] OperatorRow min();
[[nodiscard]] OperatorRow argmax();
[[nodiscard]] OperatorRow argmin();
[[nodiscard]] OperatorRow topk();
[[nodiscard]] OperatorRow cumsum();
// indexing.cpp
[[nodiscard]] OperatorRow index_select();
[[nodiscard]] OperatorRow index();
[[nodiscard]] OperatorRow gather();
[[nodiscard]] OperatorRow index_add();
[[nodiscard]] OperatorRow scatter();
[[nodiscard]] OperatorRow scatter_add();
// slice_scatter.cpp
[[nodiscard]] OperatorRow slice_scatter();
// selection.cpp, triangle.cpp, one_hot.cpp
[[nodiscard]] OperatorRow compare();
[[nodiscard]] OperatorRow logical();
[[nodiscard]] OperatorRow where();
[[nodiscard]] OperatorRow masked_fill();
[[nodiscard]] OperatorRow tril();
[[nodiscard]] OperatorRow triu();
[[nodiscard]] OperatorRow one_hot();
// repetition.cpp, unfold.cpp
[[nodiscard]] OperatorRow tile();
[[nodiscard]] OperatorRow repeat_interleave();
[[nodiscard]] OperatorRow unfold();
[[nodiscard]] OperatorRow fold();
// joining.cpp
[[nodiscard]] OperatorRow concat();
[[nodiscard]] OperatorRow stack();
[[nodiscard]] OperatorRow split();
// slice.cpp
[[nodiscard]] OperatorRow slice();
[[nodiscard]] OperatorRow roll();
// layout.cpp
[[nodiscard]] OperatorRow reshape();
[[nodiscard]] OperatorRow flatten();
[[nodiscard]] OperatorRow transpose();
[[nodiscard]] OperatorRow contiguous();
// conversion.cpp
[[nodiscard]] OperatorRow identity();
[[nodiscard]] OperatorRow cast();
[[nodiscard]] OperatorRow constant();
// embedding.cpp
[[nodiscard]] OperatorRow embedding();
[[nodiscard]] OperatorRow positions();
// softmax.cpp, sink_softmax.cpp, scaled_dot_product_attention.cpp (and attention_*.cpp)
[[nodiscard]] OperatorRow softmax();
[[nodiscard]] OperatorRow sink_softmax();
[[nodiscard]] OperatorRow scaled_dot_product_attention();
// log_softmax.cpp
[[nodiscard]] OperatorRow log_softmax();
// parameter.cpp, rotary.cpp, relative_position.cpp
[[nodiscard]] OperatorRow parameter();
[[nodiscard]] OperatorRow rotary_table();
[[nodiscard]] OperatorRow rotary();
[[nodiscard]] OperatorRow relative_position_bias();
[[nodiscard]] OperatorRow relative_position_buckets();
// recurrent.cpp
[[nodiscard]] OperatorRow lstm();
[[nodiscard]] OperatorRow gru();
[[nodiscard]] OperatorRow rnn();
// routed_experts.cpp (and experts_*.cpp)
[[nodiscard]] OperatorRow routed_experts();
// custom.cpp
[[nodiscard]] OperatorRow custom();
// loss.cpp
[[nodiscard]] OperatorRow cross_entropy();
[[nodiscard]] OperatorRow nll();
// pointwise_loss.cpp
[[nodiscard]] OperatorRow mse();
[[nodiscard]] OperatorRow l1();
[[nodiscard]] OperatorRow bce();
[[nodiscard]] OperatorRow bce_with_logits();
[[nodiscard]] OperatorRow kl_div();

}  // namespace stowage::rows
