#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

Outcome checked(std::vector<std::string> more) {
  std::vector<std::string> command{"check", "mnist-cnn", "--gpu", "a100-sxm4-80gb", "--batch", "8"};
  command.insert(command.end(), more.begin(), more.end());
  return stowage_program(command);
}

json row(const Outcome& outcome, const std::string& name) {
  INFO(outcome.err);
  const json answer = json::parse(outcome.out);
  for (const json& runtime_row : answer["runtime_rows"]) {
    if (runtime_row["name"] == name) return runtime_row;
  }
  FAIL("no row ", name);
  return {};
}

}  // namespace

TEST_CASE("check counts the context of the CUDA that is asked for") {
  const Outcome now = checked({"--format=json"});
  CHECK(row(now, "CUDA context")["bytes"] == 481 << 20);
  CHECK(json::parse(now.out)["software"] ==
        json{{"cuda", "13.0"}, {"pytorch", "2.15"}, {"module_loading", "lazy"}});
  const Outcome then =
      checked({"--format=json", "--cuda-version", "11.7", "--module-loading", "eager"});
  CHECK(row(then, "CUDA context")["bytes"] == 966367642);
  CHECK(row(checked({"--format=json", "--cuda-version=11.2"}), "CUDA context")["bytes"] ==
        (481 + 992) << 20);
}

TEST_CASE("a calibration goes before the card's own figures") {
  const TemporaryFolder folder;
  const std::string file = folder.file("here.yaml", R"(measurements:
  - {runtime: pytorch, cuda: 13.0, context: 300 MiB, cudnn: 90 MiB, source: "our lab, May"}
)");
  const Outcome outcome = checked({"--format=json", "--calibration", file});
  CHECK(row(outcome, "CUDA context")["bytes"] == 300 << 20);
  CHECK(row(outcome, "CUDA context")["source"] == "our lab, May");
  CHECK(row(outcome, "cuDNN kernels")["bytes"] == 90 << 20);
  CHECK(row(outcome, "cuBLAS kernels")["bytes"] == 64 << 20);
}

TEST_CASE("mistakes in the software's options") {
  const auto refused = [](std::vector<std::string> more, const std::string& message) {
    const Outcome outcome = checked(std::move(more));
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK_MESSAGE(outcome.err.find(message) != std::string::npos, outcome.err);
  };
  refused({"--cuda-version", "twelve"}, "--cuda-version: 'twelve' is not a version such as 12.1");
  refused({"--cuda-version", "11.3", "--module-loading", "lazy"},
          "CUDA 11.3 cannot load lazily; 11.7 was the first");
  refused({"--module-loading", "late"}, "--module-loading");
  refused({"--pytorch-version", "two"}, "--pytorch-version: 'two' is not a version such as 2.8");
  refused({"--pytorch-version", "2.8", "--runtime", "tensorflow"},
          "--pytorch-version is for --runtime pytorch, not for tensorflow");
  refused({"--calibration", "/no/such/file.yaml"}, "/no/such/file.yaml");
  const TemporaryFolder folder;
  refused({"--calibration", folder.file("bad.yaml", "contxt: 300 MiB\n")},
          "unknown key 'contxt' in a card file");
}

TEST_CASE("a calibration of a GPU that is not there is not measured, and its file is not written") {
  const TemporaryFolder folder;
  const Outcome outcome =
      stowage_program({"probe", "--calibrate", "--device", "0", "-o", folder.path("here.yaml")});
  const bool measured = outcome.exit_code == 0;
  CHECK(outcome.exit_code == (measured ? 0 : 3));
  CHECK((outcome.out.find("not measured: ") == 0) == !measured);
  CHECK(folder.names().size() == (measured ? 1 : 0));
  const Outcome misplaced = stowage_program({"probe", "--device", "1"});
  CHECK(misplaced.exit_code == 2);
  CHECK(misplaced.err.find("--device is for probe --calibrate") != std::string::npos);
}

TEST_CASE("without a GPU a calibration is of the host alone, and plans are timed with it") {
  const TemporaryFolder folder;
  const std::string file = folder.path("here.yaml");
  const Outcome made = stowage_program({"probe", "--calibrate", "-o", file});
  REQUIRE(made.exit_code == 0);
  const std::string text = testing::file_text(file);
  CHECK(text.find("host:  # ") != std::string::npos);
  const json printed =
      json::parse(stowage_program({"probe", "--calibrate", "--format", "json"}).out);
  for (const char* rate : {"cpu_flops", "memory_bandwidth", "kernel_latency_seconds"}) {
    CHECK(printed["host"][rate] > 0);
  }
  const std::string slow = folder.file("slow.yaml",
                                       "host:\n  cpu_flops: 1 GFLOP/s\n  memory_bandwidth: 1 GB/s\n"
                                       "  kernel_latency: 1 us\n");
  const std::string plan = folder.path("plan.yaml");
  for (const std::string& calibration : {file, slow}) {
    const Outcome planned =
        stowage_program({"plan", "mlp", "--gpu", "rtx3060", "--budget", "24MiB", "--batch", "8",
                         "--calibration", calibration, "-o", plan});
    CHECK(planned.exit_code == 0);
    const std::string written = testing::file_text(plan);
    CHECK(written.find("source: \"this machine, calibrated\"") != std::string::npos);
    if (calibration == slow) CHECK(written.find("cpu_flops: 1000000000\n") != std::string::npos);
  }
  // What is measured of the host says nothing about a card.
  CHECK(stowage_program({"check", "mlp", "--gpu", "rtx3060", "--calibration", slow}).out ==
        stowage_program({"check", "mlp", "--gpu", "rtx3060"}).out);
  const std::string wrong = folder.file("wrong.yaml", "host:\n  cpu_flop: 1 GFLOP/s\n");
  const Outcome refused = stowage_program(
      {"plan", "mlp", "--gpu", "rtx3060", "--budget", "24MiB", "--calibration", wrong});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("wrong.yaml:2:3: error: unknown key 'cpu_flop' in a host file") !=
        std::string::npos);
}

TEST_CASE("--gpu here is this machine's card, or exit code 3") {
  // Libraries of the driver's names, which pretend a machine with a T4.
  const TemporaryFolder folder;
  for (const char* library : {"libcuda.so.1", "libnvidia-ml.so.1"}) {
    std::filesystem::create_symlink(STOWAGE_FAKE_DRIVER, folder.path(library));
  }
  const testing::Circumstances with_gpu{.environment = {{"LD_LIBRARY_PATH", folder.path("")}}};
  const Outcome there = stowage_program(
      {"check", "mnist-cnn", "--gpu", "here", "--batch", "8", "--format", "json"}, with_gpu);
  CHECK(there.exit_code == 0);
  CHECK(there.err.find("this machine's Tesla T4: 14.6 GiB of it free") != std::string::npos);
  CHECK(json::parse(there.out)["device"]["total_bytes"] == 15'655'829'504);
  const Outcome probed = stowage_program({"probe"}, with_gpu);
  CHECK(probed.out.find("NVIDIA GeForce RTX 3090") != std::string::npos);
  CHECK(probed.out.find("hidden") != std::string::npos);

  const testing::Circumstances without{
      .environment = {{"LD_LIBRARY_PATH", testing::source_path()}}};
  const Outcome absent = stowage_program({"check", "mnist-cnn", "--gpu", "here"}, without);
  if (absent.exit_code == 0) return;  // this machine has one
  CHECK(absent.exit_code == 3);
  CHECK(absent.out == "");
  CHECK(absent.err.find("--gpu here: no NVIDIA driver is installed") != std::string::npos);
}

}  // namespace stowage
