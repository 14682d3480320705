#include "estimator/base/shape.hpp"

#include <doctest/doctest.h>

namespace stowage {

TEST_CASE("shapes count, stride and print") {
  const Shape shape{batch_symbol, 3, 4};
  CHECK(element_count(shape) == Affine(0, 12));
  CHECK(contiguous_strides(shape) == Shape{12, 4, 1});
  CHECK(to_string(shape) == "[batch, 3, 4]");
  CHECK(at_batch(shape, 5) == std::vector<std::int64_t>{5, 3, 4});
  CHECK(element_count({}) == Affine(1));
}

TEST_CASE("copies of a shape share their dimensions until one is changed") {
  const Shape image{batch_symbol, 3, 4};
  Shape copy = image;
  CHECK(std::as_const(copy).data() == image.data());
  copy[1] = 5;
  copy.push_back(6);
  CHECK(copy == Shape{batch_symbol, 5, 4, 6});
  CHECK(image == Shape{batch_symbol, 3, 4});
  const Affine* const own = std::as_const(copy).data();
  copy[0] = 2;
  CHECK(std::as_const(copy).data() == own);
}

TEST_CASE("a shape is edited as a vector is") {
  const Shape square{8, 8};
  Shape shape = square;
  CHECK(*shape.insert(shape.begin(), batch_symbol) == batch_symbol);
  CHECK(*shape.insert(shape.begin() + 1, 2, 3) == Affine(3));
  CHECK(shape == Shape{batch_symbol, 3, 3, 8, 8});
  shape.insert(shape.end(), {square[0], square[1]});
  CHECK(*shape.erase(shape.begin() + 1) == Affine(3));
  CHECK(*shape.erase(shape.begin() + 1, shape.begin() + 3) == Affine(8));
  CHECK(shape == Shape{batch_symbol, 8, 8, 8});
  shape.pop_back();
  shape.resize(4, 1);
  CHECK(shape == Shape{batch_symbol, 8, 8, 1});
  CHECK(Shape(shape.begin() + 1, shape.end()) == Shape{8, 8, 1});
  shape.assign(2, 7);
  CHECK(shape == Shape(2, 7));
  shape.clear();
  CHECK(shape == Shape{});
  CHECK(square == Shape{8, 8});
}

TEST_CASE("a place in a shared shape is the same axis after the change") {
  const Shape square{8, 8};
  Shape shape = square;
  shape.insert(std::as_const(shape).begin() + 1, 2);
  CHECK(shape == Shape{8, 2, 8});
  Shape shorter = square;
  shorter.erase(std::as_const(shorter).begin());
  CHECK(shorter == Shape{8});
}

}  // namespace stowage
