// DevicePin: a rule that keeps kernels or storages on the CPU or on the GPU, from a description or
// a command line.
//
//   encoder.*=cpu         a scope: the kernels of its layers and their variables; '*' matches any
//                         characters, '?' one; "encoder" alone is the layer or all below it
//   class:parameter=cpu   all storages of a class
//   op:embedding=cpu      all kernels of an operator
//
// planner/problem/step_pins.hpp applies pins to a step, and decides which of several wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

enum class PinnedSide : std::uint8_t { cpu, gpu };
[[nodiscard]] std::string_view to_string(PinnedSide side);  ///< "cpu", "gpu"

enum class PinTarget : std::uint8_t { scope, storage_class, op };

struct DevicePin {
  PinTarget target = PinTarget::scope;
  std::string pattern;  ///< without "class:" or "op:"; "parameter", "encoder.*"
  PinnedSide side = PinnedSide::cpu;
  bool overrides = false;  ///< from the command line: it overrides the description's pins
  SourceSpan span = {};
};
/// The pin as it is written: "class:parameter=cpu".
[[nodiscard]] std::string to_string(const DevicePin& pin);

inline constexpr std::size_t longest_pin_pattern = 256;  ///< bytes
inline constexpr std::size_t most_pins = 256;            ///< in a description, or on a command line

/// Sides are "cpu" and "gpu", also as TensorFlow and PyTorch write them ("/device:GPU:0", "cuda").
/// Errors, placed at `span`: an empty or too long pattern, another side.
[[nodiscard]] Result<DevicePin> parse_device_pin(std::string_view pattern, std::string_view side,
                                                 SourceSpan span = {});

/// Whether the whole name matches the pattern. Takes at most (length of the name) x (length of the
/// pattern) steps.
[[nodiscard]] bool fits_pattern(std::string_view name, std::string_view pattern);
[[nodiscard]] bool has_wildcard(std::string_view pattern);

}  // namespace stowage
