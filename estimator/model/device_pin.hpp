// DevicePin: "keep this on that side", as a description or a command line says it.
//
//   encoder.*=cpu         a scope: the kernels of its layers and their variables; '*' stands for
//   any
//                         characters, '?' for one; "encoder" alone is the layer or all below it
//   class:parameter=cpu   all storages of a class
//   op:embedding=cpu      all kernels of an operator
//
// What a pin comes to on a step, and which of several wins, is the planner's to say
// (planner/problem/step_pins.hpp).
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
  bool overrides = false;  ///< from the command line: it wins over all of a description
  SourceSpan span = {};
};
/// As it is written: "class:parameter=cpu".
[[nodiscard]] std::string to_string(const DevicePin& pin);

inline constexpr std::size_t longest_pin_pattern = 256;  ///< bytes
inline constexpr std::size_t most_pins = 256;            ///< of a description, or a command line

/// Sides are "cpu" and "gpu", also as TensorFlow and PyTorch write them ("/device:GPU:0", "cuda").
/// Errors, placed at `span`: an empty or too long pattern, another side.
[[nodiscard]] Result<DevicePin> parse_device_pin(std::string_view pattern, std::string_view side,
                                                 SourceSpan span = {});

/// Whether the whole name fits the pattern. At most length of the name times that of the pattern.
[[nodiscard]] bool fits_pattern(std::string_view name, std::string_view pattern);
[[nodiscard]] bool has_wildcard(std::string_view pattern);

}  // namespace stowage
