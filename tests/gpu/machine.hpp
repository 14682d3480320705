// GpuMachine: the machine that gpu_tests runs on: a GPU, or libraries that pretend to be one.
//
// Only runs on a GPU are recorded. A run counts as one if the driver is the system's libcuda.so.1
// and not the tests', and NVML, which is asked separately, knows the device by the same name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu_probe/cuda/cuda_backend.hpp"
#include "gpu_probe/device/probe.hpp"
#include "tests/gpu/gpu_runs.hpp"
#include "tests/gpu/kernel_trial.hpp"

namespace stowage::test {

/// Why a run on such a machine is not a run on a GPU; "" where it is one. `backend`: its name,
/// "cuda: NVIDIA H200".
[[nodiscard]] std::string no_gpu_run_reason(const std::string& driver, const std::string& backend,
                                            const Probe& probe);

class GpuMachine {
 public:
  /// Keeps compiled kernels beside the program, unless the libraries are pretended. Errors: no
  /// driver, no device.
  [[nodiscard]] static Result<GpuMachine> open(bool pretended);

  [[nodiscard]] Backend& backend() { return *backend_; }
  /// Another backend on the same device.
  [[nodiscard]] Result<std::unique_ptr<Backend>> another() const;
  [[nodiscard]] const std::string& not_recorded_reason() const { return not_recorded_reason_; }

  /// Tries only this kernel; "": all. A kernel that breaks the context makes all later kernels
  /// fail, so each of them must then be tried in a process of its own.
  void try_only(std::string kernel) { only_ = std::move(kernel); }
  [[nodiscard]] bool tries(std::string_view kernel) const {
    return only_.empty() || kernel == only_;
  }

  void add(KernelInType what, const TrialResult& result, bool passed);
  [[nodiscard]] std::size_t tried() const { return results_.size(); }

  /// The document with the runs that were added, dated today; `known` unchanged where nothing is
  /// recorded.
  [[nodiscard]] GpuRuns updated(const GpuRuns& known) const;
  /// "NVIDIA H200, driver 580.95.05, NVRTC 13.0, cuBLAS 13.1.0, cuDNN 9.19.0"
  [[nodiscard]] std::string text() const;

 private:
  struct Tried {
    KernelInType what;
    bool passed;
    std::string difference;
  };
  CudaSetup setup_;
  std::unique_ptr<Backend> backend_;
  std::string not_recorded_reason_;
  GpuRun identity_;  // of a run, without a result
  std::vector<Tried> results_;
  std::string only_;
};

/// The machine of this run. Precondition: main() has set it; for the suite `document` it does not.
[[nodiscard]] GpuMachine& machine();
void set_machine(GpuMachine machine);
void close_machine();

}  // namespace stowage::test
