#include "gpu_probe/driver/driver_presence.hpp"

#include <filesystem>
#include <system_error>

#include "estimator/base/installation.hpp"

namespace stowage {

namespace {

constexpr const char* stand_in_name = "libstowage_driver_stand_in.so";

Result<void> load() {
  if (SharedLibrary("libcuda.so.1")) return {};
  std::error_code ignored;
  for (const std::filesystem::path& folder : module_folders()) {
    const std::filesystem::path file = folder / stand_in_name;
    if (!std::filesystem::exists(file, ignored)) continue;
    if (SharedLibrary(file.string())) return {};
  }
  return failure(
      "cuDNN cannot be asked about this: there is no libcuda.so.1, and the stand-in for it does "
      "not "
      "load");
}

}  // namespace

Result<void> ensure_driver_loads() {
  static const Result<void> loaded = load();
  return loaded;
}

bool is_driver_stand_in(const SharedLibrary& library) {
  return library.path().ends_with(stand_in_name);
}

}  // namespace stowage
