// A model of one linear layer.
#pragma once

namespace stowage::testing {

/// Its weight, of 1,048,576 fp32 elements, takes 4 MiB, as do its gradient and each moment.
inline constexpr const char* one_layer = R"(
model: m
inputs:
  x: {shape: [batch, 1024]}
  label: {shape: [batch], dtype: int64}
layers:
  - linear: {name: fc, from: x, features: 1024, bias: false}
loss:
  cross_entropy: {from: [fc, label]}
)";

}  // namespace stowage::testing
