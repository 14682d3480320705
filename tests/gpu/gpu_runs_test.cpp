// The document of kernels that have run on a GPU: its writer, its reader, and that the one in docs/
// has a row for every kernel and type. Needs no GPU.
#include "tests/gpu/gpu_runs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "tests/gpu/machine.hpp"
#include "tests/gpu_probe/cuda/pretended_cuda.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::test {
namespace {

std::string text_of_file(const std::string& name) {
  std::ifstream file(testing::source_path("/") + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

GpuRun run_of_today() {
  return {.date = "2026-11-24",
          .card = "NVIDIA H200",
          .driver = "580.95.05",
          .nvrtc = "13.0",
          .cublas = "13.1.0",
          .cudnn = "9.19.0",
          .passed = true,
          .difference = "3.1e-07"};
}

std::string refusal_of(const std::string& rows) {
  const auto runs = read_gpu_runs("# Title\n\n" + rows);
  return runs ? "" : runs.error().front().message;
}

}  // namespace

TEST_SUITE("document") {
  TEST_CASE("docs/gpu-runs.md has a row for every kernel and type (gpu_tests --write-list)") {
    const std::string text = text_of_file("docs/gpu-runs.md");
    const auto runs = read_gpu_runs(text);
    REQUIRE(runs.has_value());
    CHECK(text == gpu_runs_text(rows_of_table(*runs)));
  }

  TEST_CASE("docs/evidence.md quotes docs/gpu-runs.md") {
    const auto runs = read_gpu_runs(text_of_file("docs/gpu-runs.md"));
    REQUIRE(runs.has_value());
    const std::string quoted = "**" + gpu_runs_summary(*runs) + "**";
    CAPTURE(quoted);
    CHECK(text_of_file("docs/evidence.md").find(quoted) != std::string::npos);
  }

  TEST_CASE("a kernel's row is there for each type that cuda takes, and for no other") {
    const GpuRuns rows = rows_of_table({});
    CHECK(std::ranges::none_of(rows, [](const GpuRunRow& row) { return row.last.has_value(); }));
    for (const KernelRow& kernel : kernel_table()) {
      const auto types = kernel_types(kernel.kernel, KernelDevice::cuda);
      for (const DataType type : all_data_types) {
        const bool is_taken = std::ranges::find(types, type) != types.end();
        CHECK(std::ranges::count(rows, KernelInType{kernel.kernel, type}, &GpuRunRow::what) ==
              (is_taken ? 1 : 0));
      }
    }
  }

  TEST_CASE("what is written reads back, and other rows stay as they were") {
    GpuRuns runs = rows_of_table({});
    REQUIRE(runs.size() > 100);
    CHECK(gpu_runs_summary(runs).starts_with("0 of "));
    GpuRun failed = run_of_today();
    failed.passed = false;
    failed.difference = "cuLaunchKernel fails with error 700, at last";
    failed.cudnn = "";
    record(runs, runs[3].what, run_of_today());
    record(runs, runs[70].what, failed);
    CHECK(passed_on_a_gpu(runs) == 1);
    const auto read = read_gpu_runs(gpu_runs_text(runs));
    REQUIRE(read.has_value());
    CHECK(*read == runs);
    GpuRuns later = rows_of_table(*read);
    record(later, later[5].what, run_of_today());
    CHECK(passed_on_a_gpu(later) == 2);
    CHECK(later[3] == runs[3]);
    CHECK(later[70] == runs[70]);
  }

  TEST_CASE("bars and line ends in a name do not break the table") {
    GpuRuns runs = rows_of_table({});
    GpuRun run = run_of_today();
    run.card = " A | B\n";
    record(runs, runs[0].what, run);
    const auto read = read_gpu_runs(gpu_runs_text(runs));
    REQUIRE(read.has_value());
    CHECK(read->front().last->card == "A / B/");
    CHECK(gpu_runs_text(*read) == gpu_runs_text(runs));
  }

  TEST_CASE("rows of kernels that are no more go, new ones come with 'never'") {
    const auto read = read_gpu_runs(
        "| `no_such_kernel` | float32 | never | | | | | | |\n"
        "| `relu_forward` | float4 | never | | | | | | |\r\n"
        "| `relu_forward` | float32 | 2026-11-24 | H200 | 1 | 2 | 3 | 4 | passed, 0.0e+00 |\r\n");
    REQUIRE(read.has_value());
    REQUIRE(read->size() == 1);
    const GpuRuns rows = rows_of_table(*read);
    CHECK(rows.size() == rows_of_table({}).size());
    CHECK(passed_on_a_gpu(rows) == 1);
  }

  TEST_CASE("a row that is none is refused with its line") {
    const std::string never = "| `relu_forward` | float32 | never | | | | | | |\n";
    CHECK(refusal_of(never) == "");
    CHECK(
        refusal_of(never + never) ==
        "line 4: a second row of this kernel and type: | `relu_forward` | float32 | never | | | | "
        "| | |");
    CHECK(refusal_of("| `relu_forward` | float32 | never |\n") ==
          "line 3: a row of the table has 9 cells: | `relu_forward` | float32 | never |");
    CHECK(
        refusal_of("| `relu_forward` | float32 | today | H200 | 1 | 2 | 3 | 4 | passed, 0 |\n") ==
        "line 3: this is neither 'never' nor a run: | `relu_forward` | float32 | today | H200 | 1 "
        "| 2 | 3 | 4 | passed, 0 |");
    CHECK(refusal_of("| `relu_forward` | float32 | 2026-11-24 | H200 | 1 | 2 | 3 | 4 | well |\n")
              .starts_with("line 3: this is neither 'never' nor a run"));
    CHECK(refusal_of("| `relu_forward | float32 | never | | | | | | |\n")
              .starts_with("line 3: no kernel's name"));
  }

  TEST_CASE("only a device of the system's driver that NVML knows counts as a GPU") {
    Probe probe{.gpus = {{.name = "NVIDIA H200"}}, .driver = "580.95.05"};
    const std::string pretended = pretended_setup().driver;
    CHECK(no_gpu_run_reason(pretended, "cuda: NVIDIA H200", probe) ==
          "the driver is " + pretended + ", not the system's libcuda.so.1");
    CHECK(no_gpu_run_reason("libcuda.so.1", "cuda: Fake", probe) ==
          "NVML knows no device that is called 'cuda: Fake'");
    CHECK(no_gpu_run_reason("libcuda.so.1", "host", probe) != "");
    probe.driver = "";
    CHECK(no_gpu_run_reason("libcuda.so.1", "cuda: NVIDIA H200", probe) != "");
    probe = {};
    CHECK(no_gpu_run_reason("libcuda.so.1", "cuda: ", probe) != "");
  }

  TEST_CASE("what ran on libraries that pretend is in no document") {
    auto opened = GpuMachine::open(true);
    REQUIRE(opened.has_value());
    CHECK(opened->not_recorded_reason().ends_with("not the system's libcuda.so.1"));
    const GpuRuns known = rows_of_table({});
    opened->add(known[0].what, {}, true);
    CHECK(opened->tried() == 1);
    CHECK(opened->updated(known) == known);
  }
}

}  // namespace stowage::test
