#include "gpu_probe/driver/library_places.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace stowage {

namespace {

namespace fs = std::filesystem;

/// Sets an environment variable for its lifetime.
class PlaceVariable {
 public:
  PlaceVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  PlaceVariable(const PlaceVariable&) = delete;
  PlaceVariable& operator=(const PlaceVariable&) = delete;
  ~PlaceVariable() {
    if (before_) setenv(name_, before_->c_str(), 1);
    if (!before_) unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "stowage-places-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  /// Creates an empty file, and the folders above it.
  std::string file(const std::string& name) const {
    const fs::path path = fs::path(path_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path).put('\n');
    return path.string();
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("the active environment's cuDNN goes before the loader's, CUDNN_PATH before both") {
  const Folder root, environment;
  const std::string by_path = root.file("lib/libcudnn.so.9");
  const std::string by_wheel =
      environment.file("lib/python3.13/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
  const PlaceVariable path("CUDNN_PATH", root.path());
  const PlaceVariable active("VIRTUAL_ENV", environment.path());
  const PlaceVariable conda("CONDA_PREFIX", "");
  const std::vector<std::string> places = cudnn_places();
  REQUIRE(places.size() >= 3);
  CHECK(places[0] == by_path);
  CHECK(places[1] == by_wheel);
  CHECK(places[2] == cudnn_file);
}

TEST_CASE("a wheel's folder, a toolkit's and an environment hold the toolkit's libraries") {
  const Folder environment, toolkit;
  const std::string packages = "lib/python3.12/site-packages/nvidia/";
  const std::string cublas_13 = environment.file(packages + "cu13/lib/libcublas.so.13");
  const std::string cublas_12 = environment.file(packages + "cublas/lib/libcublas.so.12");
  const std::string nvrtc_12 = environment.file(packages + "cuda_nvrtc/lib/libnvrtc.so.12");
  const std::string of_toolkit = toolkit.file("lib64/libnvrtc.so.13");
  const PlaceVariable path("CUDA_PATH", toolkit.path());
  const PlaceVariable active("VIRTUAL_ENV", environment.path());
  const PlaceVariable conda("CONDA_PREFIX", "");
  const auto first = [](NvidiaLibrary library, int newest, std::size_t count) {
    std::vector<std::string> places = library_places(library, newest);
    places.resize(std::min(places.size(), count));
    return places;
  };
  CHECK(first(NvidiaLibrary::cublas, 13, 4) ==
        std::vector<std::string>{cublas_13, cublas_12, "libcublas.so.13", "libcublas.so.12"});
  // A driver of CUDA 12 cannot use newer libraries.
  CHECK(first(NvidiaLibrary::cublas, 12, 2) ==
        std::vector<std::string>{cublas_12, "libcublas.so.12"});
  CHECK(first(NvidiaLibrary::nvrtc, 13, 2) == std::vector<std::string>{of_toolkit, nvrtc_12});
  CHECK(first(NvidiaLibrary::nvrtc, 14, 1) == std::vector<std::string>{of_toolkit});
  CHECK(library_places(NvidiaLibrary::nvrtc, 11).empty());
  CHECK(has_nvidia_libraries(environment.path()));
  CHECK(has_nvidia_libraries(toolkit.path()));
  CHECK(has_nvidia_libraries(toolkit.path() + "/lib64"));
  CHECK_FALSE(has_cudnn(environment.path()));
  const Folder empty;
  CHECK_FALSE(has_nvidia_libraries(empty.path()));
}

TEST_CASE("a folder that is chosen for all is the only one, but for cuDNN where that has its own") {
  const Folder all, own;
  const std::string cublas = all.file("libcublas.so.12"), cudnn = all.file("libcudnn.so.9");
  const std::string own_cudnn = own.file("libcudnn.so.9");
  use_nvidia_libraries_in(all.path());
  CHECK(library_places(NvidiaLibrary::cublas, 13) == std::vector<std::string>{cublas});
  CHECK(library_places(NvidiaLibrary::nvrtc, 13).empty());
  CHECK(cudnn_places() == std::vector<std::string>{cudnn});
  use_cudnn_in(own.path());
  CHECK(cudnn_places() == std::vector<std::string>{own_cudnn});
  use_cudnn_in("");
  use_nvidia_libraries_in("");
}

TEST_CASE("the packages of the python3 on PATH come last") {
  const Folder prefix;
  prefix.file("bin/python3");
  const std::string wheel =
      prefix.file("lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
  const PlaceVariable path("PATH", "/nowhere:" + prefix.path() + "/bin");
  const PlaceVariable active("VIRTUAL_ENV", "");
  const std::vector<std::string> places = cudnn_places();
  const auto loader = std::ranges::find(places, cudnn_file);
  const auto found = std::ranges::find(places, wheel);
  REQUIRE(found != places.end());
  CHECK(loader < found);
}

TEST_CASE("a folder that is named may be cuDNN's root, its library folder or an environment") {
  const Folder folder;
  CHECK_FALSE(has_cudnn(folder.path()));
  folder.file("a/lib64/libcudnn.so.9");
  CHECK(has_cudnn(folder.path() + "/a"));
  CHECK(has_cudnn(folder.path() + "/a/lib64"));
  folder.file("b/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
  CHECK(has_cudnn(folder.path() + "/b"));
  CHECK(has_cudnn(folder.path() + "/b/lib/python3.11/site-packages"));
  CHECK_FALSE(has_cudnn(folder.path() + "/none"));
}

}  // namespace stowage
