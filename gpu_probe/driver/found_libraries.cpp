#include "gpu_probe/driver/found_libraries.hpp"

#include <fmt/format.h>

#include "gpu_probe/driver/library_places.hpp"
#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {
namespace {

/// "" where the library is not cuBLASLt.
std::string cublas_version(const SharedLibrary& library) {
  std::size_t (*version)() = nullptr;
  if (!library.bind("cublasLtGetVersion", version)) return "";
  return library_version_text(version());
}

/// "" where the library is not NVRTC.
std::string nvrtc_version(const SharedLibrary& library) {
  int (*version)(int*, int*) = nullptr;
  int major = 0, minor = 0;
  if (!library.bind("nvrtcVersion", version) || version(&major, &minor) != 0) return "";
  return fmt::format("{}.{}", major, minor);
}

FoundLibrary find_library(const char* name, NvidiaLibrary which, int newest,
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

std::string library_version_text(std::size_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::vector<FoundLibrary> found_libraries(int newest) {
  return {find_library("cuBLAS", NvidiaLibrary::cublas_lt, newest, cublas_version),
          find_library("NVRTC", NvidiaLibrary::nvrtc, newest, nvrtc_version)};
}

}  // namespace stowage
