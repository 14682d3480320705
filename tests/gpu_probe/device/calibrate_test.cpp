#include "gpu_probe/device/calibrate.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "estimator/card/card_file.hpp"
#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {

namespace {

CalibrationLibraries fake_gpu() {
  return {.nvml = STOWAGE_FAKE_GPU,
          .cuda = STOWAGE_FAKE_GPU,
          .cublas = {"libno-such-cublas.so", STOWAGE_FAKE_GPU},
          .cudnn = STOWAGE_FAKE_GPU};
}

/// The error of one calibration on the fake GPU with a setting.
std::string refusal(const char* setting, const CalibrationLibraries& libraries = fake_gpu(),
                    int device = 0) {
  setenv("STOWAGE_FAKE_GPU", setting, 1);
  const auto result = calibrate(device, libraries);
  unsetenv("STOWAGE_FAKE_GPU");
  return result ? "" : result.error().front().message;
}

}  // namespace

TEST_CASE("a calibration sees what each step takes of the device") {
  const auto calibration = calibrate(0, fake_gpu());
  REQUIRE_MESSAGE(calibration.has_value(), calibration.error().front().message);
  CHECK(calibration->name == "NVIDIA GeForce RTX 3090");
  CHECK(calibration->driver == "580.1");
  CHECK(calibration->stack == SoftwareStack{{13, 0}, ModuleLoading::lazy});
  CHECK(calibration->nvml_total == 24576_MiB);
  CHECK(calibration->cuda_total == 24248_MiB);
  CHECK(calibration->context == 300_MiB);
  CHECK(calibration->cublas == 40_MiB);
  CHECK(calibration->cudnn == 90_MiB);
  CHECK(calibration->cudnn_version == "9.19.0");
  CHECK(calibration->rates.h2d > 0);
  CHECK(calibration->rates.d2h > 0);
  CHECK(calibration->rates.pageable_h2d > 0);
  CHECK(calibration->rates.memory > 0);
  CHECK(calibration->rates.fp32 > 0);
  CHECK(calibration->rates.tf32 > 0);
  CHECK(calibration->rates.fp16 > 0);
}

TEST_CASE("its file is one for --calibration, and goes before the card") {
  const Calibration calibration{.name = "NVIDIA GeForce RTX 3090",
                                .driver = "580.1",
                                .stack = {{13, 0}, ModuleLoading::lazy},
                                .nvml_total = 24576_MiB,
                                .cuda_total = 24248_MiB,
                                .context = 300_MiB,
                                .cublas = 40_MiB,
                                .cudnn = 90_MiB,
                                .cudnn_version = "9.19.0",
                                .cudnn_device = R"({"deviceVer": 860})",
                                .rates = {.h2d = 25e9,
                                          .d2h = 26e9,
                                          .pageable_h2d = 8e9,
                                          .memory = 900e9,
                                          .fp32 = 30e12,
                                          .tf32 = 35e12,
                                          .fp16 = 70e12}};
  Card card = generic_card(24_GiB);
  card.name = "GeForce RTX 3090";
  const auto read = read_calibration(
      std::make_shared<SourceText>(SourceText{
          .name = "here.yaml", .text = calibration_yaml(calibration, card.name, "a test")}),
      card);
  REQUIRE_MESSAGE(read.has_value(), render(read.error()));
  CHECK(read->cuda_total == 24248_MiB);
  CHECK(read->d2h_bandwidth == doctest::Approx(26e9));
  CHECK(read->fp16_flops == doctest::Approx(70e12));
  CHECK(read->cudnn_device_json == "{\"deviceVer\": 860}\n");
  REQUIRE(read->measurements.size() == 1);
  const ProcessMeasurement& measured = read->measurements.front();
  CHECK(measured.runtime == Runtime::stowage);
  CHECK(measured.calibrated);
  CHECK(measured.context == 300_MiB);
  CHECK(measured.cublas == 40_MiB);
  CHECK(measured.cudnn == 90_MiB);
  CHECK(measured.stack == calibration.stack);
}

TEST_CASE("a context that cannot be made current is given back") {
  const SharedLibrary driver(STOWAGE_FAKE_GPU);
  int (*contexts)() = nullptr;
  REQUIRE(driver.bind("fakeContexts", contexts));
  const int before = contexts();
  CHECK(refusal("no-current") == "cuCtxSetCurrent fails with error 201");
  CHECK(contexts() == before);
}

TEST_CASE("what keeps a calibration from being made is said") {
  CHECK(refusal("full") ==
        "a calibration wants 1.0 GiB of free memory; NVIDIA GeForce RTX 3090 has 576.0 MiB");
  CHECK(refusal("no-products") == "cublasGemmEx fails with error 13");
  CHECK(refusal("shrinks") ==
        "the device has less in use after cuDNN than before: another program uses it");
  CHECK(refusal("", fake_gpu(), 1) == "there is no GPU 1: the driver sees 1, from 0 on");
  CalibrationLibraries without = fake_gpu();
  without.nvml = "libno-such-nvml.so.1";
  CHECK(refusal("", without) ==
        "no NVIDIA driver is installed (libno-such-nvml.so.1 was not found)");
  without = fake_gpu();
  without.cuda = "libno-such-cuda.so.1";
  CHECK(refusal("", without) == "there is no CUDA driver (libno-such-cuda.so.1)");
  without = fake_gpu();
  without.cublas = {"libno-such-cublas.so"};
  CHECK(refusal("", without) == "cuBLAS was not found (libno-such-cublas.so)");
  without = fake_gpu();
  without.cudnn = "libm.so.6";
  CHECK(refusal("", without) == "cuDNN was not found, or lacks its convolutions");
}

}  // namespace stowage
