// Shape: a tensor's dimensions (or strides), outermost first. An empty shape is a scalar.
//
// Used as std::vector<Affine> is, and cheap to copy: copies share the dimensions until one of them
// is changed (shared.hpp). As with Shared, an iterator or a reference through which one writes
// lasts until the shape is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "estimator/base/affine.hpp"
#include "estimator/base/shared.hpp"

namespace stowage {

class Shape {
 public:
  using value_type = Affine;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = Affine&;
  using const_reference = const Affine&;
  using iterator = Affine*;
  using const_iterator = const Affine*;

  Shape() = default;
  Shape(std::initializer_list<Affine> dimensions) : dimensions_(Dimensions(dimensions)) {}
  explicit Shape(std::size_t rank, Affine dimension = {})
      : dimensions_(Dimensions(rank, dimension)) {}
  template <std::input_iterator Iterator>
  Shape(Iterator first, Iterator last) : dimensions_(Dimensions(first, last)) {}

  Shape(const Shape& other);
  Shape(Shape&&) noexcept = default;
  Shape& operator=(const Shape& other);
  Shape& operator=(Shape&&) noexcept = default;
  ~Shape();

  [[nodiscard]] std::size_t size() const { return dimensions_->size(); }
  [[nodiscard]] bool empty() const { return dimensions_->empty(); }
  [[nodiscard]] const Affine* data() const { return dimensions_->data(); }
  [[nodiscard]] const Affine* begin() const { return data(); }
  [[nodiscard]] const Affine* end() const { return data() + size(); }
  [[nodiscard]] const Affine* cbegin() const { return begin(); }
  [[nodiscard]] const Affine* cend() const { return end(); }
  [[nodiscard]] auto rbegin() const { return std::reverse_iterator(end()); }
  [[nodiscard]] auto rend() const { return std::reverse_iterator(begin()); }
  [[nodiscard]] const Affine& operator[](std::size_t axis) const { return (*dimensions_)[axis]; }
  [[nodiscard]] const Affine& at(std::size_t axis) const { return dimensions_->at(axis); }
  [[nodiscard]] const Affine& front() const { return dimensions_->front(); }
  [[nodiscard]] const Affine& back() const { return dimensions_->back(); }

  [[nodiscard]] Affine* data() { return dimensions_.own().data(); }
  [[nodiscard]] Affine* begin() { return data(); }
  [[nodiscard]] Affine* end() { return data() + size(); }
  [[nodiscard]] Affine& operator[](std::size_t axis) { return dimensions_.own()[axis]; }
  [[nodiscard]] Affine& at(std::size_t axis) { return dimensions_.own().at(axis); }
  [[nodiscard]] Affine& front() { return dimensions_.own().front(); }
  [[nodiscard]] Affine& back() { return dimensions_.own().back(); }

  void reserve(std::size_t rank) { dimensions_.own().reserve(rank); }
  void push_back(Affine dimension) { dimensions_.own().push_back(dimension); }
  template <typename... Parts>
  Affine& emplace_back(Parts... parts) {
    return dimensions_.own().emplace_back(parts...);
  }
  void pop_back() { dimensions_.own().pop_back(); }
  void clear() { dimensions_ = {}; }
  void resize(std::size_t rank, Affine dimension = {}) {
    dimensions_.own().resize(rank, dimension);
  }
  void assign(std::size_t rank, Affine dimension) { *this = Shape(rank, dimension); }
  template <std::input_iterator Iterator>
  void assign(Iterator first, Iterator last) {
    *this = Shape(first, last);
  }
  Affine* insert(const Affine* before, Affine dimension) {
    return insert(before, std::size_t{1}, dimension);
  }
  Affine* insert(const Affine* before, std::size_t count, Affine dimension) {
    const auto axis = before - std::as_const(*this).begin();
    dimensions_.own().insert(dimensions_->begin() + axis, count, dimension);
    return begin() + axis;
  }
  Affine* insert(const Affine* before, std::initializer_list<Affine> dimensions) {
    return insert(before, dimensions.begin(), dimensions.end());
  }
  template <std::input_iterator Iterator>
  Affine* insert(const Affine* before, Iterator first, Iterator last) {
    const auto axis = before - std::as_const(*this).begin();
    dimensions_.own().insert(dimensions_->begin() + axis, first, last);
    return begin() + axis;
  }
  Affine* erase(const Affine* axis) { return erase(axis, axis + 1); }
  Affine* erase(const Affine* first, const Affine* last) {
    const auto axis = first - std::as_const(*this).begin();
    const auto count = last - first;
    dimensions_.own().erase(dimensions_->begin() + axis, dimensions_->begin() + axis + count);
    return begin() + axis;
  }

  bool operator==(const Shape&) const = default;

 private:
  using Dimensions = std::vector<Affine>;
  Shared<Dimensions> dimensions_;
};

/// For unordered containers, which are looked up in and never iterated over.
struct ShapeHash {
  [[nodiscard]] std::size_t operator()(const Shape& shape) const;
};

[[nodiscard]] Affine element_count(const Shape& shape);
[[nodiscard]] Shape contiguous_strides(const Shape& shape);  ///< in elements
[[nodiscard]] std::string to_string(const Shape& shape);     ///< "[batch, 3, 224, 224]"
/// The shape at a batch size.
[[nodiscard]] std::vector<std::int64_t> at_batch(const Shape& shape, std::int64_t batch);

}  // namespace stowage
