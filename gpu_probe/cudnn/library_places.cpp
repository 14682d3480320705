#include "gpu_probe/cudnn/library_places.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

namespace stowage {

namespace {

namespace fs = std::filesystem;

std::string& chosen_folder() {
  static std::string folder;
  return folder;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// The entries of `folder` whose names start with `prefix`, sorted.
std::vector<fs::path> entries(const fs::path& folder, std::string_view prefix) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

class Places {
 public:
  void add(const fs::path& path) {
    if (is_there(path)) paths_.push_back(path.string());
  }

  void add_root(const fs::path& root) {
    for (const char* folder : {"lib", "lib64"}) add(root / folder / cudnn_file);
  }

  // nvidia/cudnn is where the wheels for CUDA 12 and 13 put it.
  void add_packages(const fs::path& packages) { add_root(packages / "nvidia" / "cudnn"); }

  /// The prefix of a Python: of an environment, or /usr.
  void add_prefix(const fs::path& prefix) {
    for (const char* folder : {"lib", "lib64"}) {
      for (const fs::path& python : entries(prefix / folder, "python3")) {
        add_packages(python / "site-packages");
        add_packages(python / "dist-packages");
      }
    }
  }

  void add_python_on_path() {
    std::istringstream folders(variable("PATH"));
    for (std::string folder; std::getline(folders, folder, ':');) {
      const fs::path python = fs::path(folder) / "python3";
      if (folder.empty() || !is_there(python)) continue;
      add_prefix(fs::path(folder).parent_path());
      std::error_code error;
      const fs::path real = fs::canonical(python, error);
      if (!error) add_prefix(real.parent_path().parent_path());
      break;
    }
    add_prefix("/usr/local");
    if (const std::string home = variable("HOME"); !home.empty()) {
      add_prefix(fs::path(home) / ".local");
    }
  }

  [[nodiscard]] std::vector<std::string> take() && { return std::move(paths_); }
  void add_loader() { paths_.emplace_back(cudnn_file); }

 private:
  std::vector<std::string> paths_;
};

std::vector<std::string> places_in(const fs::path& folder) {
  Places places;
  places.add(folder / cudnn_file);
  places.add_root(folder);
  places.add_packages(folder);
  places.add_prefix(folder);
  return std::move(places).take();
}

}  // namespace

std::vector<std::string> cudnn_places() {
  if (!chosen_folder().empty()) return places_in(chosen_folder());
  Places places;
  if (const std::string root = variable("CUDNN_PATH"); !root.empty()) {
    for (const char* folder : {"lib64", "lib"}) places.add(fs::path(root) / folder / cudnn_file);
  }
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = variable(name);
    if (prefix.empty()) continue;
    places.add_prefix(prefix);
    places.add_root(prefix);
  }
  places.add_loader();
  places.add_root("/usr/local/cuda");
  places.add_python_on_path();
  return std::move(places).take();
}

bool has_cudnn(const std::string& folder) { return !places_in(folder).empty(); }

void use_cudnn_in(std::string folder) { chosen_folder() = std::move(folder); }

}  // namespace stowage
