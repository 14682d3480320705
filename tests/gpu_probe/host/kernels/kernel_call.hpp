// Tensors and kernel calls for the tests of the host kernels.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gpu_probe/host/host_kernels.hpp"

namespace stowage::test {

using Sizes = std::vector<std::int64_t>;

struct Tensor {
  Sizes shape;
  DataType type = DataType::float32;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;
  std::vector<std::uint8_t> bytes;

  [[nodiscard]] TensorArgument argument() {
    void* data = type == DataType::float32 ? static_cast<void*>(floats.data())
                 : type == DataType::int64 ? static_cast<void*>(integers.data())
                                           : static_cast<void*>(bytes.data());
    return {static_cast<std::byte*>(data), type, shape};
  }
};

inline std::size_t elements(const Sizes& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return static_cast<std::size_t>(count);
}

inline Tensor tensor(Sizes shape, std::vector<float> values) {
  return {std::move(shape), DataType::float32, std::move(values), {}, {}};
}
/// Full of NaN: a kernel must write every element.
inline Tensor unwritten(const Sizes& shape) {
  return tensor(shape, std::vector<float>(elements(shape), __builtin_nanf("")));
}
inline Tensor integer_tensor(Sizes shape, std::vector<std::int64_t> values) {
  return {std::move(shape), DataType::int64, {}, std::move(values), {}};
}
inline Tensor mask(const Sizes& shape) {
  return {shape, DataType::boolean, {}, {}, std::vector<std::uint8_t>(elements(shape), 2)};
}

using AttributeList = std::vector<std::pair<std::string, AttributeValue>>;

inline Attributes attributes_of(const AttributeList& list) {
  Attributes attributes;
  for (const auto& [name, value] : list) attributes.set(name, value);
  return attributes;
}

[[nodiscard]] Result<void> try_run(Kernel kernel, const Attributes& attributes,
                                   const std::vector<Tensor*>& reads,
                                   const std::vector<Tensor*>& writes);

/// Runs a kernel. One of our own is also run as on a device
/// (tests/gpu_probe/kernels/device_run.hpp).
void run(Kernel kernel, const Attributes& attributes, const std::vector<Tensor*>& reads,
         const std::vector<Tensor*>& writes);

/// Runs a kernel with one float result of the given shape.
inline Tensor result(Kernel kernel, const Attributes& attributes, const std::vector<Tensor*>& reads,
                     const Sizes& shape) {
  Tensor y = unwritten(shape);
  run(kernel, attributes, reads, {&y});
  return y;
}

/// The message of a refused call.
inline std::string refusal(Kernel kernel, const Attributes& attributes,
                           const std::vector<Tensor*>& reads, const std::vector<Tensor*>& writes) {
  const auto done = try_run(kernel, attributes, reads, writes);
  REQUIRE(!done);
  return done.error().front().message;
}

}  // namespace stowage::test
