// GpuRuns: docs/gpu-runs.md as a value: every kernel in every type that it takes on cuda, and when
// a GPU last ran it. Only a run of gpu_tests on a GPU writes the document (machine.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/kernel_table.hpp"

namespace stowage::test {

struct GpuRun {
  std::string date;                  ///< "2026-11-24"
  std::string card;                  ///< "NVIDIA H200"
  std::string driver;                ///< "580.95.05"
  std::string nvrtc, cublas, cudnn;  ///< versions; "" where one was not loaded
  bool passed = false;     ///< whether it agreed with the host, within the type's tolerance
  std::string difference;  ///< the largest relative difference, "3.1e-07"; or what failed
  bool operator==(const GpuRun&) const = default;
};

struct KernelInType {
  Kernel kernel = Kernel::copy;
  DataType type = DataType::float32;
  auto operator<=>(const KernelInType&) const = default;
};

struct GpuRunRow {
  KernelInType what;
  std::optional<GpuRun> last;  ///< none: it has never run
  bool operator==(const GpuRunRow&) const = default;
};
using GpuRuns = std::vector<GpuRunRow>;

/// A row for each kernel and type that the kernel table has for cuda, in the table's order, with
/// its run in `known`. Rows of `known` that the table does not have any more are dropped.
[[nodiscard]] GpuRuns rows_of_table(const GpuRuns& known);

/// Sets the run of a row. Precondition: there is such a row.
void record(GpuRuns& runs, KernelInType what, GpuRun run);

/// The number of kernels and types that have run on a GPU and agreed with the host.
[[nodiscard]] std::size_t passed_on_a_gpu(const GpuRuns& runs);
/// "0 of 131 kernels and types have run on a GPU", as the README quotes it.
[[nodiscard]] std::string gpu_runs_summary(const GpuRuns& runs);

/// The whole document.
[[nodiscard]] std::string gpu_runs_text(const GpuRuns& runs);

/// Reads the rows of a document, in its order. Text around the table is ignored. Kernels and types
/// that do not exist any more are dropped. Errors, with the line: a malformed row, a row that is
/// there twice.
[[nodiscard]] Result<GpuRuns> read_gpu_runs(std::string_view text);

}  // namespace stowage::test
