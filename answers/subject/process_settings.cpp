#include "answers/subject/process_settings.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "answers/question/question_error.hpp"

namespace stowage {

namespace {

/// A setting that only some runtimes have.
struct RuntimeSetting {
  bool is_given = false;
  bool is_served = false;  ///< by the runtime that is asked about
  std::string_view name;   ///< the field's
  std::string_view whose;  ///< what a mistake says of it; the runtime's name follows
};

std::vector<RuntimeSetting> runtime_settings(const StepQuestion& question,
                                             const RuntimeTraits& runtime) {
  const ProcessChoice& process = question.process;
  const PoolChoice& pools = process.pools;
  const StepWishes& wishes = question.wishes;
  const DataParallel& parallel = wishes.parallel;
  constexpr std::string_view of_tensorflow = "is for `runtime` tensorflow, not for";
  const bool pytorch = runtime.has_pytorch_release, plain = runtime.only_plain_steps;
  const bool has_pools = runtime.allocator == AllocatorKind::bfc;
  // Whose steps are all plain shards nothing either: it is refused below, beside the rest.
  const bool shards = runtime.shards || plain;
  std::vector<RuntimeSetting> settings{
      {process.software.pytorch.has_value(), pytorch, "pytorch_version",
       "is for `runtime` pytorch, not for"},
      {process.allocator.has_value(), runtime.allocator == AllocatorKind::caching, "alloc_conf",
       "is for PyTorch's allocator, not for `runtime`"},
      {process.theano.has_value(), runtime.allocator == AllocatorKind::best_fit, "theano_flags",
       "is for `runtime` theano, not for"},
      {parallel.zero > 0, shards, "zero", "is DeepSpeed's, and not of `runtime`"},
      {parallel.fsdp.on, shards, "fsdp", "is PyTorch's, and not of `runtime`"}};
  for (const auto& [is_given, name] :
       {std::pair(parallel.gpus > 1, "gpus"), std::pair(parallel.zero > 0, "zero"),
        std::pair(parallel.fsdp.on, "fsdp"),
        std::pair(wishes.accumulation.value_or(1) > 1, "accumulation"),
        std::pair(wishes.implementation.has_value(), "optimizer_implementation"),
        std::pair(wishes.master_gradients, "master_gradients"),
        std::pair(wishes.convolutions.benchmark, "cudnn_benchmark"),
        std::pair(wishes.convolutions.deterministic, "deterministic")}) {
    settings.push_back({is_given, !plain, name, "is not of `runtime`"});
  }
  for (const auto& [is_given, name] : {std::pair(pools.limit.has_value(), "memory_limit"),
                                       std::pair(pools.growth, "memory_growth"),
                                       std::pair(pools.fraction.has_value(), "memory_fraction"),
                                       std::pair(pools.virtual_gpus.has_value(), "virtual_gpus")}) {
    settings.push_back({is_given, has_pools, name, of_tensorflow});
  }
  return settings;
}

/// What only some runtimes have, and this one has not.
Diagnostics settings_of_others(const StepQuestion& question, Runtime runtime) {
  const RuntimeTraits& asked = traits(runtime);
  Diagnostics mistakes;
  for (const RuntimeSetting& setting : runtime_settings(question, asked)) {
    if (!setting.is_given || setting.is_served) continue;
    mistakes.push_back(
        question_error(fmt::format("`{}` {} {}", setting.name, setting.whose, asked.name)));
  }
  const bool has_virtual_gpus = question.process.pools.virtual_gpus.value_or(1) > 1;
  if (asked.allocator == AllocatorKind::bfc && has_virtual_gpus &&
      question.wishes.parallel.gpus > 1) {
    mistakes.push_back(
        question_error("`gpus` and `virtual_gpus` cannot be combined",
                       "`gpus` are cards, `virtual_gpus` are logical devices of one card"));
  }
  return mistakes;
}

Result<SoftwareStack> stack_of(const SoftwareChoice& question, Runtime runtime, const Card& card) {
  SoftwareStack stack{.cuda = question.cuda.value_or(usual_cuda(card.compute_capability))};
  stack.pytorch = question.pytorch.value_or(usual_pytorch(stack.cuda));
  stack.loading = question.loading.value_or(usual_loading(stack.cuda, runtime));
  if (question.loading == ModuleLoading::lazy && stack.cuda < first_lazy_cuda) {
    return failure(question_error(fmt::format("CUDA {} cannot load lazily; {} was the first",
                                              to_string(stack.cuda), to_string(first_lazy_cuda))));
  }
  return stack;
}

TensorFlowMemory memory_of(const PoolChoice& pools) {
  TensorFlowMemory memory{.allow_growth = pools.growth};
  memory.per_process_fraction = pools.fraction.value_or(0);
  if (pools.limit) {
    const auto devices = static_cast<std::size_t>(pools.virtual_gpus.value_or(1));
    memory.logical_devices.assign(devices, *pools.limit);
  }
  return memory;
}

}  // namespace

Result<CheckSettings> process_settings(const StepQuestion& question, Runtime runtime,
                                       const AskedCard& card) {
  if (Diagnostics mistakes = settings_of_others(question, runtime); !mistakes.empty()) {
    return tl::unexpected(std::move(mistakes));
  }
  const ProcessChoice& options = question.process;
  const auto stack = stack_of(options.software, runtime, card.card);
  if (!stack) return tl::unexpected(stack.error());
  return CheckSettings{.runtime = runtime,
                       .in_use = options.in_use.value_or(card.in_use),
                       .reserve = options.reserve,
                       .context = options.context,
                       .stack = *stack,
                       .allocator = options.allocator.value_or(AllocatorSettings{}),
                       .tensorflow = memory_of(options.pools),
                       .theano = options.theano.value_or(TheanoMemory{})};
}

}  // namespace stowage
