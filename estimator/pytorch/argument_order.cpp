#include "estimator/pytorch/argument_order.hpp"

#include <algorithm>
#include <array>

namespace stowage {

namespace {

/// The rule by which a kernel chooses its layout.
enum class LayoutRule {
  contiguous,
  as_input,  ///< channels innermost where the leading argument has them so
  as_pool,   ///< the same where pools_channels_last
};

struct OrderRow {
  Kernel kernel;
  LayoutRule rule;
  unsigned arguments;  ///< bit i: argument i
};

constexpr unsigned first = 1, second = 2, third = 4;

constexpr std::array order_rows{
    OrderRow{Kernel::layer_norm_forward, LayoutRule::contiguous, first},
    OrderRow{Kernel::layer_norm_backward, LayoutRule::contiguous, first | second},
    OrderRow{Kernel::group_norm_forward, LayoutRule::contiguous, first},
    OrderRow{Kernel::group_norm_backward, LayoutRule::contiguous, first | second},
    OrderRow{Kernel::rms_norm_forward, LayoutRule::contiguous, first},
    OrderRow{Kernel::rms_norm_backward, LayoutRule::contiguous, first | second},
    OrderRow{Kernel::softmax_forward, LayoutRule::contiguous, first},
    OrderRow{Kernel::softmax_backward, LayoutRule::contiguous, second},
    OrderRow{Kernel::log_softmax_forward, LayoutRule::contiguous, first},
    OrderRow{Kernel::log_softmax_backward, LayoutRule::contiguous, second},
    OrderRow{Kernel::nll_loss_forward, LayoutRule::contiguous, first},
    OrderRow{Kernel::glu_forward, LayoutRule::contiguous, first},
    OrderRow{Kernel::embedding_backward, LayoutRule::contiguous, second},
    OrderRow{Kernel::batch_norm_forward, LayoutRule::as_input, first},
    OrderRow{Kernel::batch_norm_inference, LayoutRule::as_input, first},
    OrderRow{Kernel::batch_norm_backward, LayoutRule::as_input, first},
    OrderRow{Kernel::max_pool_forward, LayoutRule::as_pool, first},
    OrderRow{Kernel::max_pool_backward, LayoutRule::as_pool, first | second | third},
    OrderRow{Kernel::adaptive_max_pool_forward, LayoutRule::contiguous, first},
    OrderRow{Kernel::adaptive_max_pool_backward, LayoutRule::contiguous, second | third},
    OrderRow{Kernel::avg_pool_forward, LayoutRule::as_pool, first},
    OrderRow{Kernel::avg_pool_backward, LayoutRule::as_pool, first},
    OrderRow{Kernel::adaptive_avg_pool_forward, LayoutRule::as_pool, first},
    OrderRow{Kernel::adaptive_avg_pool_backward, LayoutRule::as_pool, first},
};

bool has_channels_innermost(const OrderRow& row, const TensorView& leading) {
  switch (row.rule) {
    case LayoutRule::contiguous:
      return false;
    case LayoutRule::as_input:
      return suggests_channels_last(leading);
    case LayoutRule::as_pool:
      break;
  }
  return pools_channels_last(row.kernel, leading);
}

}  // namespace

bool pools_channels_last(Kernel kernel, TensorView input) {
  if (input.shape.size() == 3) {  // as unsqueeze(2) makes an image of it
    input.strides.insert(input.strides.begin() + 2, input.shape[2] * input.strides[2]);
    input.shape.insert(input.shape.begin() + 2, 1);
  }
  const bool maximum = kernel == Kernel::max_pool_forward || kernel == Kernel::max_pool_backward;
  return (input.shape.size() == 4 || maximum) && suggests_channels_last(input);
}

ArgumentOrder argument_order(Kernel kernel, std::size_t argument, const TensorView& leading) {
  const auto row = std::ranges::find(order_rows, kernel, &OrderRow::kernel);
  constexpr std::size_t most_arguments = 3;
  const bool chosen = row != order_rows.end() && argument < most_arguments &&
                      (row->arguments >> argument & 1U) != 0;
  if (!chosen) return ArgumentOrder::unchanged;
  return has_channels_innermost(*row, leading) ? ArgumentOrder::channels_last
                                               : ArgumentOrder::contiguous;
}

bool copies_argument(Kernel kernel, std::size_t argument, const TensorView& view,
                     const TensorView& leading) {
  const ArgumentOrder order = argument_order(kernel, argument, leading);
  return order != ArgumentOrder::unchanged &&
         !is_contiguous(view, order == ArgumentOrder::channels_last);
}

}  // namespace stowage
