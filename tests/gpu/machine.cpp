#include "tests/gpu/machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include "gpu_probe/cuda/nvrtc.hpp"
#include "gpu_probe/driver/driver_presence.hpp"
#include "tests/gpu_probe/cuda/pretended_cuda.hpp"

namespace stowage::test {
namespace {

constexpr std::string_view backend_prefix = "cuda: ";

/// The library's version, "13.1.0"; "" where it is unknown.
std::string version_of(std::string_view library, const Probe& probe) {
  const auto found = std::ranges::find(probe.libraries, library, &FoundLibrary::name);
  return found != probe.libraries.end() ? found->version : "";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

GpuRun identity_of(const CudaSetup& setup, const std::string& backend, const Probe& probe) {
  const auto nvrtc = Nvrtc::open(setup.libraries.nvrtc);
  const auto cudnn = setup.libraries.cudnn();
  return {.date = today(),
          .card = backend.substr(backend_prefix.size()),
          .driver = probe.driver,
          .nvrtc = nvrtc ? nvrtc->version() : "",
          .cublas = version_of("cuBLAS", probe),
          .cudnn = cudnn ? (*cudnn)->version() : ""};
}

std::optional<GpuMachine>& machine_of_run() {
  static std::optional<GpuMachine> machine;
  return machine;
}

}  // namespace

std::string no_gpu_run_reason(const std::string& driver, const std::string& backend,
                              const Probe& probe) {
  if (driver != CudaSetup{}.driver) {
    return fmt::format("the driver is {}, not the system's {}", driver, CudaSetup{}.driver);
  }
  const SharedLibrary library(driver);
  void* pretence = nullptr;
  if (library.bind("fakeLanes", pretence)) return "the driver is the tests' own";
  if (is_driver_stand_in(library)) return "the driver is a stand-in";
  const bool known = std::ranges::any_of(probe.gpus, [&](const ProbedGpu& gpu) {
    return !gpu.name.empty() && backend.starts_with(fmt::format("{}{}", backend_prefix, gpu.name));
  });
  if (known && !probe.driver.empty()) return "";
  return fmt::format("NVML knows no device that is called '{}'", backend);
}

Result<GpuMachine> GpuMachine::open(bool pretended) {
  const CudaSetup setup = pretended ? pretended_setup() : default_cuda_setup(STOWAGE_KERNEL_FOLDER);
  auto backend = open_cuda_backend(setup);
  if (!backend) return tl::unexpected(std::move(backend.error()));
  const Probe probe = stowage::probe();
  GpuMachine machine;
  machine.not_recorded_reason_ = no_gpu_run_reason(setup.driver, (*backend)->name(), probe);
  machine.identity_ = identity_of(setup, (*backend)->name(), probe);
  machine.setup_ = setup;
  machine.backend_ = std::move(*backend);
  return machine;
}

Result<std::unique_ptr<Backend>> GpuMachine::another() const { return open_cuda_backend(setup_); }

void GpuMachine::add(KernelInType what, const TrialResult& result, bool passed) {
  results_.push_back(
      {what, passed,
       result.problem.empty() ? fmt::format("{:.1e}", result.difference) : result.problem});
}

GpuRuns GpuMachine::updated(const GpuRuns& known) const {
  if (!not_recorded_reason_.empty()) return known;
  GpuRuns runs = rows_of_table(known);
  for (const Tried& tried : results_) {
    GpuRun run = identity_;
    run.passed = tried.passed;
    run.difference = tried.difference;
    record(runs, tried.what, std::move(run));
  }
  return runs;
}

std::string GpuMachine::text() const {
  return fmt::format("{}, driver {}, NVRTC {}, cuBLAS {}, cuDNN {}", identity_.card,
                     identity_.driver, identity_.nvrtc, identity_.cublas, identity_.cudnn);
}

GpuMachine& machine() { return *machine_of_run(); }
void set_machine(GpuMachine machine) { machine_of_run() = std::move(machine); }
void close_machine() { machine_of_run().reset(); }

}  // namespace stowage::test
