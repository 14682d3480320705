// Kernels that move or make elements and compute nothing: copies, slices, permutations, constants.
#include "gpu_probe/kernels/bodies/movement.hpp"

#include <algorithm>

#include "gpu_probe/kernels/rows/integers.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"
#include "gpu_probe/kernels/rows/strided.hpp"
#include "gpu_probe/kernels/rows/words.hpp"

namespace stowage::kernels {
namespace {

/// The elements [begin, begin + part_row) of each row of a tensor.
struct Section {
  std::int64_t rows, whole_row, part_row, begin;
};

/// The section of the part [start, start + part.shape[axis]) along `axis`.
Section section(const TensorArgument& whole, const TensorArgument& part, std::size_t axis,
                std::int64_t start) {
  require_same_type(whole, part);
  Sizes expected = part.shape;
  const bool ranks_agree = whole.shape.size() == part.shape.size();
  if (ranks_agree) expected[axis] = whole.shape[axis];
  require(ranks_agree && expected == whole.shape && start >= 0 &&
              start + part.shape[axis] <= whole.shape[axis],
          "{} from {} along axis {} is no part of {}", shape_text(part.shape), start, axis,
          shape_text(whole.shape));
  const std::int64_t inner = count(whole.shape, axis + 1, whole.shape.size());
  return {count(whole.shape, 0, axis), whole.shape[axis] * inner, part.shape[axis] * inner,
          start * inner};
}

/// Copies rows. Short rows are copied by one thread each.
template <class Word>
Launch move_rows(const body::MoveRows<Word>& rows, std::int64_t count) {
  constexpr std::int64_t few = 8;
  return rows.width < few ? each_index(rows, count)
                          : each_group(rows, count, threads_for(rows.width));
}

}  // namespace

Launches concatenate(const KernelCall& call, Arithmetic) {
  const auto& y = call.writes[0];
  const std::size_t axis = axis_of(call, "axis", y.shape.size(), 0);
  std::int64_t start = 0;
  Launches launches;
  for (const TensorArgument& x : call.reads) {
    const Section s = section(y, x, axis, start);
    start += x.shape[axis];
    if (count(x.shape) == 0) continue;
    launches.push_back(in_words(y.type, [&]<class Word>() {
      return move_rows(body::MoveRows<Word>{words<Word>(x), words<Word>(y) + s.begin, s.part_row,
                                            s.part_row, s.whole_row},
                       s.rows);
    }));
  }
  require(start == y.shape[axis], "the parts fill {} of {} along axis {}", start, y.shape[axis],
          axis);
  return launches;
}

Launches slice(const KernelCall& call, Arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const std::size_t axis = axis_of(call, "axis", x.shape.size(), 0);
  const Section s = section(x, y, axis, integer(call, "start", 0));
  if (count(y.shape) == 0) return {};
  return {in_words(y.type, [&]<class Word>() {
    return move_rows(body::MoveRows<Word>{words<Word>(x) + s.begin, words<Word>(y), s.part_row,
                                          s.whole_row, s.part_row},
                     s.rows);
  })};
}

Launches permute(const KernelCall& call, Arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_type(x, y);
  const std::size_t rank = x.shape.size();
  require(has(call, "axes"), "attribute 'axes' is missing");
  const Sizes axes = list(call, "axes", rank, 0), strides = row_major_strides(x.shape);
  Sizes expected, steps, sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < rank; ++i) {
    require(sorted[i] == static_cast<std::int64_t>(i), "attribute 'axes' {} is no permutation",
            shape_text(axes));
    expected.push_back(x.shape[static_cast<std::size_t>(axes[i])]);
    steps.push_back(strides[static_cast<std::size_t>(axes[i])]);
  }
  require_shape("y", y, expected);
  return {in_words(y.type, [&]<class Word>() {
    return each_index(body::Gather<Word>{words<Word>(x), words<Word>(y), strided(expected, steps)},
                      count(y.shape));
  })};
}

Launches copy(const KernelCall& call, Arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_type(x, y);
  const std::int64_t total = count(x.shape);
  require(total == count(y.shape), "{} has not as many elements as {}", shape_text(x.shape),
          shape_text(y.shape));
  return {in_words(y.type, [&]<class Word>() {
    return each_index(body::Gather<Word>{words<Word>(x), words<Word>(y), strided({total}, {1})},
                      total);
  })};
}

Launches fill(const KernelCall& call, Arithmetic) {
  const auto& y = call.writes[0];
  const double value = real(call, "value");
  return {in_words(y.type, [&]<class Word>() {
    return each_index(body::Fill<Word>{words<Word>(y), word_of<Word>(y.type, value)},
                      count(y.shape));
  })};
}

Launches iota(const KernelCall& call, Arithmetic) {
  const auto& y = call.writes[0];
  require(!y.shape.empty(), "a scalar has no axis to count along");
  return {each_index(body::Iota{any_integers(y), y.shape.back()}, count(y.shape))};
}

}  // namespace stowage::kernels
