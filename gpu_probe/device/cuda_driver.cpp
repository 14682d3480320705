#include "gpu_probe/device/cuda_driver.hpp"

#include <fmt/format.h>

#include <array>

#include "estimator/base/cure.hpp"
#include "gpu_probe/driver/cuda_functions.hpp"

namespace stowage {
namespace {

// Values of the driver API's enumerations, from its documentation (CUDA 12 and 13).
constexpr int attribute_compute_major = 75;
constexpr int attribute_compute_minor = 76;

Result<CudaDriver> load_driver() {
  CudaDriver driver;
  if (!driver.is_there()) {
    return failure(fmt::format("there is no CUDA driver: {}", driver.absence()),
                   hint_of(Cure::host_execution));
  }
  if (!driver.lacking_query().empty()) {
    return failure(fmt::format("the CUDA driver is too old: it lacks {}", driver.lacking_query()));
  }
  return driver;
}

tl::unexpected<Diagnostics> refused(const CudaDriver& driver, const char* call, int error) {
  const char* text = nullptr;
  driver->error_text(error, &text);
  return failure(fmt::format("the CUDA driver's {} fails with error {} ({})", call, error,
                             text == nullptr ? "unknown" : text));
}

Result<CudaDevice> describe(const CudaDriver& driver, int ordinal) {
  CudaDeviceNumber device = 0;
  if (const int error = driver->device(&device, ordinal)) {
    return refused(driver, "cuDeviceGet", error);
  }
  CudaDevice result;
  std::array<char, 256> name{};
  if (const int error = driver->device_name(name.data(), static_cast<int>(name.size()), device)) {
    return refused(driver, "cuDeviceGetName", error);
  }
  result.name = name.data();
  std::size_t bytes = 0;
  if (const int error = driver->device_memory(&bytes, device)) {
    return refused(driver, "cuDeviceTotalMem", error);
  }
  result.total_bytes = static_cast<std::int64_t>(bytes);
  for (const auto& [attribute, value] :
       {std::pair(attribute_compute_major, &result.compute_major),
        std::pair(attribute_compute_minor, &result.compute_minor)}) {
    if (const int error = driver->device_attribute(value, attribute, device)) {
      return refused(driver, "cuDeviceGetAttribute", error);
    }
  }
  return result;
}

}  // namespace

Result<std::vector<CudaDevice>> cuda_devices() {
  const auto driver = load_driver();
  if (!driver) return tl::unexpected(driver.error());
  if (const int error = (*driver)->init(0)) return refused(*driver, "cuInit", error);
  int count = 0;
  if (const int error = (*driver)->device_count(&count)) {
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
