#include "cli/report/step_report.hpp"

#include <fmt/format.h>

#include "cli/output/table.hpp"
#include "cli/report/replicas.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

ToldStep told_step(const StepDocument& document) {
  const StepGraph& graph = *document.graph;
  return {.model = graph.model,
          .lowering = graph.settings,
          .precision = document.precision,
          .accumulation = document.accumulation,
          .seq = document.seq};
}

std::string fsdp_text(const FullyShard& fsdp) {
  if (!fsdp.on) return "no FSDP";
  std::string text = "FSDP";
  if (!fsdp.by_block) text += ", one group";
  if (!fsdp.reshards_after_forward) text += ", not resharded after forward";
  if (fsdp.reshards_among > 0) {
    text += fmt::format(", resharded among {} after forward", fsdp.reshards_among);
  }
  if (fsdp.forward_prefetch > 0) {
    text += fmt::format(", {} prefetched in forward", fsdp.forward_prefetch);
  }
  if (fsdp.backward_prefetch > 0) {
    text += fmt::format(", {} prefetched in backward", fsdp.backward_prefetch);
  }
  if (fsdp.reduce_type) text += fmt::format(", reduced in {}", to_string(*fsdp.reduce_type));
  if (fsdp.output_type) text += fmt::format(", output in {}", to_string(*fsdp.output_type));
  return text;
}

Json fsdp_json(const FullyShard& fsdp) {
  if (!fsdp.on) return {};
  const auto type = [](const std::optional<DataType>& named) {
    return named ? Json(to_string(*named)) : Json();
  };
  return Json::Object{
      {"wrap", fsdp.by_block ? "blocks" : "root"},
      {"reshard_after_forward", fsdp.reshards_after_forward},
      {"reshard_among", fsdp.reshards_among > 0 ? Json(std::int64_t{fsdp.reshards_among}) : Json()},
      {"forward_prefetch", std::int64_t{fsdp.forward_prefetch}},
      {"backward_prefetch", std::int64_t{fsdp.backward_prefetch}},
      {"reduce_dtype", type(fsdp.reduce_type)},
      {"output_dtype", type(fsdp.output_type)}};
}

std::string describe_step(const ToldStep& step, std::optional<std::int64_t> batch) {
  const LoweringSettings& lowering = step.lowering;
  std::string text = step.model;
  if (batch) text += fmt::format(", batch {}", grouped_digits(*batch));
  const DataParallel& parallel = lowering.parallel;
  if (parallel.is_parallel()) text += fmt::format(" on each of {} GPUs", parallel.gpus);
  if (parallel.zero > 0) text += fmt::format(" (ZeRO {})", parallel.zero);
  if (parallel.fsdp.on) text += fmt::format(" ({})", fsdp_text(parallel.fsdp));
  if (parallel.offload != Offload::none) {
    text += fmt::format(", {} offloaded", parallel.offload == Offload::all
                                              ? "parameters and optimizer"
                                              : to_string(parallel.offload));
  }
  if (step.seq > 0) text += fmt::format(", seq {}", step.seq);
  text += lowering.mode == Mode::train
              ? fmt::format(", training with {}", optimizer_text(lowering.optimizer))
              : std::string(", inference");
  if (lowering.mode == Mode::train && (step.accumulation > 1 || lowering.micro_batches > 1)) {
    text += ", gradients accumulated";
  }
  const TensorLayout layout = lowering.step.layout;
  return fmt::format("{}, {}{}", text, to_string(step.precision),
                     layout == TensorLayout::contiguous ? "" : ", nhwc");
}

Json settings_json(const ToldStep& step, std::int64_t batch, std::string_view runtime) {
  const LoweringSettings& lowering = step.lowering;
  const bool trains = lowering.mode == Mode::train;
  const auto of_training = [&](Json value) { return trains ? std::move(value) : Json(); };
  const auto of_pytorch = [&](bool value) {
    return traits(lowering.kernels).dispatches_by_card ? Json(value) : Json();
  };
  const OptimizerSettings& optimizer = lowering.optimizer;
  const MasterWeights masters = optimizer.master_weights;
  return Json::Object{
      {"model", step.model},
      {"batch", batch},
      {"seq", step.seq > 0 ? Json(step.seq) : Json()},
      {"mode", to_string(lowering.mode)},
      {"optimizer", of_training(optimizer.name)},
      {"momentum", of_training(optimizer.momentum)},
      {"optimizer_implementation", of_training(to_string(implementation_of(optimizer)))},
      {"precision", to_string(step.precision)},
      {"master_weights", of_training(masters != MasterWeights::none)},
      {"master_gradients", of_training(masters == MasterWeights::weights_and_gradients)},
      {"accumulation", of_training(step.accumulation)},
      {"gpus", std::int64_t{lowering.parallel.gpus}},
      {"zero", std::int64_t{lowering.parallel.zero}},
      {"fsdp", fsdp_json(lowering.parallel.fsdp)},
      {"offload", lowering.parallel.offload == Offload::none
                      ? Json()
                      : Json(to_string(lowering.parallel.offload))},
      {"zero_grad", of_training(to_string(lowering.step.zero_grad))},
      {"augment", std::int64_t{lowering.step.augment}},
      {"prefetch", std::int64_t{lowering.step.prefetch}},
      {"layout", to_string(lowering.step.layout)},
      {"tf32", of_pytorch(lowering.convolutions.tf32)},
      {"deterministic", of_pytorch(lowering.convolutions.deterministic)},
      {"cudnn_benchmark", of_pytorch(lowering.convolutions.benchmark)},
      {"runtime", runtime}};
}

Json stack_json(const SoftwareStack& stack) {
  return Json::Object{{"cuda", to_string(stack.cuda)},
                      {"pytorch", to_string(stack.pytorch)},
                      {"module_loading", std::string(to_string(stack.loading))}};
}

Json theano_json(const CheckSettings& settings) {
  if (settings.runtime != Runtime::theano) return {};
  const TheanoMemory& memory = settings.theano;
  const bool old = memory.backend == TheanoBackend::cuda;
  return Json::Object{{"backend", old ? "cuda" : "gpuarray"},
                      {"pool", std::string(theano_pool_name(memory))},
                      {"preallocate", memory.preallocate},
                      {"allow_gc", !memory.keeps_intermediates}};
}

Json tensorflow_json(const CheckSettings& settings) {
  if (settings.runtime != Runtime::tensorflow) return {};
  const TensorFlowMemory& memory = settings.tensorflow;
  const bool limited = !memory.logical_devices.empty();
  return Json::Object{
      {"memory_limit_bytes", limited ? Json(memory.logical_devices.front()) : Json()},
      {"memory_growth", memory.allow_growth},
      {"memory_fraction",
       memory.per_process_fraction > 0 ? Json(memory.per_process_fraction) : Json()},
      {"virtual_gpus", replica_count(settings)}};
}

}  // namespace stowage
