#include "estimator/workspace/sum_scratch.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace stowage {

namespace {

constexpr std::int64_t most_threads = 512, warp = 32;  // of a block
constexpr std::int64_t longest_vector = 4;             // outputs that a thread loads at once
constexpr std::int64_t least_values = 16,
                       most_values = 256;  // of a thread, where it has the choice
constexpr std::int64_t least_vectorized_input = 128;
constexpr std::int64_t largest_offset = std::numeric_limits<std::int32_t>::max();

using Axes = std::vector<SummedAxis>;

/// The summed axes and the result's axes, each innermost first; axes that are contiguous with each
/// other are joined.
struct SumAxes {
  Axes summed, kept;
};

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t power_of_two_within(std::int64_t count, std::int64_t most) {
  const auto within = static_cast<std::uint64_t>(std::clamp<std::int64_t>(count, 1, most));
  return static_cast<std::int64_t>(std::bit_floor(within));
}

std::int64_t count_of(const Axes& axes) {
  std::int64_t count = 1;
  for (const SummedAxis& axis : axes) count = checked_multiply(count, axis.size);
  return count;
}

Axes joined(Axes axes) {
  std::size_t last = 0;
  for (std::size_t i = 1; i < axes.size(); ++i) {
    if (checked_multiply(axes[last].size, axes[last].stride) == axes[i].stride) {
      axes[last].size = checked_multiply(axes[last].size, axes[i].size);
    } else {
      axes[++last] = axes[i];
    }
  }
  axes.resize(std::min(axes.size(), last + 1));
  return axes;
}

/// The result's axes keep their order, since the result is contiguous; summed axes are ordered by
/// their strides. Axes of length one are removed.
SumAxes ordered(const TensorSum& sum) {
  SumAxes axes;
  axes.summed.reserve(sum.axes.size());
  axes.kept.reserve(sum.axes.size());
  for (auto axis = sum.axes.rbegin(); axis != sum.axes.rend(); ++axis) {
    if (axis->size != 1) (axis->summed ? axes.summed : axes.kept).push_back(*axis);
  }
  if (axes.summed.size() > 1) std::ranges::stable_sort(axes.summed, {}, &SummedAxis::stride);
  return {joined(std::move(axes.summed)), joined(std::move(axes.kept))};
}

/// Kernels count in 32 bits.
bool counts_in_32_bits(const SumAxes& axes, std::int64_t element) {
  std::int64_t last = 1;
  for (const Axes* const kind : {&axes.summed, &axes.kept}) {
    for (const SummedAxis& axis : *kind) {
      last = checked_add(last,
                         checked_multiply(checked_multiply(axis.size - 1, axis.stride), element));
    }
  }
  return last <= largest_offset &&
         checked_multiply(count_of(axes.summed), count_of(axes.kept)) <= largest_offset;
}

/// The larger half, cut along the axis that spans the most memory.
SumAxes half_of(SumAxes axes) {
  const auto reach = [](const SummedAxis& axis) {
    return std::pair((axis.size - 1) * axis.stride, axis.size);
  };
  SummedAxis* longest = &axes.summed.front();
  for (Axes* const kind : {&axes.kept, &axes.summed}) {
    for (SummedAxis& axis : *kind) {
      if (reach(axis) > reach(*longest)) longest = &axis;
    }
  }
  longest->size -= longest->size / 2;
  return axes;
}

/// The largest number that divides the offset, the innermost axis, and the strides of all other
/// axes.
std::int64_t outputs_at_once(const SumAxes& axes, std::int64_t offset) {
  std::int64_t vector = longest_vector;
  const auto shorten = [&](std::int64_t value) {
    while (value % vector != 0) vector /= 2;
  };
  shorten(offset);
  shorten(axes.kept.front().size);
  for (const SummedAxis& axis : axes.summed) shorten(axis.stride);
  for (std::size_t i = 1; i < axes.kept.size(); ++i) shorten(axes.kept[i].stride);
  return vector;
}

/// The number of blocks that share an output. `values`: per thread, if a single block did it;
/// `grid`: the number of blocks then; `most_blocks`: blocks that the card runs at once.
std::int64_t blocks_an_output(std::int64_t values, std::int64_t grid, std::int64_t most_blocks) {
  if (values < most_values || grid > most_blocks) return 1;
  return std::max(std::min(divided_up(most_blocks, grid), divided_up(values, least_values)),
                  divided_up(values, most_values));
}

Bytes scratch_of(const SumAxes& axes, const TensorSum& sum, const ThreadCapacity& room) {
  const std::int64_t element = element_size(sum.type);
  const std::int64_t outputs = count_of(axes.kept), inputs = count_of(axes.summed);
  // Neighbouring threads read neighbouring values: of one output, or of one output each.
  const bool one_output =
      axes.kept.empty() || axes.summed.front().stride < axes.kept.front().stride;
  std::int64_t across = one_output ? inputs : outputs;
  std::int64_t vector = 1;
  if (!one_output && axes.kept.front().stride == 1) {
    vector = outputs_at_once(axes, sum.offset);
    across /= vector;
  } else if (one_output && axes.summed.front().stride == 1 && axes.summed.size() == 1 &&
             across >= least_vectorized_input) {
    across /= element == 2 ? 8 : 4;  // ReduceSumProdKernel.cu: the values of 16 bytes
  }

  const std::int64_t threads = most_threads / vector;
  const std::int64_t widest = power_of_two_within(across, threads);
  const std::int64_t height = std::min(power_of_two_within(one_output ? outputs : inputs, threads),
                                       threads / std::min(widest, warp));
  const std::int64_t width = std::min(widest, threads / height);

  std::int64_t input_step = one_output ? width : 1, output_step = one_output ? 1 : width;
  const bool rows_share_output =
      divided_up(inputs, input_step) >= std::min(height * least_values, most_values);
  (rows_share_output ? input_step : output_step) *= height;
  if (!rows_share_output) return {};
  const std::int64_t most_blocks = room.multiprocessors * (room.threads / (width * height));
  const std::int64_t parts = blocks_an_output(
      divided_up(inputs, input_step), divided_up(outputs / vector, output_step), most_blocks);
  if (parts == 1) return {};
  // Partial sums are float32 for 16-bit values too. Where threads have outputs of their own the
  // kernel takes the buffer a block's width times as large.
  const std::int64_t accumulator = std::max<std::int64_t>(element, 4);
  return Bytes(accumulator) * outputs * parts * (one_output ? 1 : width * vector);
}

}  // namespace

Bytes sum_scratch(const TensorSum& sum, const ThreadCapacity& room) {
  const auto is_sound = [](const SummedAxis& axis) { return axis.size > 0 && axis.stride >= 0; };
  if (!std::ranges::all_of(sum.axes, is_sound)) return {};  // empty, or a file's own invention
  SumAxes axes = ordered(sum);
  if (axes.summed.empty()) return {};
  const std::int64_t outputs = count_of(axes.kept), element = element_size(sum.type);
  if (counts_in_32_bits(axes, element)) return scratch_of(axes, sum, room);
  while (!counts_in_32_bits(axes, element)) axes = half_of(std::move(axes));
  // The halves' sums are added up in a float32 for each output.
  const Bytes added_up = element == 2 ? Bytes(4) * outputs : Bytes();
  return added_up + scratch_of(axes, sum, room);
}

}  // namespace stowage
