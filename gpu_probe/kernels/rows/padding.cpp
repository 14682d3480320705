// Padding and rolling.
#include "gpu_probe/kernels/bodies/padding.hpp"

#include <algorithm>

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/words.hpp"

namespace stowage::kernels {
namespace {

using body::PaddedAxes;
using body::PaddedAxis;
using body::PaddingMode;

PaddingMode mode_of(const KernelCall& call) {
  const std::string mode = text(call, "mode", "constant");
  if (mode == "constant") return PaddingMode::constant;
  if (mode == "reflect") return PaddingMode::reflect;
  if (mode == "replicate") return PaddingMode::replicate;
  require(mode == "circular", "attribute 'mode' is '{}'", mode);
  return PaddingMode::circular;
}

/// The axes of the result. `out` and `before` are given by axis of x.
PaddedAxes padded_axes(const Sizes& in, const Sizes& out, const Sizes& before, PaddingMode mode) {
  PaddedAxes result{.axis = {{1, 1, 0, 0}}, .axes = 0, .mode = mode};
  const Sizes strides = row_major_strides(in);
  bool joins = false;  // whether the axis before this one is not padded, nor is this one
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool as_it_was = in[i] == out[i] && before[i] == 0;
    if (joins && as_it_was) {
      PaddedAxis& last = result.axis[result.axes - 1];
      last = {last.in * in[i], last.out * in[i], 0, strides[i]};
    } else {
      require(result.axes < body::most_axes, "{} has more than {} axes that are not taken together",
              shape_text(in), body::most_axes);
      result.axis[result.axes++] = {in[i], out[i], before[i], strides[i]};
    }
    joins = as_it_was;
  }
  result.axes = std::max(result.axes, 1);
  return result;
}

/// Negative widths of padding cut off elements.
PaddedAxes padding(const KernelCall& call, const TensorArgument& x, const TensorArgument& y) {
  const PaddingMode mode = mode_of(call);
  const std::size_t rank = x.shape.size();
  const Sizes before = list(call, "before", rank, 0), after = list(call, "after", rank, 0);
  Sizes expected = x.shape;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t size = x.shape[axis], widest = std::max(before[axis], after[axis]);
    require(mode == PaddingMode::constant || mode == PaddingMode::replicate ||
                widest <= (mode == PaddingMode::reflect ? size - 1 : size),
            "{} is too small along axis {} to be padded by {} in mode {}", shape_text(x.shape),
            axis, widest, text(call, "mode", "constant"));
    expected[axis] += before[axis] + after[axis];
  }
  require_shape("the padded tensor", y, expected);
  require(mode == PaddingMode::constant || count(x.shape) > 0 || count(y.shape) == 0, "{} is empty",
          shape_text(x.shape));
  return padded_axes(x.shape, expected, before, mode);
}

}  // namespace

Launches pad(const KernelCall& call, Arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const PaddedAxes axes = padding(call, x, y);
  const double value = real(call, "value", 0);
  require_same_type(x, y);
  return {in_words(y.type, [&]<class Word>() {
    return each_index(
        body::Pad<Word>{words<Word>(x), words<Word>(y), axes, word_of<Word>(y.type, value)},
        count(y.shape));
  })};
}

Launches pad_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &dy = call.reads[0], &dx = call.writes[0];
  const PaddedAxes axes = padding(call, dx, dy);
  return {in_formats(dx.type, arithmetic, [&]<class T, class Real>() {
    return each_index(body::PadBackward<T, Real>{elements<T>(dy), elements<T>(dx), axes},
                      count(dx.shape));
  })};
}

Launches roll(const KernelCall& call, Arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_shape("y", y, x);
  require_same_type(x, y);
  const std::size_t rank = x.shape.size();
  const Sizes axes = list(call, "axes"), shifts = list(call, "shifts");
  require(axes.size() == shifts.size(), "attribute 'shifts' has {} numbers for {} axes",
          shifts.size(), axes.size());
  Sizes shift(rank, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + static_cast<std::int64_t>(rank) : axes[i];
    require(axis >= 0 && axis < static_cast<std::int64_t>(rank),
            "attribute 'axes' names axis {} of {}", axes[i], shape_text(x.shape));
    shift[static_cast<std::size_t>(axis)] += shifts[i];
  }
  const PaddedAxes rolled = padded_axes(x.shape, x.shape, shift, PaddingMode::circular);
  return {in_words(y.type, [&]<class Word>() {
    return each_index(body::Pad<Word>{words<Word>(x), words<Word>(y), rolled, 0}, count(y.shape));
  })};
}

}  // namespace stowage::kernels
