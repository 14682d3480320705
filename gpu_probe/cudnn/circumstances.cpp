#include "gpu_probe/cudnn/circumstances.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "gpu_probe/driver/library_places.hpp"

namespace stowage {

namespace {

// Variables that decide which libraries are found, or how cuDNN and cuBLAS answer.
std::set<std::string> steering_environment() {
  constexpr std::string_view prefixes[] = {"LD_LIBRARY_PATH=", "LD_PRELOAD=", "CUDNN_", "CUBLAS",
                                           "NVIDIA_TF32_OVERRIDE="};
  std::set<std::string> found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (std::ranges::any_of(prefixes, [&](auto prefix) { return text.starts_with(prefix); })) {
      found.emplace(text);
    }
  }
  return found;
}

bool is_part(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  constexpr std::string_view prefixes[] = {"libcudnn",   "libcublas",
                                           "libnvrtc",   "libnvJitLink",
                                           "libcuda.so", "libstowage_driver_stand_in"};
  return std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

const SharedLibrary& cudnn_forwarder() {
  static const SharedLibrary library = first_that_loads(cudnn_places());
  return library;
}

std::string file_stamp(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return fmt::format("absent {}", path);
  return fmt::format("{} {} {} {}", found.st_size, nanoseconds(found.st_mtim),
                     nanoseconds(found.st_ctim), path);
}

std::string cudnn_circumstances(const std::string& sources_hash, const std::string& device) {
  const std::string forwarder = cudnn_forwarder().path();
  if (forwarder.empty()) return "";
  std::string text = fmt::format("asker {}\n", sources_hash);
  for (const std::string& variable : steering_environment()) text += variable + '\n';
  text += fmt::format("loader {}\n", file_stamp("/etc/ld.so.cache"));
  text += fmt::format("forwarder {}\n", file_stamp(forwarder));
  return text + "device " + device;
}

std::optional<std::string> loaded_cudnn_parts() {
  // A line has: address permissions offset device inode path.
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> paths;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t begin = line.find('/');
    if (begin == std::string::npos || !is_part(line.substr(begin))) continue;
    if (line.ends_with(" (deleted)")) return std::nullopt;
    paths.insert(line.substr(begin));
  }
  std::string stamps;
  for (const std::string& path : paths) stamps += file_stamp(path) + '\n';
  return stamps;
}

bool files_unchanged(const std::string& stamps) {
  std::istringstream lines(stamps);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t path = line.find('/');
    if (path == std::string::npos || file_stamp(line.substr(path)) != line) return false;
  }
  return true;
}

}  // namespace stowage
