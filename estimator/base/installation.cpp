#include "estimator/base/installation.hpp"

#include <system_error>
#include <utility>

namespace stowage {

namespace {

namespace fs = std::filesystem;

std::string& installation() {
  static std::string prefix;
  return prefix;
}

fs::path folder_of_program() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

}  // namespace

void use_installation(std::string prefix) { installation() = std::move(prefix); }

std::vector<fs::path> config_folders() {
  std::vector<fs::path> folders;
  if (const fs::path prefix = installation(); !prefix.empty()) {
    folders.push_back(prefix / "share" / "stowage" / "configs");
  }
  const fs::path program = folder_of_program();
  folders.push_back(program / "configs");
  folders.push_back((program / ".." / "share" / "stowage" / "configs").lexically_normal());
  return folders;
}

std::vector<fs::path> module_folders() {
  std::vector<fs::path> folders;
  if (const fs::path prefix = installation(); !prefix.empty()) {
    folders.push_back(prefix / "lib" / "stowage");
  }
  const fs::path program = folder_of_program();
  folders.push_back(program);
  folders.push_back(program.parent_path());
  folders.push_back(program.parent_path() / "lib" / "stowage");
  return folders;
}

}  // namespace stowage
