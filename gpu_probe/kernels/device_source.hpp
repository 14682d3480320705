// The source of the kernels of our own, embedded in the program: what NVRTC compiles for a device.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stowage::kernels {

/// A header of bodies/, by the name that the others include it by.
struct DeviceHeader {
  const char* name;
  const char* text;
};
/// In alphabetical order. Defined in a source that the build writes (cmake/embed_sources.cmake).
[[nodiscard]] std::span<const DeviceHeader> device_headers();

/// A program that includes them all.
[[nodiscard]] std::string device_program();

/// "stowage::body::each_index<...>": the function that a launch of the body calls.
[[nodiscard]] std::string device_function(std::string_view body, bool in_groups);

}  // namespace stowage::kernels
