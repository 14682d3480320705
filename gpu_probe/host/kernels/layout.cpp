// Kernels that move or make elements and compute nothing: copies, slices, permutations, constants.
#include <algorithm>
#include <cstring>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

void require_same_type(const TensorArgument& a, const TensorArgument& b) {
  require(a.type == b.type, "{} and {} differ in type", to_string(a.type), to_string(b.type));
}

std::size_t bytes(std::int64_t elements, DataType type) {
  return static_cast<std::size_t>(elements * element_size(type));
}

/// Copies between a tensor and the part [start, start + part.shape[axis]) of another along `axis`.
struct Section {
  std::int64_t outer;
  std::size_t whole_row, part_row, begin;  // bytes
};

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
  return {count(whole.shape, 0, axis), bytes(whole.shape[axis] * inner, whole.type),
          bytes(part.shape[axis] * inner, whole.type), bytes(start * inner, whole.type)};
}

}  // namespace

void concatenate(const KernelCall& call) {
  const auto& y = call.writes[0];
  const std::size_t axis = axis_of(call, "axis", y.shape.size(), 0);
  std::int64_t start = 0;
  for (const TensorArgument& x : call.reads) {
    const Section s = section(y, x, axis, start);
    for (std::int64_t o = 0; o < s.outer; ++o) {
      const auto row = static_cast<std::size_t>(o);
      std::memcpy(y.data + row * s.whole_row + s.begin, x.data + row * s.part_row, s.part_row);
    }
    start += x.shape[axis];
  }
  require(start == y.shape[axis], "the parts fill {} of {} along axis {}", start, y.shape[axis],
          axis);
}

void slice(const KernelCall& call) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const std::size_t axis = axis_of(call, "axis", x.shape.size(), 0);
  const Section s = section(x, y, axis, integer(call, "start", 0));
  for (std::int64_t o = 0; o < s.outer; ++o) {
    const auto row = static_cast<std::size_t>(o);
    std::memcpy(y.data + row * s.part_row, x.data + row * s.whole_row + s.begin, s.part_row);
  }
}

void permute(const KernelCall& call) {
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
  const std::size_t size = bytes(1, x.type);
  Sizes index(rank, 0);
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count(y.shape); ++i) {
    std::memcpy(y.data + static_cast<std::size_t>(i) * size,
                x.data + static_cast<std::size_t>(at) * size, size);
    for (std::size_t axis = rank; axis-- > 0;) {
      at += steps[axis];
      if (++index[axis] < y.shape[axis]) break;
      at -= steps[axis] * y.shape[axis];
      index[axis] = 0;
    }
  }
}

void copy(const KernelCall& call) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_type(x, y);
  require(count(x.shape) == count(y.shape), "{} has not as many elements as {}",
          shape_text(x.shape), shape_text(y.shape));
  std::memmove(y.data, x.data, bytes(count(x.shape), x.type));
}

void fill(const KernelCall& call) {
  const auto& y = call.writes[0];
  const double value = real(call, "value");
  if (y.type == DataType::int64) {
    std::fill_n(mutable_integers(y), count(y.shape), static_cast<std::int64_t>(value));
  } else if (y.type == DataType::boolean) {
    std::fill_n(mutable_mask_bytes(y), count(y.shape), static_cast<std::uint8_t>(value != 0));
  } else {
    std::fill_n(mutable_floats(y), count(y.shape), static_cast<float>(value));
  }
}

void iota(const KernelCall& call) {
  const auto& y = call.writes[0];
  require(!y.shape.empty(), "a scalar has no axis to count along");
  std::int64_t* out = mutable_integers(y);
  for (std::int64_t i = 0; i < count(y.shape); ++i) out[i] = i % y.shape.back();
}

}  // namespace stowage::host
