#include "cli/report/step_report.hpp"

#include <fmt/format.h>

#include "answers/subject/fsdp_text.hpp"
#include "answers/subject/replicas.hpp"
#include "cli/output/table.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

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

std::string update_text(const OptimizerSettings& optimizer,
                        const std::optional<MissingUpdate>& missing) {
  if (!missing) return fmt::format("with {}", optimizer_text(optimizer));
  if (missing->is_whole) return "without an update";
  return fmt::format("with {}, some parameters without an update", optimizer_text(optimizer));
}

Json missing_update_json(const std::optional<MissingUpdate>& missing) {
  if (!missing) return {};
  return Json::Object{{"parameters", missing->parameters}, {"parameter_bytes", missing->bytes}};
}

std::string describe_step(const StepSummary& step, std::optional<std::int64_t> batch) {
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
              ? fmt::format(", training {}", update_text(lowering.optimizer, step.missing_update))
              : std::string(", inference");
  if (lowering.mode == Mode::train && (step.accumulation > 1 || lowering.micro_batches > 1)) {
    text += ", gradients accumulated";
  }
  const TensorLayout layout = lowering.step.layout;
  return fmt::format("{}, {}{}", text, to_string(step.precision),
                     layout == TensorLayout::contiguous ? "" : ", nhwc");
}

Json settings_json(const StepSummary& step, std::int64_t batch, std::string_view runtime) {
  const LoweringSettings& lowering = step.lowering;
  const bool trains = lowering.mode == Mode::train;
  const auto of_training = [&](Json value) { return trains ? std::move(value) : Json(); };
  const auto of_pytorch = [&](bool value) {
    return traits(lowering.kernels).dispatches_by_card ? Json(value) : Json();
  };
  const bool updates = trains && !(step.missing_update && step.missing_update->is_whole);
  const auto of_update = [&](Json value) { return updates ? std::move(value) : Json(); };
  const OptimizerSettings& optimizer = lowering.optimizer;
  const MasterWeights masters = optimizer.master_weights;
  return Json::Object{
      {"model", step.model},
      {"batch", batch},
      {"seq", step.seq > 0 ? Json(step.seq) : Json()},
      {"mode", to_string(lowering.mode)},
      {"optimizer", of_update(optimizer.name)},
      {"momentum", of_update(optimizer.momentum)},
      {"optimizer_implementation", of_update(to_string(implementation_of(optimizer)))},
      {"not_updated", missing_update_json(step.missing_update)},
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

Json loop_json(const StepSummary& step) {
  if (!step.loop) return {};
  const TrainingLoop& loop = *step.loop;
  if (loop.is_recorded) return Json::Object{{"recorded", true}};
  Json::Array kept;
  for (const std::string& name : loop.kept) kept.emplace_back(name);
  const bool to_none = loop.zero_grad == ZeroGrad::to_none;
  return Json::Object{
      {"recorded", false},
      {"zero_grad", loop.updates_in_backward ? Json() : Json(to_string(loop.zero_grad))},
      {"gradients_during_forward", !loop.updates_in_backward && !to_none},
      {"kept", std::move(kept)},
      {"replaced_after",
       loop.kept.empty() ? Json() : Json(loop.replaced_after_loss ? "loss" : "forward")}};
}

Json stack_json(const SoftwareStack& stack) {
  return Json::Object{{"cuda", to_string(stack.cuda)},
                      {"pytorch", to_string(stack.pytorch)},
                      {"module_loading", std::string(to_string(stack.loading))}};
}

namespace {

Json theano_json(const CheckSettings& settings) {
  if (traits(settings.runtime).allocator != AllocatorKind::best_fit) return {};
  const TheanoMemory& memory = settings.theano;
  const bool old = memory.backend == TheanoBackend::cuda;
  return Json::Object{{"backend", old ? "cuda" : "gpuarray"},
                      {"pool", std::string(theano_pool_name(memory))},
                      {"preallocate", memory.preallocate},
                      {"allow_gc", !memory.keeps_intermediates}};
}

Json tensorflow_json(const CheckSettings& settings) {
  if (traits(settings.runtime).allocator != AllocatorKind::bfc) return {};
  const TensorFlowMemory& memory = settings.tensorflow;
  const bool limited = !memory.logical_devices.empty();
  return Json::Object{
      {"memory_limit_bytes", limited ? Json(memory.logical_devices.front()) : Json()},
      {"memory_growth", memory.allow_growth},
      {"memory_fraction",
       memory.per_process_fraction > 0 ? Json(memory.per_process_fraction) : Json()},
      {"virtual_gpus", replica_count(settings)}};
}

}  // namespace

void add_process(const CheckSettings& settings, Json::Object& json) {
  json.emplace_back("software", stack_json(settings.stack));
  json.emplace_back("tensorflow", tensorflow_json(settings));
  json.emplace_back("theano", theano_json(settings));
}

std::string describe_replicas(std::int64_t batch, const CheckSettings& settings) {
  if (replica_count(settings) == 1) return {};
  return fmt::format(", {} on each of {} virtual GPUs", replica_batch(batch, settings),
                     replica_count(settings));
}

}  // namespace stowage
