#include "answers/subject/process_settings.hpp"

#include <fmt/format.h>

#include "answers/question/question_error.hpp"

namespace stowage {

namespace {

/// What only some runtimes have, and this one has not.
Diagnostics foreign_options(const StepQuestion& question, Runtime runtime) {
  const ProcessChoice& options = question.process;
  const std::string_view name = to_string(runtime);
  Diagnostics mistakes;
  const auto refuse = [&](std::string message, std::string hint = {}) {
    mistakes.push_back(question_error(std::move(message), std::move(hint)));
  };
  if (runtime != Runtime::pytorch) {
    if (options.software.pytorch) {
      refuse(fmt::format("`pytorch_version` is for `runtime` pytorch, not for {}", name));
    }
    if (options.allocator) {
      refuse(fmt::format("`alloc_conf` is for PyTorch's allocator, not for `runtime` {}", name));
    }
  }
  if (options.theano && runtime != Runtime::theano) {
    refuse(fmt::format("`theano_flags` is for `runtime` theano, not for {}", name));
  }
  const DataParallel& parallel = question.wishes.parallel;
  if (runtime == Runtime::stowage || runtime == Runtime::tensorflow) {
    if (parallel.zero > 0) {
      refuse(fmt::format("`zero` is DeepSpeed's, and not of `runtime` {}", name));
    }
    if (parallel.fsdp.on) refuse(fmt::format("`fsdp` is PyTorch's, and not of `runtime` {}", name));
  }
  if (runtime == Runtime::tensorflow) {
    if (question.wishes.parallel.gpus > 1 && options.pools.virtual_gpus.value_or(1) > 1) {
      refuse("`gpus` and `virtual_gpus` cannot be combined",
             "`gpus` are cards, `virtual_gpus` are logical devices of one card");
    }
    return mistakes;
  }
  if (runtime == Runtime::theano) {
    const std::pair<bool, std::string_view> not_of_theano[] = {
        {parallel.gpus > 1, "`gpus`"},
        {parallel.zero > 0, "`zero`"},
        {parallel.fsdp.on, "`fsdp`"},
        {question.wishes.accumulation.value_or(1) > 1, "`accumulation`"},
        {question.wishes.implementation.has_value(), "`optimizer_implementation`"},
        {question.wishes.master_gradients, "`master_gradients`"},
        {question.wishes.convolutions.benchmark, "`cudnn_benchmark`"},
        {question.wishes.convolutions.deterministic, "`deterministic`"}};
    for (const auto& [is_given, option] : not_of_theano) {
      if (is_given) refuse(fmt::format("{} is not of `runtime` theano", option));
    }
  }
  const PoolChoice& pools = options.pools;
  const std::pair<bool, std::string_view> of_tensorflow[] = {
      {pools.limit.has_value(), "memory_limit"},
      {pools.growth, "memory_growth"},
      {pools.fraction.has_value(), "memory_fraction"},
      {pools.virtual_gpus.has_value(), "virtual_gpus"}};
  for (const auto& [is_given, option] : of_tensorflow) {
    if (!is_given) continue;
    refuse(fmt::format("`{}` is for `runtime` tensorflow, not for {}", option, name));
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
  if (Diagnostics mistakes = foreign_options(question, runtime); !mistakes.empty()) {
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
