#include "gpu_probe/device/cuda_driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

#include "gpu_probe/driver/driver_presence.hpp"
#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {
namespace {

// The driver API's types and entry points, as its documentation gives them (CUDA 12 and 13).
using CuResult = int;
using CuDevice = int;
constexpr int attribute_compute_major = 75;
constexpr int attribute_compute_minor = 76;

struct Driver {
  CuResult (*init)(unsigned flags) = nullptr;
  CuResult (*device_count)(int* count) = nullptr;
  CuResult (*device_get)(CuDevice* device, int ordinal) = nullptr;
  CuResult (*device_name)(char* name, int length, CuDevice device) = nullptr;
  CuResult (*device_memory)(std::size_t* bytes, CuDevice device) = nullptr;
  CuResult (*device_attribute)(int* value, int attribute, CuDevice device) = nullptr;
  CuResult (*error_text)(CuResult error, const char** text) = nullptr;
};

Result<Driver> load_driver() {
  const SharedLibrary library("libcuda.so.1");
  if (!library || is_driver_stand_in(library)) {
    const char* why = !library ? dlerror() : "libcuda.so.1 was not found";
    return failure(fmt::format("there is no CUDA driver: {}", why),
                   "--on host executes the plan on the CPU");
  }
  Driver driver;
  const bool whole = library.bind("cuInit", driver.init) &&
                     library.bind("cuDeviceGetCount", driver.device_count) &&
                     library.bind("cuDeviceGet", driver.device_get) &&
                     library.bind("cuDeviceGetName", driver.device_name) &&
                     library.bind("cuDeviceTotalMem_v2", driver.device_memory) &&
                     library.bind("cuDeviceGetAttribute", driver.device_attribute) &&
                     library.bind("cuGetErrorString", driver.error_text);
  if (!whole) return failure(fmt::format("the CUDA driver is too old: {}", dlerror()));
  return driver;
}

tl::unexpected<Diagnostics> refused(const Driver& driver, const char* call, CuResult error) {
  const char* text = nullptr;
  driver.error_text(error, &text);
  return failure(fmt::format("the CUDA driver's {} fails with error {} ({})", call, error,
                             text == nullptr ? "unknown" : text));
}

Result<CudaDevice> describe(const Driver& driver, int ordinal) {
  CuDevice device = 0;
  if (const CuResult error = driver.device_get(&device, ordinal)) {
    return refused(driver, "cuDeviceGet", error);
  }
  CudaDevice result;
  std::array<char, 256> name{};
  if (const CuResult error =
          driver.device_name(name.data(), static_cast<int>(name.size()), device)) {
    return refused(driver, "cuDeviceGetName", error);
  }
  result.name = name.data();
  std::size_t bytes = 0;
  if (const CuResult error = driver.device_memory(&bytes, device)) {
    return refused(driver, "cuDeviceTotalMem", error);
  }
  result.total_bytes = static_cast<std::int64_t>(bytes);
  for (const auto& [attribute, value] :
       {std::pair(attribute_compute_major, &result.compute_major),
        std::pair(attribute_compute_minor, &result.compute_minor)}) {
    if (const CuResult error = driver.device_attribute(value, attribute, device)) {
      return refused(driver, "cuDeviceGetAttribute", error);
    }
  }
  return result;
}

}  // namespace

Result<std::vector<CudaDevice>> cuda_devices() {
  const auto driver = load_driver();
  if (!driver) return tl::unexpected(driver.error());
  if (const CuResult error = driver->init(0)) return refused(*driver, "cuInit", error);
  int count = 0;
  if (const CuResult error = driver->device_count(&count)) {
    return refused(*driver, "cuDeviceGetCount", error);
  }
  if (count == 0) return failure("the CUDA driver shows no device");
  std::vector<CudaDevice> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto device = describe(*driver, ordinal);
    if (!device) return tl::unexpected(device.error());
    devices.push_back(std::move(*device));
  }
  return devices;
}

}  // namespace stowage
