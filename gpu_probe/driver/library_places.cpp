#include "gpu_probe/driver/library_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

namespace stowage {

namespace {

namespace fs = std::filesystem;

constexpr int oldest_toolkit = 12, newest_toolkit = 13;

struct ChosenFolders {
  std::string cudnn, all;
};
ChosenFolders& chosen() {
  static ChosenFolders folders;
  return folders;
}

/// The file names of a library, newest first, and the folders that wheels put it into: cuDNN has
/// its own, each library of CUDA 12 has its own, the libraries of CUDA 13 share one.
struct LibraryNames {
  std::vector<std::string> files;
  std::vector<std::string> wheels;
};

LibraryNames names_of(NvidiaLibrary library, int newest) {
  if (library == NvidiaLibrary::cudnn) return {{cudnn_file}, {"cudnn"}};
  const bool is_nvrtc = library == NvidiaLibrary::nvrtc;
  const char* const stem = is_nvrtc                              ? "nvrtc"
                           : library == NvidiaLibrary::cublas_lt ? "cublasLt"
                                                                 : "cublas";
  LibraryNames names{{}, {"cu13", is_nvrtc ? "cuda_nvrtc" : "cublas"}};
  for (int major = std::min(newest, newest_toolkit); major >= oldest_toolkit; --major) {
    names.files.push_back(fmt::format("lib{}.so.{}", stem, major));
  }
  return names;
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
  explicit Places(LibraryNames names) : names_(std::move(names)) {}

  void add(const fs::path& folder) {
    for (const std::string& file : names_.files) {
      if (is_there(folder / file)) paths_.push_back((folder / file).string());
    }
  }

  void add_root(const fs::path& root) {
    for (const char* folder : {"lib", "lib64"}) add(root / folder);
  }

  void add_packages(const fs::path& packages) {
    for (const std::string& wheel : names_.wheels) add_root(packages / "nvidia" / wheel);
  }

  /// Adds the packages of a Python. `prefix`: that of an environment, or /usr.
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
  void add_loader() { paths_.insert(paths_.end(), names_.files.begin(), names_.files.end()); }

 private:
  LibraryNames names_;
  std::vector<std::string> paths_;
};

std::vector<std::string> places_in(const fs::path& folder, LibraryNames names) {
  Places places(std::move(names));
  places.add(folder);
  places.add_root(folder);
  places.add_packages(folder);
  places.add_prefix(folder);
  return std::move(places).take();
}

}  // namespace

std::vector<std::string> library_places(NvidiaLibrary library, int newest) {
  const bool is_cudnn = library == NvidiaLibrary::cudnn;
  const std::string& folder = is_cudnn && !chosen().cudnn.empty() ? chosen().cudnn : chosen().all;
  if (!folder.empty()) return places_in(folder, names_of(library, newest));
  Places places(names_of(library, newest));
  if (const std::string root = variable(is_cudnn ? "CUDNN_PATH" : "CUDA_PATH"); !root.empty()) {
    for (const char* inner : {"lib64", "lib"}) places.add(fs::path(root) / inner);
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

std::vector<std::string> cudnn_places() {
  return library_places(NvidiaLibrary::cudnn, newest_toolkit);
}

bool has_cudnn(const std::string& folder) {
  return !places_in(folder, names_of(NvidiaLibrary::cudnn, newest_toolkit)).empty();
}

bool has_nvidia_libraries(const std::string& folder) {
  return std::ranges::any_of(
      std::array{NvidiaLibrary::cudnn, NvidiaLibrary::cublas, NvidiaLibrary::nvrtc},
      [&](NvidiaLibrary library) {
        return !places_in(folder, names_of(library, newest_toolkit)).empty();
      });
}

void use_cudnn_in(std::string folder) { chosen().cudnn = std::move(folder); }
void use_nvidia_libraries_in(std::string folder) { chosen().all = std::move(folder); }

}  // namespace stowage
