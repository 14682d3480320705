// FloatElements: a tensor's bytes as numbers, in any floating-point format.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage {

/// Precondition: the type is a floating-point format, and the bytes are a whole number of elements.
class FloatElements {
 public:
  FloatElements(const std::vector<std::byte>& bytes, DataType type)
      : floats_(kernels::any_floats({const_cast<std::byte*>(bytes.data()), type, {}})),
        size_(bytes.size() / static_cast<std::size_t>(element_size(type))) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] double operator[](std::size_t i) const {
    return floats_.at<double>(static_cast<body::Index>(i));
  }

 private:
  body::Floats floats_;
  std::size_t size_;
};

/// Rounds the i-th number to the format, to nearest.
inline void set_element(std::vector<std::byte>& bytes, DataType type, std::size_t i, double value) {
  kernels::any_floats({bytes.data(), type, {}}).set(static_cast<body::Index>(i), value);
}

}  // namespace stowage
