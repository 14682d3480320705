#include "gpu_probe/kernels/device_source.hpp"

#include <fmt/format.h>

namespace stowage::kernels {

std::string device_program() {
  std::string program;
  for (const DeviceHeader& header : device_headers()) {
    program += fmt::format("#include \"{}\"\n", header.name);
  }
  return program;
}

std::string device_function(std::string_view body, bool in_groups) {
  return fmt::format("stowage::body::{}<{}>", in_groups ? "each_group" : "each_index", body);
}

}  // namespace stowage::kernels
