#include "gpu_probe/device/probe.hpp"

#include <fmt/format.h>

#include <optional>

#include "answers/planning/readable_calibration.hpp"
#include "answers/subject/workspaces.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/setting_names.hpp"
#include "cli/output/output_file.hpp"
#include "cli/report/probe_report.hpp"
#include "cli/report/step_report.hpp"
#include "estimator/card/card.hpp"
#include "estimator/card/card_file.hpp"
#include "gpu_probe/cuda/cuda_backend.hpp"
#include "gpu_probe/device/calibrate.hpp"
#include "gpu_probe/device/present_card.hpp"
#include "gpu_probe/host/host_rates.hpp"
#include "gpu_probe/run/calibrate_kernels.hpp"

namespace stowage {

namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json rates_json(const MeasuredRates& rates) {
  return Json::Object{{"h2d_bandwidth", rates.h2d},
                      {"d2h_bandwidth", rates.d2h},
                      {"pageable_bandwidth", rates.pageable_h2d},
                      {"memory_bandwidth", rates.memory},
                      {"fp32_flops", rates.fp32},
                      {"tf32_flops", rates.tf32},
                      {"fp16_flops", rates.fp16}};
}

Json::Object json_of(const Calibration& calibration, const std::string& card) {
  return {{"name", calibration.name},
          {"card", card},
          {"driver", calibration.driver},
          {"software", stack_json(calibration.stack)},
          {"nvml_total_bytes", calibration.nvml_total},
          {"cuda_total_bytes", calibration.cuda_total},
          {"context_bytes", calibration.context},
          {"cublas_bytes", calibration.cublas},
          {"cudnn_bytes", calibration.cudnn},
          {"cudnn", calibration.cudnn_version},
          {"cudnn_device", text_or_null(calibration.cudnn_device)},
          {"rates", rates_json(calibration.rates)}};
}

void say_calibration(const Calibration& calibration, Report& out) {
  const MeasuredRates& rates = calibration.rates;
  out.say(
      fmt::format("{}, driver {}, CUDA {}, {} module loading", calibration.name, calibration.driver,
                  to_string(calibration.stack.cuda), to_string(calibration.stack.loading)),
      Tone::heading);
  out.say(fmt::format("  context {}, cuBLAS {}, cuDNN {} ({})", format_bytes(calibration.context),
                      format_bytes(calibration.cublas), format_bytes(calibration.cudnn),
                      calibration.cudnn_version));
  out.say(fmt::format("  {} of {} for CUDA", format_bytes(calibration.cuda_total),
                      format_bytes(calibration.nvml_total)));
  out.say(fmt::format("  link {:.1f} GB/s to the GPU, {:.1f} back, {:.1f} from pageable memory",
                      rates.h2d / 1e9, rates.d2h / 1e9, rates.pageable_h2d / 1e9));
  out.say(
      fmt::format("  memory {:.0f} GB/s; products fp32 {:.1f}, TF32 {:.1f}, fp16 {:.1f} TFLOP/s",
                  rates.memory / 1e9, rates.fp32 / 1e12, rates.tf32 / 1e12, rates.fp16 / 1e12));
}

Json host_json(const HostRates& rates) {
  return Json::Object{{"cpu_flops", rates.flops},
                      {"memory_bandwidth", rates.memory_bandwidth},
                      {"kernel_latency_seconds", rates.kernel_latency}};
}

void say_host(const HostRates& rates, Report& out) {
  out.say(fmt::format(
      "  host: products {:.0f} GFLOP/s, memory {:.1f} GB/s, a kernel at least {:.2f} us",
      rates.flops / 1e9, rates.memory_bandwidth / 1e9, rates.kernel_latency * 1e6));
}

/// Unless one is named, the one that CUDA shows first.
int device_of(const ProbeRequest& request, const Probe& found) {
  const auto first = present_gpu(found);
  return request.names_device || !first ? request.device : static_cast<int>(*first);
}

/// The kernels of shipped models, timed on the GPU that has just been measured. Errors: the backend
/// cannot be opened, no kernel can be timed.
Result<CalibratedKernels> timed_kernels(const ProbeRequest& request, const ProbedGpu& gpu,
                                        const Card& card, const std::string& calibration) {
  const auto calibrated = read_calibration(
      std::make_shared<SourceText>(SourceText{.name = "the calibration", .text = calibration}),
      card);
  if (!calibrated) return tl::unexpected(calibrated.error());
  CudaSetup setup = default_cuda_setup(answer_folder(true));
  setup.ordinal = gpu.ordinal.value_or(0);
  auto backend = open_cuda_backend(setup);
  if (!backend) return tl::unexpected(std::move(backend.error()));
  const Bytes most = std::min(Bytes(gpu.free.count() / 2), 8_GiB);
  return calibrate_kernels(**backend, *calibrated, default_samples(calibrated->compute_capability),
                           request.configs.models(), most);
}

Json kernels_json(const CalibratedKernels& kernels) {
  Json::Array shares;
  for (const KindFit& fit : kernels.fitted.fits) {
    const KindShare& share = kernels.fitted.rates.share(fit.kind);
    shares.emplace_back(Json::Object{{"kind", to_string(fit.kind)},
                                     {"arithmetic", share.arithmetic},
                                     {"bandwidth", share.bandwidth},
                                     {"kernels", fit.by_arithmetic + fit.by_bandwidth},
                                     {"median_error", fit.median_error}});
  }
  Json::Array left_out;
  for (const std::string& step : kernels.left_out) left_out.emplace_back(step);
  return Json::Object{{"latency_seconds", kernels.fitted.launch},
                      {"kernels", kernels.kernels},
                      {"shares", std::move(shares)},
                      {"left_out", std::move(left_out)}};
}

/// The card that a calibration is of: the catalogue's where there is one, which names it then.
Card measured_card(const ProbeRequest& request, const ProbedGpu& gpu,
                   const Calibration& calibration) {
  const auto found = find_card(calibration.name, request.configs.gpus(), gpu.total);
  return found ? found->card : card_by_rule(gpu);
}

/// What was measured of the GPU, as a file's text; adds it to the report.
std::string calibrated_gpu(const ProbeRequest& request, const ProbedGpu& gpu, const Card& card,
                           const Calibration& calibration, Report& out) {
  std::string text =
      calibration_yaml(calibration, card.name, in_options("stowage probe `calibrate`"));
  out.json = json_of(calibration, card.name);
  const auto kernels = timed_kernels(request, gpu, card, text);
  if (kernels) {
    text += kernel_shares_yaml(*kernels);
    out.json.emplace_back("kernel_rates", kernels_json(*kernels));
    for (const std::string& step : kernels->left_out) {
      out.notes.push_back({.severity = Severity::warning, .message = "not timed: " + step});
    }
  } else {
    const std::string why = kernels.error().front().message;
    text += fmt::format("# Kernels were not timed: {}\n", why);
    out.notes.push_back(
        {.severity = Severity::warning, .message = "kernels were not timed: " + why});
  }
  return text;
}

/// The calibration's file, or its text on stdout: of a GPU and the host, or, where there is no
/// GPU, of the host alone.
Result<RenderedAnswer> run_calibration(const ProbeRequest& request) {
  std::optional<OutputFile> file;
  if (!request.output.empty()) {
    auto opened = OutputFile::open(request.output);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    file.emplace(*std::move(opened));
  }
  const Probe found = probe();
  std::optional<Calibration> calibration;
  RenderedAnswer answer;
  Report& out = answer.report;
  std::string text;
  Card card = generic_card(24_GiB);  // a calibration of the host alone is for any card
  if (!found.gpus.empty() || request.names_device) {
    const int device = device_of(request, found);
    auto measured = calibrate(device);
    if (!measured) {
      answer.exit_code = ExitCode::needs_gpu;
      const std::string why = measured.error().front().message;
      out.json = {{"why_not", why}};
      out.say("not measured: " + why, Tone::bad);
      return answer;
    }
    calibration = *std::move(measured);
    const ProbedGpu& gpu = found.gpus[static_cast<std::size_t>(device)];
    card = measured_card(request, gpu, *calibration);
    text = calibrated_gpu(request, gpu, card, *calibration, out);
  } else {
    text = in_options(
        "# A calibration of a machine without a GPU, measured by stowage probe `calibrate`.\n");
    out.json = {{"why_no_gpu", found.no_gpu_reason}};
  }
  const auto rates = measure_host_rates();
  if (!rates) return tl::unexpected(rates.error());
  out.json.emplace_back("host", host_json(*rates));
  text = readable_calibration(std::move(text) + host_rates_yaml(*rates, found.host.cpu), card);
  if (!file) {
    out.say(text);
    return answer;
  }
  if (auto written = file->commit(text); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  if (calibration) {
    say_calibration(*calibration, out);
  } else {
    out.say(fmt::format("no GPU: {}; of the host alone", found.no_gpu_reason));
  }
  say_host(*rates, out);
  out.say(in_options(
      fmt::format("written to {}; plan takes it as `calibration`{}", request.output,
                  calibration ? ", and so does check" : ", beside the `gpu` that it is for")));
  return answer;
}

}  // namespace

Result<RenderedAnswer> run_probe(const ProbeRequest& request) {
  if (request.calibrate) return run_calibration(request);
  return RenderedAnswer{.report = probe_report(probe())};
}

}  // namespace stowage
