// Kernels that read the elements that indices name, or add to them.
#include "gpu_probe/kernels/bodies/indexing.hpp"

#include <span>

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/integers.hpp"
#include "gpu_probe/kernels/rows/strided.hpp"
#include "gpu_probe/kernels/rows/words.hpp"

namespace stowage::kernels {
namespace {

bool is_short(DataType type) { return element_size(type) < 4; }

/// The shape to which all index tensors broadcast.
Sizes broadcast_shape(std::span<const TensorArgument> indices) {
  Sizes whole;
  for (const TensorArgument& index : indices) {
    const std::size_t more =
        index.shape.size() > whole.size() ? index.shape.size() - whole.size() : 0;
    whole.insert(whole.begin(), more, 1);
    const std::size_t lacking = whole.size() - index.shape.size();
    for (std::size_t i = 0; i < index.shape.size(); ++i) {
      if (whole[lacking + i] == 1) whole[lacking + i] = index.shape[i];
    }
  }
  return whole;
}

/// Rows of a tensor along adjacent axes.
struct Rows {
  body::NamedRows named = {};
  std::int64_t outer = 1, inner = 1;
  Sizes taken;  ///< the shape of the indexed elements
};

Rows named_rows(const KernelCall& call, std::span<const TensorArgument> indices,
                const TensorArgument& whole) {
  const std::size_t axis = axis_of(call, "axis", whole.shape.size(), 0), axes = indices.size();
  require(axes <= body::most_indices && axis + axes <= whole.shape.size(),
          "{} indices from axis {} of {}", axes, axis, shape_text(whole.shape));
  const Sizes together = broadcast_shape(indices);
  Rows rows;
  rows.named.axes = static_cast<int>(axes);
  rows.named.count = count(together);
  rows.named.rows = count(whole.shape, axis, axis + axes);
  for (std::size_t i = 0; i < axes; ++i) {
    rows.named.indices[i] = any_integers(indices[i]);
    rows.named.of[i] = repeated(indices[i].shape, together);
    rows.named.sizes[i] = whole.shape[axis + i];
  }
  rows.outer = count(whole.shape, 0, axis);
  rows.inner = count(whole.shape, axis + axes, whole.shape.size());
  rows.taken.assign(whole.shape.begin(), whole.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  rows.taken.insert(rows.taken.end(), together.begin(), together.end());
  rows.taken.insert(rows.taken.end(),
                    whole.shape.begin() + static_cast<std::ptrdiff_t>(axis + axes),
                    whole.shape.end());
  return rows;
}

void require_inside(const Rows& rows, Arithmetic arithmetic) {
  if (arithmetic != Arithmetic::host) return;
  for (std::int64_t k = 0; k < rows.named.count; ++k) {
    require(rows.named.row(k) >= 0, "index {} is out of range", k);
  }
}

Launches add_rows(const Rows& rows, const TensorArgument* base, const TensorArgument& source,
                  const TensorArgument& y, Arithmetic arithmetic) {
  require_shape("the source", source, rows.taken);
  require_inside(rows, arithmetic);
  return {in_formats(y.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::AddRows<T, Real>{base == nullptr ? nullptr : elements<T>(*base), elements<T>(source),
                               elements<T>(y), rows.named, rows.inner, is_short(y.type)},
        rows.outer * rows.inner);
  })};
}

body::NamedElements named_elements(const KernelCall& call, const TensorArgument& indices,
                                   const TensorArgument& whole, Arithmetic arithmetic) {
  const std::size_t rank = whole.shape.size();
  const std::size_t axis = axis_of(call, "axis", rank, 0);
  require(rank <= body::most_axes && rank > 0, "{} has more than {} axes or none",
          shape_text(whole.shape), body::most_axes);
  bool fits = indices.shape.size() == rank;
  for (std::size_t i = 0; fits && i < rank; ++i) {
    fits = i == axis || indices.shape[i] <= whole.shape[i];
  }
  require(fits, "indices {} do not go with {} along axis {}", shape_text(indices.shape),
          shape_text(whole.shape), axis);
  body::NamedElements named{.indices = any_integers(indices),
                            .sizes = {},
                            .named = {},
                            .strides = {},
                            .axes = static_cast<int>(rank),
                            .axis = static_cast<int>(axis)};
  const Sizes strides = row_major_strides(indices.shape);
  for (std::size_t i = 0; i < rank; ++i) {
    named.sizes[i] = whole.shape[i];
    named.named[i] = indices.shape[i];
    named.strides[i] = strides[i];
  }
  for (std::int64_t k = 0; arithmetic == Arithmetic::host && k < count(indices.shape); ++k) {
    require(named.place(k) >= 0, "index {} is out of range", k);
  }
  return named;
}

Launches scatter(const KernelCall& call, const TensorArgument* base, const TensorArgument& indices,
                 const TensorArgument& source, Arithmetic arithmetic) {
  const auto& y = call.writes[0];
  const bool replaces = boolean(call, "replace", false);
  require_shape("the source", source, indices.shape);
  const body::NamedElements named = named_elements(call, indices, y, arithmetic);
  return {in_formats(y.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::ScatterAdd<T, Real>{base == nullptr ? nullptr : elements<T>(*base),
                                  elements<T>(source), elements<T>(y), named, replaces},
        count(y.shape));
  })};
}

}  // namespace

Launches take_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_type(x, y);
  const Rows rows = named_rows(call, std::span(call.reads).subspan(1), x);
  require_shape("y", y, rows.taken);
  require_inside(rows, arithmetic);
  return {in_words(y.type, [&]<class Word>() {
    return each_index(
        body::TakeForward<Word>{words<Word>(x), words<Word>(y), rows.named, rows.inner},
        count(y.shape));
  })};
}

Launches take_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto& dx = call.writes[0];
  const std::span reads(call.reads);
  const Rows rows = named_rows(call, reads.first(reads.size() - 1), dx);
  return add_rows(rows, nullptr, reads.back(), dx, arithmetic);
}

Launches index_add(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_shape("y", y, x);
  const Rows rows = named_rows(call, std::span(call.reads).subspan(1, 1), x);
  return add_rows(rows, &x, call.reads[2], y, arithmetic);
}

Launches gather_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &indices = call.reads[1], &y = call.writes[0];
  require_same_type(x, y);
  require_shape("y", y, indices.shape);
  const body::NamedElements named = named_elements(call, indices, x, arithmetic);
  const auto axis = static_cast<std::size_t>(named.axis);
  Sizes steps = row_major_strides(x.shape);
  const std::int64_t stride = steps[axis];
  steps[axis] = 0;
  return {in_words(y.type, [&]<class Word>() {
    return each_index(body::GatherElements<Word>{words<Word>(x), words<Word>(y), named,
                                                 strided(y.shape, steps), stride},
                      count(y.shape));
  })};
}

Launches gather_backward(const KernelCall& call, Arithmetic arithmetic) {
  return scatter(call, nullptr, call.reads[0], call.reads[1], arithmetic);
}

Launches scatter_add(const KernelCall& call, Arithmetic arithmetic) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  return scatter(call, call.reads.data(), call.reads[1], call.reads[2], arithmetic);
}

}  // namespace stowage::kernels
