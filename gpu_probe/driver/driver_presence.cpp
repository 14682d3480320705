#include "gpu_probe/driver/driver_presence.hpp"

#include <array>
#include <filesystem>
#include <system_error>

namespace stowage {

namespace {

constexpr const char* stand_in_name = "libstowage_driver_stand_in.so";

Result<void> load() {
  if (SharedLibrary("libcuda.so.1")) return {};
  std::error_code ignored;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& folder :
       {program, program.parent_path(), program.parent_path() / "lib" / "stowage"}) {
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
