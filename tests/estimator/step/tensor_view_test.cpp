// Which reshapes are views: against a walk over all elements.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

/// The position in memory of every element, in row-major order of the view's shape.
std::vector<std::int64_t> positions(const TensorView& view) {
  std::vector<std::int64_t> result{view.offset.constant};
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    std::vector<std::int64_t> next;
    for (const std::int64_t base : result) {
      for (std::int64_t i = 0; i < view.shape[axis].constant; ++i) {
        next.push_back(base + i * view.strides[axis].constant);
      }
    }
    result = std::move(next);
  }
  return result;
}

}  // namespace

TEST_CASE("a reshape that is a view shows the same elements in the same order") {
  std::mt19937 random(1);
  int views = 0, copies = 0;
  for (int round = 0; round < 3000; ++round) {
    Shape shape;
    for (std::size_t i = 0; i < 1 + random() % 4; ++i) shape.push_back(1 + random() % 4);
    TensorView view = contiguous_view(StorageId{0}, shape, DataType::float32);
    std::vector<std::int64_t> axes(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), random);
    if (random() % 3 > 0) view = permuted(view, axes);
    if (random() % 3 == 0) {
      const std::size_t axis = random() % view.shape.size();
      const std::int64_t length = 1 + random() % view.shape[axis].constant;
      view = sliced(view, axis, view.shape[axis].constant - length, length);
    }
    // Another shape of as many elements: join or part axes at random.
    Shape wanted;
    std::int64_t left = element_count(view.shape).constant;
    while (left > 1) {
      std::vector<std::int64_t> divisors;
      for (std::int64_t d = 2; d <= left; ++d) {
        if (left % d == 0) divisors.push_back(d);
      }
      wanted.push_back(divisors[random() % divisors.size()]);
      left /= wanted.back().constant;
    }
    if (random() % 4 == 0) wanted.push_back(1);
    const auto result = reshaped(view, wanted);
    if (!result) {
      ++copies;
      CHECK_FALSE(is_contiguous(view));
      continue;
    }
    ++views;
    CHECK(positions(*result) == positions(view));
    CHECK(result->shape == wanted);
  }
  CHECK(views > 500);
  CHECK(copies > 500);
}

TEST_CASE("heads that were transposed cannot be joined without a copy, and back they can") {
  const TensorView heads =
      contiguous_view(StorageId{0}, {batch_symbol, 12, 128, 64}, DataType::float32);
  const std::vector<std::int64_t> swap{0, 2, 1, 3};
  CHECK_FALSE(reshaped(permuted(heads, swap), {batch_symbol, 128, 768}).has_value());
  const TensorView rows =
      contiguous_view(StorageId{0}, {batch_symbol, 128, 768}, DataType::float32);
  const auto parted = reshaped(rows, {batch_symbol, 128, 12, 64});
  REQUIRE(parted.has_value());
  const auto joined = reshaped(permuted(permuted(*parted, swap), swap), {batch_symbol, 128, 768});
  CHECK(joined.has_value());
}

}  // namespace stowage
