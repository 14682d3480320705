#include "estimator/card/kernel_code.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

struct Wheel {
  std::string name;
  std::vector<std::string> libraries;
};

const std::string cudnn9 = "nvidia_cudnn_cu13 9.19.0.56";
const std::vector<Wheel> wheels{
    {"torch 1.10.2", {"libtorch_cuda.so"}},
    {"torch 1.13.1", {"libtorch_cuda_cu.so", "libtorch_cuda_cpp.so"}},
    {"torch 2.1.1", {"libtorch_cuda.so"}},
    {"torch 2.11.0", {"libtorch_cuda.so"}},
    {"tensorflow 2.5.0", {"_pywrap_tensorflow_internal.so"}},
    {"tensorflow 2.18.0", {"libtensorflow_cc.so.2", "libtensorflow_framework.so.2"}},
    {"nvidia_cublas_cu11 11.10.3.66", {"libcublas.so.11"}},
    {"nvidia_cublas_cu12 12.1.3.1", {"libcublas.so.12"}},
    {"nvidia_cublas 13.1.0.3", {"libcublas.so.13"}},
    {"nvidia_cudnn_cu11 8.5.0.96", {"libcudnn_cnn_infer.so.8", "libcudnn_ops_infer.so.8"}},
    {"nvidia_cudnn_cu12 8.9.2.26", {"libcudnn_cnn_infer.so.8", "libcudnn_ops_infer.so.8"}},
    {cudnn9,
     {"libcudnn_cnn.so.9", "libcudnn_ops.so.9", "libcudnn_engines_precompiled.so.9",
      "libcudnn_engines_runtime_compiled.so.9"}},
    {"nvidia_cudnn_cu11 8.5.0.96", {"libcudnn_cnn_train.so.8", "libcudnn_ops_train.so.8"}},
    {"nvidia_cudnn_cu12 8.9.2.26", {"libcudnn_cnn_train.so.8", "libcudnn_ops_train.so.8"}},
};

nlohmann::json measured() {
  std::ifstream file(testing::source_path("/tests/reference/kernel_code.json"));
  return nlohmann::json::parse(file);
}

}  // namespace

TEST_CASE("the table has what was read off the wheels, to the mebibyte") {
  const nlohmann::json reference = measured();
  const auto rows = kernel_code_rows();
  // The last row says that cuDNN 9 has no libraries for training apart.
  REQUIRE(rows.size() == wheels.size() + 1);
  for (std::size_t i = 0; i < wheels.size(); ++i) {
    CAPTURE(wheels[i].name);
    std::map<int, double> bytes;
    for (const std::string& library : wheels[i].libraries) {
      for (const auto& [architecture, code] : reference.at(wheels[i].name).at(library).items()) {
        bytes[std::stoi(architecture)] += code.get<double>();
      }
    }
    REQUIRE(rows[i].code.size() == bytes.size());
    auto expected = bytes.begin();
    for (const ArchitectureCode& code : rows[i].code) {
      CHECK(code.architecture == expected->first);
      CHECK(code.mebibytes == std::lround(expected->second / (1 << 20)));
      ++expected;
    }
  }
}

TEST_CASE("a release is the newest that is not newer than asked") {
  const auto release = [](ReleaseVersion cuda) {
    return kernel_code(KernelLibrary::pytorch, cuda, 8.0).release;
  };
  CHECK(release({9, 0}) == "PyTorch 1.10.2");
  CHECK(release({11, 6}) == "PyTorch 1.10.2");
  CHECK(release({11, 7}) == "PyTorch 1.13.1");
  CHECK(release({12, 0}) == "PyTorch 1.13.1");
  CHECK(release({12, 8}) == "PyTorch 2.1.1");
  CHECK(release({14, 0}) == "PyTorch 2.11.0");
}

TEST_CASE("a card takes the code of its generation, or of the one below") {
  const auto architecture = [](double capability) {
    return kernel_code(KernelLibrary::pytorch, {13, 0}, capability).architecture;
  };
  CHECK(architecture(8.0) == 80);
  CHECK(architecture(8.6) == 80);  // 533 MiB against 532
  CHECK(architecture(8.9) == 80);
  CHECK(architecture(9.0) == 90);
  CHECK(architecture(12.1) == 120);
  CHECK(architecture(5.2) == 75);
  const KernelCode maxwell = kernel_code(KernelLibrary::tensorflow, {11, 4}, 5.2);
  CHECK(maxwell.architecture == 50);
  CHECK(maxwell.bytes == 134_MiB);
  CHECK(kernel_code(KernelLibrary::pytorch, {11, 7}, 9.0).architecture == 80);
}

}  // namespace stowage
