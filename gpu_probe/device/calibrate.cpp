#include "gpu_probe/device/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "gpu_probe/cudnn/circumstances.hpp"
#include "gpu_probe/cudnn/device_text.hpp"
#include "gpu_probe/device/cuda_context.hpp"
#include "gpu_probe/device/measured_libraries.hpp"
#include "gpu_probe/device/nvml.hpp"
#include "gpu_probe/driver/library_failure.hpp"
#include "gpu_probe/driver/library_places.hpp"

namespace stowage {

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t copied = 128 * mebibyte;   // bytes of one copy whose rate is measured
constexpr std::size_t arena_bytes = 2 * copied;  // all device memory that a calibration uses
constexpr std::size_t workspace_bytes = 32 * mebibyte;
constexpr Bytes wanted_free{std::int64_t{1} << 30};
constexpr int product_side = 4096;  // three matrices: 192 MiB
constexpr int repetitions = 5;

ProbedGpu gpu_of(const NvmlReport& report, int device) {
  if (report.gpus.empty()) throw LibraryFailure(report.error);
  if (device < 0 || device >= std::ssize(report.gpus)) {
    throw LibraryFailure(fmt::format("there is no GPU {}: the driver sees {}, from 0 on", device,
                                     report.gpus.size()));
  }
  return report.gpus[static_cast<std::size_t>(device)];
}

/// The memory of the device that is in use, by all processes.
class Usage {
 public:
  Usage(std::string nvml, int device) : nvml_(std::move(nvml)), device_(device), last_(used()) {}

  /// How much it has grown since the last call. Throws LibraryFailure where it has shrunk.
  Bytes grown(std::string_view what) {
    const Bytes now = used();
    const Bytes more = now - last_;
    last_ = now;
    if (more < Bytes()) {
      throw LibraryFailure(fmt::format(
          "the device has less in use after {} than before: another program uses it", what));
    }
    return more;
  }

 private:
  [[nodiscard]] Bytes used() const {
    const ProbedGpu gpu = gpu_of(read_nvml(nvml_), device_);
    return gpu.total - gpu.free;
  }
  std::string nvml_;
  int device_;
  Bytes last_;
};

/// Units of `work` a second: the best of several runs.
template <typename Run>
double rate(double work, const CudaContext& context, Run run) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i <= repetitions; ++i) {
    context.wait();
    const auto begin = std::chrono::steady_clock::now();
    run();
    context.wait();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (i > 0) best = std::min(best, seconds.count());  // the first is a warm-up
  }
  return work / std::max(best, 1e-9);
}

MeasuredRates copy_rates(const CudaContext& context, DevicePointer arena) {
  constexpr auto bytes = static_cast<double>(copied);
  MeasuredRates rates;
  const PinnedMemory memory(context, copied);
  void* const pinned = memory.begin();
  rates.h2d = rate(bytes, context, [&] { context.copy_to_device(arena, pinned, copied); });
  rates.d2h = rate(bytes, context, [&] { context.copy_to_host(pinned, arena, copied); });
  const std::vector<char> pageable(copied, 1);
  rates.pageable_h2d =
      rate(bytes, context, [&] { context.copy_to_device(arena, pageable.data(), copied); });
  rates.memory =
      rate(2 * bytes, context, [&] { context.copy_on_device(arena + copied, arena, copied); });
  return rates;
}

void add_product_rates(const CudaContext& context, const MeasuredCublas& blas, DevicePointer arena,
                       double compute_capability, MeasuredRates& rates) {
  constexpr double n = product_side;
  constexpr std::size_t matrix = sizeof(float) * product_side * product_side;
  context.fill_with_zeros(arena, arena_bytes);
  const auto of = [&](MeasuredCublas::Precision precision) {
    return rate(2 * n * n * n, context, [&] {
      blas.multiply(precision, product_side, arena, arena + matrix, arena + 2 * matrix);
    });
  };
  rates.fp32 = of(MeasuredCublas::Precision::fp32);
  if (compute_capability >= 8) rates.tf32 = of(MeasuredCublas::Precision::tf32);
  rates.fp16 = of(MeasuredCublas::Precision::fp16);
}

/// Throws LibraryFailure where CUDA does not show the GPU (CUDA_VISIBLE_DEVICES).
void require_shown(const ProbedGpu& gpu, int device, const CalibrationLibraries& libraries) {
  std::vector<ProbedGpu> gpus{gpu};
  if (!read_cuda_devices(libraries.cuda, gpus) || gpus.front().ordinal) return;
  throw LibraryFailure(
      fmt::format("GPU {}, {}, is hidden from CUDA (CUDA_VISIBLE_DEVICES)", device, gpu.name));
}

std::vector<std::string> cublas_files(const CalibrationLibraries& libraries,
                                      const ReleaseVersion& served) {
  if (!libraries.cublas.empty()) return libraries.cublas;
  return library_places(NvidiaLibrary::cublas, served.major);
}

SharedLibrary open_cudnn(const std::string& name) {
  return name.empty() ? cudnn_forwarder() : SharedLibrary(name);
}

// From NVML's form, whose domain has eight digits, to CUDA's, with four.
std::string cuda_bus_id(const std::string& nvml_bus_id) {
  const std::size_t domain = nvml_bus_id.find(':');
  return domain != std::string::npos && domain > 4 ? nvml_bus_id.substr(domain - 4) : nvml_bus_id;
}

// Reads the device's memory in use after each step of a process: the context, cuBLAS with a small
// product, cuDNN with small convolutions. Then measures the rates of copies and products in one
// arena.
Calibration measure(int device, const CalibrationLibraries& libraries) {
  const NvmlReport driver = read_nvml(libraries.nvml);
  const ProbedGpu gpu = gpu_of(driver, device);
  if (gpu.free < wanted_free) {
    throw LibraryFailure(fmt::format("a calibration wants {} of free memory; {} has {}",
                                     format_bytes(wanted_free), gpu.name, format_bytes(gpu.free)));
  }
  Calibration result{.name = gpu.name, .driver = driver.driver, .nvml_total = gpu.total};
  require_shown(gpu, device, libraries);
  Usage usage(libraries.nvml, device);
  const CudaContext context(libraries.cuda, cuda_bus_id(gpu.pci_bus_id));
  context.wait();
  result.context = usage.grown("the context");
  result.cuda_total = Bytes(static_cast<std::int64_t>(context.total_bytes()));
  result.stack = {parse_version(driver.cuda).value_or(ReleaseVersion{}),
                  context.loads_lazily() ? ModuleLoading::lazy : ModuleLoading::eager};

  const ContextMemory memory(context, arena_bytes);
  const DevicePointer arena = memory.begin();
  context.fill_with_zeros(arena, arena_bytes);
  context.wait();
  (void)usage.grown("an allocation");
  const MeasuredCublas blas(cublas_files(libraries, result.stack.cuda));
  blas.use_workspace(arena + arena_bytes - workspace_bytes, workspace_bytes);
  constexpr int small = 256;
  blas.multiply(MeasuredCublas::Precision::fp32, small, arena, arena + mebibyte,
                arena + 2 * mebibyte);
  context.wait();
  result.cublas = usage.grown("cuBLAS");
  result.cudnn_version = run_convolutions(open_cudnn(libraries.cudnn), arena);
  context.wait();
  result.cudnn = usage.grown("cuDNN");
  if (auto text = cudnn_device_text(context.ordinal())) result.cudnn_device = *std::move(text);

  result.rates = copy_rates(context, arena);
  add_product_rates(context, blas, arena, gpu.compute_capability, result.rates);
  return result;
}

}  // namespace

Result<Calibration> calibrate(int device, const CalibrationLibraries& libraries) {
  try {
    return measure(device, libraries);
  } catch (const LibraryFailure& error) {
    return failure(error.what());
  }
}

std::string calibration_yaml(const Calibration& calibration, const std::string& card_name,
                             std::string_view made_by) {
  const auto mib = [](Bytes bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes.count()) / mebibyte);
  };
  const MeasuredRates& rates = calibration.rates;
  std::string text = fmt::format(
      "# A calibration, measured by {} on '{}', driver {}.\n"
      "name: \"{}\"\n"
      "nvml_total: {}\n"
      "cuda_total: {}\n"
      "total_source: \"measured\"\n"
      "memory_bandwidth: {:.1f} GB/s\n"
      "fp32: {:.1f} TFLOP/s\n"
      "tf32: {:.1f} TFLOP/s\n"
      "fp16: {:.1f} TFLOP/s\n"
      "h2d_bandwidth: {:.1f} GB/s\n"
      "d2h_bandwidth: {:.1f} GB/s\n"
      "pageable_bandwidth: {:.1f} GB/s\n"
      "rate_source: \"measured: the best of {}\"\n"
      "measurements:\n"
      "  - {{runtime: stowage, cuda: {}, loading: {}, context: {}, cublas: {}, cudnn: {}, "
      "source: \"{}, driver {}, cuDNN {}\"}}\n",
      made_by, calibration.name, calibration.driver, card_name, mib(calibration.nvml_total),
      mib(calibration.cuda_total), rates.memory / 1e9, rates.fp32 / 1e12, rates.tf32 / 1e12,
      rates.fp16 / 1e12, rates.h2d / 1e9, rates.d2h / 1e9, rates.pageable_h2d / 1e9, repetitions,
      to_string(calibration.stack.cuda), to_string(calibration.stack.loading),
      mib(calibration.context), mib(calibration.cublas), mib(calibration.cudnn), made_by,
      calibration.driver, calibration.cudnn_version);
  if (!calibration.cudnn_device.empty()) {
    text += fmt::format("cudnn_device: |\n  {}\n", calibration.cudnn_device);
  }
  return text;
}

}  // namespace stowage
