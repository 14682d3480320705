#include "gpu_probe/driver/found_libraries.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "gpu_probe/driver/library_places.hpp"
#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {
namespace {

/// "" where the library is none.
std::string cublas_version(const SharedLibrary& library) {
  std::size_t (*version)() = nullptr;
  if (!library.bind("cublasLtGetVersion", version)) return "";
  const std::size_t number = version();  // 130100 of 13.1.0
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::string nvrtc_version(const SharedLibrary& library) {
  int (*version)(int*, int*) = nullptr;
  int major = 0, minor = 0;
  if (!library.bind("nvrtcVersion", version) || version(&major, &minor) != 0) return "";
  return fmt::format("{}.{}", major, minor);
}

FoundLibrary first_of(const char* name, NvidiaLibrary which, int newest,
                      std::string (*version_of)(const SharedLibrary&)) {
  for (const std::string& file : library_places(which, newest)) {
    const SharedLibrary library(file);
    if (!library) continue;
    std::string version = version_of(library);
    if (!version.empty()) return {name, std::move(version), library.path()};
  }
  return {name, "", ""};
}

}  // namespace

std::vector<FoundLibrary> found_libraries(int newest) {
  return {first_of("cuBLAS", NvidiaLibrary::cublas_lt, newest, cublas_version),
          first_of("NVRTC", NvidiaLibrary::nvrtc, newest, nvrtc_version)};
}

}  // namespace stowage
