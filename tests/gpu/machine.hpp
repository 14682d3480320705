// The machine that gpu_tests runs on: a GPU, or the libraries that pretend to be one's.
//
// Only what a GPU has run is recorded. A run is one where the driver is the system's libcuda.so.1,
// is none of the tests', and NVML, which is asked by itself, knows the device by the same name.
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

/// Why what runs on such a machine is no run on a GPU; "" where it is one. `backend`: its name,
/// "cuda: NVIDIA H200".
[[nodiscard]] std::string why_no_gpu_run(const std::string& driver, const std::string& backend,
                                         const Probe& probe);

class GpuMachine {
 public:
  /// Compiled kernels are kept beside the program, unless the libraries are pretended. Errors: no
  /// driver, no device.
  [[nodiscard]] static Result<GpuMachine> open(bool pretended);

  [[nodiscard]] Backend& backend() { return *backend_; }
  /// One of its own on the same device.
  [[nodiscard]] Result<std::unique_ptr<Backend>> another() const;
  [[nodiscard]] const std::string& why_not_recorded() const { return why_not_recorded_; }

  /// Of the kernels only this one is tried; "": all are. A kernel that breaks the context takes all
  /// that follow with it, so that each of them has to be tried in a process of its own then.
  void try_only(std::string kernel) { only_ = std::move(kernel); }
  [[nodiscard]] bool tries(std::string_view kernel) const {
    return only_.empty() || kernel == only_;
  }

  void add(KernelInType what, const TrialResult& result, bool passed);
  [[nodiscard]] std::size_t tried() const { return results_.size(); }

  /// The document with what was added, of today; `known` as it was where nothing is to be recorded.
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
  std::string why_not_recorded_;
  GpuRun identity_;  // without a result
  std::vector<Tried> results_;
  std::string only_;
};

/// The machine of this run. Precondition: main() has set it; the suite `document` does without.
[[nodiscard]] GpuMachine& machine();
void set_machine(GpuMachine machine);
void close_machine();

}  // namespace stowage::test
