// Views of storages: strides, slices, and which reshapes need no copy.
#include <cassert>
#include <numeric>
#include <optional>
#include <utility>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

TensorView contiguous_view(StorageId storage, Shape shape, DataType type) {
  Shape strides = contiguous_strides(shape);
  return {
      .storage = storage, .type = type, .shape = std::move(shape), .strides = std::move(strides)};
}

bool is_contiguous(const TensorView& view) {
  Affine expected = 1;
  for (std::size_t i = view.shape.size(); i-- > 0;) {
    if (view.shape[i] == Affine(1)) continue;
    if (view.strides[i] != expected) return false;
    if (i > 0) expected = expected * view.shape[i];
  }
  return true;
}

bool is_contiguous(const TensorView& view, bool channels_last) {
  return channels_last ? is_contiguous(permuted(view, channels_last_order(view.shape.size())))
                       : is_contiguous(view);
}

bool suggests_channels_last(const TensorView& view) {
  const std::size_t rank = view.shape.size();
  if ((rank != 4 && rank != 5) || view.strides[1] == Affine(0)) return false;
  const auto less = [](Affine a, Affine b) {
    return std::pair(a.slope, a.constant) < std::pair(b.slope, b.constant);
  };
  Affine least = 0;
  for (std::size_t i = 0; i < rank; ++i) {  // innermost first: 1, rank - 1, ..., 2, 0
    const std::size_t axis = i == 0 ? 1 : i + 1 < rank ? rank - i : 0;
    if (less(view.strides[axis], least)) return false;
    if (axis == 0 && least == view.strides[1]) return false;  // [n, 1, 1, 1] and the like
    least = view.strides[axis];
    if (view.shape[axis] != Affine(1)) least = least * view.shape[axis];
  }
  return true;
}

bool same_memory_format(const TensorView& a, const TensorView& b) {
  for (std::size_t i = 0; i < a.shape.size(); ++i) {
    if (a.shape[i] != Affine(1) && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

bool is_dense(const TensorView& view) {
  Affine expected = 1;
  std::vector<bool> passed(view.shape.size());
  for (std::size_t n = 0; n < view.shape.size(); ++n) {
    for (std::size_t i = 0; i < view.shape.size(); ++i) {
      if (passed[i] || view.shape[i] == Affine(1) || view.strides[i] != expected) continue;
      passed[i] = true;
      expected = expected * view.shape[i];
      break;
    }
  }
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (!passed[i] && view.shape[i] != Affine(1)) return false;
  }
  return true;
}

TensorView permuted(const TensorView& view, std::span<const std::int64_t> axes) {
  assert(axes.size() == view.shape.size());
  TensorView result = view;
  result.is_view = true;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    result.shape[i] = view.shape[static_cast<std::size_t>(axes[i])];
    result.strides[i] = view.strides[static_cast<std::size_t>(axes[i])];
  }
  return result;
}

std::vector<std::int64_t> channels_last_order(std::size_t rank) {
  std::vector<std::int64_t> order{0};
  for (std::size_t i = 2; i < rank; ++i) order.push_back(static_cast<std::int64_t>(i));
  order.push_back(1);
  return order;
}

TensorView laid_out(const TensorView& made, bool channels_last) {
  if (!channels_last) return made;
  const std::vector<std::int64_t> order = channels_last_order(made.shape.size());
  TensorView view = made;
  Affine stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const auto axis = static_cast<std::size_t>(order[i]);
    view.strides[axis] = stride;
    if (i > 0) stride = stride * made.shape[axis];
  }
  return view;
}

TensorView sliced(const TensorView& view, std::size_t axis, Affine start, Affine length) {
  TensorView result = view;
  result.is_view = true;
  result.offset = view.offset + start * view.strides[axis];
  result.shape[axis] = length;
  return result;
}

std::optional<TensorView> reshaped(const TensorView& view, const Shape& shape) {
  TensorView result = view;
  result.is_view = true;
  result.shape = shape;
  if (is_contiguous(view)) {
    result.strides = contiguous_strides(shape);
    return result;
  }
  // ATen's computeStride: walk both shapes from the inside, chunk by chunk of memory that is
  // dense; a new axis may not straddle two chunks.
  result.strides.assign(shape.size(), 0);
  std::size_t at = shape.size();
  Affine chunk = 1;   // elements in the current chunk of old axes
  Affine filled = 1;  // elements of it that new axes have taken
  Affine base = view.strides.empty() ? Affine(1) : view.strides.back();
  for (std::size_t i = view.shape.size(); i-- > 0;) {
    chunk = chunk * view.shape[i];
    const bool last = i == 0;
    const bool breaks =
        !last && view.shape[i - 1] != Affine(1) && view.strides[i - 1] != chunk * base;
    if (!last && !breaks) continue;
    while (at > 0 && (filled != chunk || shape[at - 1] == Affine(1))) {
      result.strides[at - 1] = filled * base;
      filled = filled * shape[at - 1];
      --at;
      if (!divides(filled, chunk)) return std::nullopt;
    }
    if (filled != chunk) return std::nullopt;
    if (!last) {
      base = view.strides[i - 1];
      chunk = 1;
      filled = 1;
    }
  }
  if (at != 0) return std::nullopt;
  return result;
}

Affine byte_count(const TensorView& view) {
  return element_count(view.shape) * Affine(element_size(view.type));
}

namespace {

/// Whether axis `inner` belongs outside `outer`: 1 yes, -1 no, 0 undecided. Broadcast axes
/// (stride 0) decide nothing.
int wants_swap(const Shape& shape, const Shape& strides, std::size_t inner, std::size_t outer) {
  const auto key = [](Affine a) { return std::pair(a.slope, a.constant); };
  if (strides[inner] == Affine(0) || strides[outer] == Affine(0)) return 0;
  if (strides[inner] != strides[outer]) {
    return key(strides[inner]) < key(strides[outer]) ? -1 : 1;
  }
  return key(shape[inner]) > key(shape[outer]) ? 1 : 0;
}

}  // namespace

Shape dense_strides(const Shape& shape, const Shape& strides) {
  assert(shape.size() == strides.size());
  std::vector<std::size_t> order(shape.size());  // innermost first
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::size_t at = i;
    for (std::size_t j = i; j-- > 0;) {
      const int swap = wants_swap(shape, strides, order[j], order[at]);
      if (swap < 0) break;
      if (swap > 0) {
        std::swap(order[j], order[at]);
        at = j;
      }
    }
  }
  Shape dense(shape.size());
  Affine stride = 1;
  for (const std::size_t axis : order) {
    dense[axis] = stride;
    stride = stride * shape[axis];
  }
  return dense;
}

TensorView ordered_like(const TensorView& made, const TensorView& like) {
  if (made.shape != like.shape || is_contiguous(like)) return made;
  TensorView result = made;
  result.strides = dense_strides(made.shape, like.strides);
  return result;
}

}  // namespace stowage
