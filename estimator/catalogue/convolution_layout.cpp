// In which layout a convolution runs.
#include "estimator/catalogue/convolution.hpp"

namespace stowage {

bool runs_channels_last(const OperatorLowering& lowering, const TensorView& view) {
  return lowering.pytorch() && suggests_channels_last(view);
}

TensorView laid_out(const TensorView& made, bool channels_last) {
  if (!channels_last) return made;
  const std::size_t rank = made.shape.size();
  Shape stored;
  for (const std::int64_t axis : channels_last_order(rank)) {
    stored.push_back(made.shape[static_cast<std::size_t>(axis)]);
  }
  std::vector<std::int64_t> inverse{0, static_cast<std::int64_t>(rank) - 1};
  for (std::size_t i = 1; i + 1 < rank; ++i) inverse.push_back(static_cast<std::int64_t>(i));
  TensorView view = permuted(contiguous_view(made.storage, stored, made.type), inverse);
  view.is_view = made.is_view;
  return view;
}

TensorView convolution_argument(OperatorLowering& lowering, const TensorView& view,
                                std::string_view suffix, bool channels_last) {
  if (!channels_last) return lowering.contiguous_within(view, suffix);
  if (is_contiguous(permuted(view, channels_last_order(view.shape.size())))) return view;
  const TensorView copy =
      laid_out(lowering.new_tensor(suffix, view.shape, view.type, StorageClass::workspace), true);
  lowering.emit(Kernel::copy, suffix, {view}, {copy});
  return copy;
}

}  // namespace stowage
