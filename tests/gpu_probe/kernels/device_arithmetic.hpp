// Runs a call in a device's arithmetic, with arguments of any type and one thread in a group.
#pragma once

#include <doctest/doctest.h>

#include <vector>

#include "gpu_probe/kernels/rows/rows.hpp"

namespace stowage::test {

inline void run_on_device(Kernel kernel, const Attributes& attributes,
                          const std::vector<TensorArgument>& reads,
                          const std::vector<TensorArgument>& writes) {
  const auto launches = kernels::launches_of({.kernel = kernel,
                                              .device = Device::gpu,
                                              .attributes = &attributes,
                                              .reads = reads,
                                              .writes = writes,
                                              .engine = {},
                                              .workspace = nullptr,
                                              .workspace_bytes = {}},
                                             kernels::Arithmetic::device);
  REQUIRE_MESSAGE(launches.has_value(), (launches ? "" : launches.error().front().message));
  for (const kernels::Launch& launch : *launches) {
    launch.run(launch.values.data(), 0, launch.count);
  }
}

/// A tensor with one axis.
template <class T>
TensorArgument argument_of(std::vector<T>& values, DataType type) {
  return {reinterpret_cast<std::byte*>(values.data()),
          type,
          {static_cast<std::int64_t>(values.size())}};
}

}  // namespace stowage::test
