#include "gpu_probe/device/present_card.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/card/card_rules.hpp"

namespace stowage {
namespace {

/// The GPU's free memory: of a divided GPU that of the instance that CUDA shows, which is
/// recognised by its total; all of it where NVML does not tell.
Bytes free_of(const ProbedGpu& gpu, Bytes cuda_total) {
  if (gpu.total == Bytes()) return cuda_total;
  if (!gpu.is_divided || !gpu.cuda_total) return gpu.free;
  const auto distance = [&](const MigInstance& instance) {
    return std::abs(instance.total.count() - gpu.cuda_total->count());
  };
  const auto nearest = std::ranges::min_element(gpu.instances, {}, distance);
  return nearest == gpu.instances.end() ? *gpu.cuda_total : nearest->free;
}

}  // namespace

Card card_by_rule(const ProbedGpu& gpu) {
  Card card{.name = gpu.name, .compute_capability = gpu.compute_capability};
  card.nvml_total = gpu.total;
  card.cuda_total = gpu.cuda_total.value_or(gpu.total);
  return completed_by_rule(std::move(card),
                           {"name", "compute_capability", "nvml_total", "cuda_total"});
}

Result<std::size_t> present_gpu(const Probe& probe) {
  if (probe.gpus.empty()) return failure(probe.no_gpu_reason);
  for (std::size_t i = 0; i < probe.gpus.size(); ++i) {
    if (probe.gpus[i].ordinal == 0) return i;
  }
  if (!probe.asked_cuda) {
    return failure("the driver lists a GPU, but libcuda.so.1 cannot be asked about it");
  }
  return failure(probe.visible_devices ? fmt::format("CUDA_VISIBLE_DEVICES={} hides every GPU",
                                                     *probe.visible_devices)
                                       : std::string("CUDA shows none of the driver's GPUs"));
}

Result<PresentCard> present_card(const Probe& probe, const std::string& directory) {
  const auto which = present_gpu(probe);
  if (!which) return tl::unexpected(which.error());
  const ProbedGpu& gpu = probe.gpus[*which];
  PresentCard present;
  // Of "NVIDIA A100-SXM4-40GB MIG 9g.99gb", whose profile is not known, the A100.
  const Bytes total = gpu.cuda_total.value_or(gpu.total);
  auto found = find_card(gpu.name, directory, total);
  if (!found) found = find_card(gpu.name.substr(0, gpu.name.find(" MIG ")), directory, total);
  if (found) {
    present.card = std::move(found->card);
    if (gpu.total > Bytes()) present.card.nvml_total = gpu.total;
    if (gpu.cuda_total) present.card.cuda_total = *gpu.cuda_total;
    present.card.observed_totals.clear();
    present.note = std::move(found->note);
  } else if (found.error().front().span.source) {
    return tl::unexpected(std::move(found.error()));
  } else {
    present.card = card_by_rule(gpu);
  }
  present.card.total_source = "this machine's driver";
  std::erase_if(present.card.by_rule,
                [](const std::string& key) { return key == "nvml_total" || key == "cuda_total"; });
  present.in_use =
      std::max(Bytes(), present.card.cuda_total - free_of(gpu, present.card.cuda_total));
  return present;
}

}  // namespace stowage
