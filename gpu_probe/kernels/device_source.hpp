// The source of our own kernels, embedded in the program: NVRTC compiles it for a device.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stowage::kernels {

/// A header of bodies/, with the name by which the others include it.
struct DeviceHeader {
  const char* name;
  const char* text;
};
/// In alphabetical order. Defined in a source that the build writes (cmake/embed_sources.cmake).
[[nodiscard]] std::span<const DeviceHeader> device_headers();

/// A program that includes all of them.
[[nodiscard]] std::string device_program();

/// The name of the function that a launch of the body calls: "stowage::body::each_index<...>".
[[nodiscard]] std::string device_function(std::string_view body, bool in_groups);

}  // namespace stowage::kernels
