#include "gpu_probe/run/calibrate_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "estimator/document/make_document.hpp"
#include "estimator/model/load_model.hpp"
#include "gpu_probe/run/kernel_times.hpp"

namespace stowage {
namespace {

constexpr Bytes largest_workspace = 512_MiB;  // of a convolution while it is timed

Result<SizedStep> sized_step_of(const SampledStep& sample, const std::string& models,
                                double compute_capability) {
  auto source = find_model(sample.model, models);
  if (!source) return tl::unexpected(std::move(source.error()));
  source->options.precision = sample.precision;
  const auto model = load_model(source->source, source->options);
  if (!model) return tl::unexpected(model.error());
  const auto chosen = choose_step(*model, {.kernels = KernelSet::stowage,
                                           .in_place = works_in_place(Runtime::stowage),
                                           .compute_capability = compute_capability});
  if (!chosen) return tl::unexpected(chosen.error());
  const auto document = make_document(*model, *chosen, Runtime::stowage, {}, step_alone);
  if (!document) return tl::unexpected(document.error());
  return size_storages(document->graph, sample.batch);
}

Result<std::vector<KernelSample>> timed_samples(Backend& backend, const SizedStep& step,
                                                Bytes most) {
  const auto timed =
      time_kernels(step, backend, std::min(largest_workspace, Bytes(most.count() / 4)), most);
  if (!timed) return tl::unexpected(timed.error());
  std::vector<KernelSample> samples;
  for (const KernelTime& time : timed->times) {
    if (time.seconds > 0) samples.push_back({kernel_work(step, time.node), time.seconds});
  }
  return samples;
}

}  // namespace

std::vector<SampledStep> default_samples(double compute_capability) {
  const Precision half = compute_capability >= 8 ? Precision::bf16 : Precision::fp16;
  std::vector<SampledStep> samples;
  for (const Precision precision : {Precision::fp32, half}) {
    for (const char* model : {"resnet50", "resnext50_32x4d", "mobilenet_v2", "bert-base"}) {
      for (const std::int64_t batch : {2, 16}) samples.push_back({model, batch, precision});
    }
  }
  return samples;
}

Result<CalibratedKernels> calibrate_kernels(Backend& backend, const Card& card,
                                            std::span<const SampledStep> samples,
                                            const std::string& models, Bytes most) {
  CalibratedKernels result;
  std::vector<KernelSample> all;
  for (const SampledStep& sample : samples) {
    const auto step = sized_step_of(sample, models, card.compute_capability);
    if (!step) return tl::unexpected(step.error());
    auto timed = timed_samples(backend, *step, most);
    if (timed) {
      std::ranges::move(*timed, std::back_inserter(all));
    } else {
      result.left_out.push_back(fmt::format("{} in {}: {}", sample.model,
                                            to_string(sample.precision),
                                            timed.error().front().message));
    }
  }
  if (all.empty()) {
    return failure(result.left_out.empty() ? "there are no kernels to be timed"
                                           : result.left_out.front());
  }
  result.kernels = std::ssize(all);
  result.fitted = fit_rates(kernel_rates(card), sustained_bandwidth(card), all);
  return result;
}

std::string kernel_shares_yaml(const CalibratedKernels& kernels) {
  std::string text = fmt::format("kernel_latency: {:.3f} us\nkernel_shares:  # of {} kernels\n",
                                 kernels.fitted.launch * 1e6, kernels.kernels);
  for (const KindFit& fit : kernels.fitted.fits) {
    const KindShare& share = kernels.fitted.rates.share(fit.kind);
    text += fmt::format(
        "  - {{kind: {}, arithmetic: {:.4f}, bandwidth: {:.4f}}}  # {} and {} kernels, off by "
        "{:.0f} "
        "percent in the median\n",
        to_string(fit.kind), share.arithmetic, share.bandwidth, fit.by_arithmetic, fit.by_bandwidth,
        100 * fit.median_error);
  }
  return text;
}

}  // namespace stowage
