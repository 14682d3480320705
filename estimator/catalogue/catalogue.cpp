#include <array>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/sort_rows.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

std::span<const OperatorRow> operator_catalogue() {
  static const std::array catalogue{
      rows::conv1d(),
      rows::conv2d(),
      rows::conv3d(),
      rows::conv_transpose1d(),
      rows::conv_transpose2d(),
      rows::conv_transpose3d(),
      rows::linear(),
      rows::matmul(),
      rows::einsum(),
      rows::batch_norm(),
      rows::layer_norm(),
      rows::group_norm(),
      rows::instance_norm(),
      rows::rms_norm(),
      rows::rms_norm_plus_one(),
      rows::rms_norm_wide(),
      rows::local_response_norm(),
      rows::unary("relu"),
      rows::unary("relu6"),
      rows::unary("leaky_relu"),
      rows::prelu(),
      rows::unary("elu"),
      rows::unary("selu"),
      rows::unary("celu"),
      rows::gelu(),
      rows::unary("silu"),
      rows::unary("mish"),
      rows::unary("hardswish"),
      rows::unary("hardsigmoid"),
      rows::unary("hardtanh"),
      rows::unary("sigmoid"),
      rows::unary("tanh"),
      rows::unary("softplus"),
      rows::unary("log_sigmoid"),
      rows::glu(),
      rows::swiglu(),
      rows::softmax(),
      rows::sink_softmax(),
      rows::log_softmax(),
      rows::max_pool1d(),
      rows::max_pool2d(),
      rows::max_pool3d(),
      rows::avg_pool1d(),
      rows::avg_pool2d(),
      rows::avg_pool3d(),
      rows::adaptive_avg_pool1d(),
      rows::adaptive_avg_pool2d(),
      rows::adaptive_avg_pool3d(),
      rows::adaptive_max_pool1d(),
      rows::adaptive_max_pool2d(),
      rows::adaptive_max_pool3d(),
      rows::pad(),
      rows::upsample(),
      rows::pixel_shuffle(),
      rows::pixel_unshuffle(),
      rows::dropout(),
      rows::feature_dropout(),
      rows::drop_path(),
      rows::add(),
      rows::sub(),
      rows::mul(),
      rows::div(),
      rows::maximum(),
      rows::minimum(),
      rows::addcmul(),
      rows::addcdiv(),
      rows::scale(),
      rows::unary("pow"),
      rows::unary("sqrt"),
      rows::unary("rsqrt"),
      rows::unary("reciprocal"),
      rows::unary("abs"),
      rows::unary("sign"),
      rows::unary("floor"),
      rows::unary("ceil"),
      rows::unary("round"),
      rows::unary("trunc"),
      rows::unary("exp"),
      rows::unary("expm1"),
      rows::unary("log"),
      rows::unary("log1p"),
      rows::unary("sin"),
      rows::unary("cos"),
      rows::unary("erf"),
      rows::unary("clamp"),
      rows::mean(),
      rows::sum(),
      rows::amax(),
      rows::amin(),
      rows::var(),
      rows::std_deviation(),
      rows::norm(),
      rows::max(),
      rows::min(),
      rows::argmax(),
      rows::argmin(),
      rows::topk(),
      rows::sort(),
      rows::argsort(),
      rows::cumsum(),
      rows::concat(),
      rows::stack(),
      rows::split(),
      rows::slice(),
      rows::reshape(),
      rows::flatten(),
      rows::transpose(),
      rows::contiguous(),
      rows::roll(),
      rows::expand(),
      rows::tile(),
      rows::repeat_interleave(),
      rows::unfold(),
      rows::fold(),
      rows::index_select(),
      rows::index(),
      rows::gather(),
      rows::index_add(),
      rows::scatter(),
      rows::scatter_add(),
      rows::slice_scatter(),
      rows::compare(),
      rows::logical(),
      rows::where(),
      rows::masked_fill(),
      rows::tril(),
      rows::triu(),
      rows::identity(),
      rows::cast(),
      rows::constant(),
      rows::embedding(),
      rows::one_hot(),
      rows::positions(),
      rows::parameter(),
      rows::rotary_table(),
      rows::rotary(),
      rows::relative_position_bias(),
      rows::relative_position_buckets(),
      rows::lstm(),
      rows::gru(),
      rows::rnn(),
      rows::scaled_dot_product_attention(),
      rows::cross_entropy(),
      rows::nll(),
      rows::mse(),
      rows::l1(),
      rows::bce(),
      rows::bce_with_logits(),
      rows::kl_div(),
      rows::routed_experts(),
      rows::custom(),
  };
  return catalogue;
}

const OperatorRow* find_operator(std::string_view name) {
  for (const OperatorRow& row : operator_catalogue()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const LoweringRules& rules_of(const OperatorRow& row, KernelSet set) {
  const RulesBySet& rules = row.lowering;
  switch (set) {
    case KernelSet::pytorch:
      return rules.pytorch.forward != nullptr ? rules.pytorch : rules.stowage;
    case KernelSet::stowage:
      return rules.stowage;
  }
  return rules.stowage;
}

AutocastClass autocast_class(const OperatorRow& row, const Attributes& attributes) {
  return row.autocast_by_attributes == nullptr ? row.autocast
                                               : row.autocast_by_attributes(attributes);
}

}  // namespace stowage
