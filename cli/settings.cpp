#include "cli/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/software_options.hpp"
#include "cli/tensorflow_options.hpp"
#include "estimator/allocator/alloc_conf.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/step/lower.hpp"
#include "gpu_probe/cudnn/answer_cache.hpp"

namespace stowage {

namespace {

// A message about the step as one about the options that ask for it.
tl::unexpected<Diagnostics> about_command_line(Diagnostics mistakes) {
  for (Diagnostic& mistake : mistakes) {
    if (!mistake.span.source) mistake = command_line_error(mistake.message, mistake.hint);
  }
  return tl::unexpected(std::move(mistakes));
}

StepWishes requested_wishes(const Arguments& arguments, KernelSet kernels, const Card& card) {
  StepWishes wishes{.optimizer = arguments.text("optimizer"),
                    .accumulation = arguments.integer("accumulation"),
                    .parallel = {.gpus = static_cast<int>(arguments.integer("gpus").value_or(1)),
                                 .zero = static_cast<int>(arguments.integer("zero").value_or(0))},
                    .master_gradients = arguments.flag("master-gradients"),
                    .kernels = kernels,
                    .compute_capability = card.compute_capability,
                    .convolutions = {.tf32 = arguments.text("tf32").value_or("on") == "on",
                                     .deterministic = arguments.flag("deterministic"),
                                     .benchmark = arguments.flag("cudnn-benchmark")}};
  if (const auto mode = arguments.text("mode")) {
    wishes.mode = *mode == "train" ? Mode::train : Mode::inference;
  }
  if (const auto layout = requested_layout(arguments)) wishes.layout = *layout;
  using enum OptimizerImplementation;
  const auto word = arguments.text("optimizer-implementation");
  for (const OptimizerImplementation candidate : {usual, for_loop, foreach, fused}) {
    if (word && to_string(candidate) == *word) wishes.implementation = candidate;
  }
  return wishes;
}

constexpr double usual_capability = 8.6;
constexpr Bytes least_card{1 << 20};  // who gives less has left out the unit

Card named_generic_card(Bytes total, double capability) {
  Card card = generic_card(total, capability);
  if (capability != usual_capability) {
    card.name =
        fmt::format("a generic {} card of compute capability {}", format_bytes(total), capability);
  }
  return card;
}

}  // namespace

std::optional<TensorLayout> requested_layout(const Arguments& arguments) {
  const auto name = arguments.text("layout");
  if (!name) return std::nullopt;
  return *name == to_string(TensorLayout::contiguous) ? TensorLayout::contiguous
                                                      : TensorLayout::channels_last;
}

std::optional<Precision> requested_precision(const Arguments& arguments) {
  const auto name = arguments.text("precision");
  return name ? parse_precision(*name) : std::nullopt;
}

Result<RequestedModel> requested_model(const Arguments& arguments, const ConfigDirectory& configs) {
  auto found = find_model(arguments.positionals().front(), configs.models());
  if (!found) return tl::unexpected(std::move(found.error()));
  ModelOptions options =
      overridden(std::move(found->options), {.seq = arguments.integer("seq"),
                                             .arguments = arguments.assignments("set"),
                                             .precision = requested_precision(arguments)});
  auto graph = load_model(found->source, options);
  if (!graph) return tl::unexpected(std::move(graph.error()));
  return RequestedModel{std::move(found->source), std::move(options), std::move(*graph)};
}

Result<ChosenStep> requested_choice(const Arguments& arguments, const ModelGraph& model,
                                    KernelSet kernels, const Card& card) {
  auto chosen = choose_step(model, requested_wishes(arguments, kernels, card));
  if (!chosen) return about_command_line(std::move(chosen.error()));
  return chosen;
}

Result<RequestedCard> requested_card(const Arguments& arguments, const ConfigDirectory& configs) {
  const auto name = arguments.text("gpu");
  const auto total = arguments.size("gpu-memory");
  if (!name && !total) {
    return failure(command_line_error("a card is missing: --gpu NAME or --gpu-memory SIZE",
                                      "stowage gpus lists the names"));
  }
  if (name && arguments.given("compute-capability")) {
    return failure(command_line_error(
        "--compute-capability is for the generic card of a bare --gpu-memory, not for --gpu"));
  }
  if (total && *total < least_card) {
    return failure(
        command_line_error(fmt::format("--gpu-memory: a card of {} is none", format_bytes(*total)),
                           "sizes are written with their unit: 8GiB"));
  }
  RequestedCard requested;
  const auto calibrate = [&]() -> Result<RequestedCard> {
    auto card = calibrated_card(arguments, std::move(requested.card));
    if (!card) return tl::unexpected(std::move(card.error()));
    requested.card = *std::move(card);
    return std::move(requested);
  };
  const auto note = [&](std::string text) {
    requested.notes.push_back({.severity = Severity::note, .message = std::move(text)});
  };
  if (!name) {
    const double capability = arguments.number("compute-capability").value_or(usual_capability);
    requested.card = named_generic_card(*total, capability);
    note(
        fmt::format("taken for a generic card of {} with compute capability {:.1f}; "
                    "--gpu NAME takes a real one",
                    format_bytes(*total), capability));
    return calibrate();
  }
  auto found = find_card(*name, configs.gpus());
  if (!found) return tl::unexpected(std::move(found.error()));
  requested.card = std::move(found->card);
  if (!found->note.empty()) note(std::move(found->note));
  if (total) requested.card.cuda_total = *total;
  return calibrate();
}

Result<CheckSettings> requested_check(const Arguments& arguments, Runtime fallback,
                                      const Card& card) {
  CheckSettings settings;
  const std::string runtime = arguments.text("runtime").value_or(std::string(to_string(fallback)));
  settings.runtime = find_runtime(runtime).value_or(fallback);  // the option's table has checked it
  settings.in_use = arguments.size("in-use").value_or(Bytes());
  settings.reserve = arguments.size("reserve").value_or(Bytes());
  settings.context = arguments.size("context");
  const auto stack = requested_stack(arguments, settings.runtime, card);
  if (!stack) return tl::unexpected(stack.error());
  settings.stack = *stack;
  if (const auto text = arguments.text("alloc-conf")) {
    if (settings.runtime != Runtime::pytorch) {
      return failure(command_line_error(
          fmt::format("--alloc-conf is for PyTorch's allocator, not for --runtime {}", runtime)));
    }
    auto conf = parse_alloc_conf(*text, "<option --alloc-conf>");
    if (!conf) return tl::unexpected(std::move(conf.error()));
    settings.allocator = conf->settings;
  }
  auto tensorflow = requested_tensorflow(arguments, settings.runtime);
  if (!tensorflow) return tl::unexpected(std::move(tensorflow.error()));
  settings.tensorflow = *std::move(tensorflow);
  return settings;
}

std::string answer_folder(const Arguments& arguments) {
  return arguments.flag("no-cache") ? "" : default_answer_folder();
}

Result<RequestedStep> requested_step(const Arguments& arguments, Runtime fallback) {
  const auto configs = find_configs(arguments);
  if (!configs) return tl::unexpected(configs.error());
  auto model = requested_model(arguments, *configs);
  if (!model) return tl::unexpected(std::move(model.error()));
  auto card = requested_card(arguments, *configs);
  if (!card) return tl::unexpected(std::move(card.error()));
  auto settings = requested_check(arguments, fallback, card->card);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  if (settings->runtime == Runtime::tensorflow &&
      requested_layout(arguments) == TensorLayout::channels_last) {
    return failure(command_line_error(
        "--layout nhwc is a memory format of PyTorch's; TensorFlow chooses between NHWC and NCHW "
        "by itself, and is sized with NCHW"));
  }
  auto chosen =
      requested_choice(arguments, model->graph, kernel_set_of(settings->runtime), card->card);
  if (!chosen) return tl::unexpected(std::move(chosen.error()));
  auto graph = lower(model->graph, chosen->lowering);
  if (!graph) return tl::unexpected(std::move(graph.error()));
  return RequestedStep{*std::move(model), *std::move(card), *std::move(settings),
                       *std::move(chosen), std::make_shared<const StepGraph>(*std::move(graph))};
}

Diagnostics notes_of(const RequestedStep& request) {
  Diagnostics notes = request.model.graph.warnings;
  for (const Diagnostics* more : {&request.card.notes, &request.chosen.warnings}) {
    notes.insert(notes.end(), more->begin(), more->end());
  }
  return notes;
}

std::string describe_step(const ModelGraph& model, const LoweringSettings& lowering,
                          std::optional<std::int64_t> batch, std::optional<std::int64_t> seq) {
  std::string text = model.name;
  if (batch) text += fmt::format(", batch {}", grouped_digits(*batch));
  const DataParallel& parallel = lowering.parallel;
  if (parallel.is_parallel()) text += fmt::format(" on each of {} GPUs", parallel.gpus);
  if (parallel.zero > 0) text += fmt::format(" (ZeRO {})", parallel.zero);
  if (model.default_seq > 0) text += fmt::format(", seq {}", seq.value_or(model.default_seq));
  text += lowering.mode == Mode::train
              ? fmt::format(", training with {}", optimizer_text(lowering.optimizer))
              : std::string(", inference");
  if (lowering.mode == Mode::train && lowering.micro_batches > 1) {
    text += ", gradients accumulated";
  }
  const TensorLayout layout = lowering.step.layout;
  return fmt::format("{}, {}{}", text, to_string(model.precision),
                     layout == TensorLayout::contiguous ? "" : ", nhwc");
}

Json settings_json(const ModelGraph& model, const ChosenStep& chosen, std::int64_t batch,
                   std::optional<std::int64_t> seq, std::string_view runtime) {
  const LoweringSettings& lowering = chosen.lowering;
  const bool trains = lowering.mode == Mode::train;
  const bool has_seq = model.default_seq > 0;
  const auto of_training = [&](Json value) { return trains ? std::move(value) : Json(); };
  const auto of_pytorch = [&](bool value) {
    return lowering.kernels == KernelSet::pytorch ? Json(value) : Json();
  };
  const OptimizerSettings& optimizer = lowering.optimizer;
  const MasterWeights masters = optimizer.master_weights;
  return Json::Object{
      {"model", model.name},
      {"batch", batch},
      {"seq", has_seq ? Json(seq.value_or(model.default_seq)) : Json()},
      {"mode", to_string(lowering.mode)},
      {"optimizer", of_training(optimizer.name)},
      {"momentum", of_training(optimizer.momentum)},
      {"optimizer_implementation", of_training(to_string(implementation_of(optimizer)))},
      {"precision", to_string(model.precision)},
      {"master_weights", of_training(masters != MasterWeights::none)},
      {"master_gradients", of_training(masters == MasterWeights::weights_and_gradients)},
      {"accumulation", of_training(chosen.accumulation)},
      {"gpus", std::int64_t{lowering.parallel.gpus}},
      {"zero", std::int64_t{lowering.parallel.zero}},
      {"zero_grad", of_training(to_string(lowering.step.zero_grad))},
      {"augment", std::int64_t{lowering.step.augment}},
      {"prefetch", std::int64_t{lowering.step.prefetch}},
      {"layout", to_string(lowering.step.layout)},
      {"tf32", of_pytorch(lowering.convolutions.tf32)},
      {"deterministic", of_pytorch(lowering.convolutions.deterministic)},
      {"cudnn_benchmark", of_pytorch(lowering.convolutions.benchmark)},
      {"runtime", runtime}};
}

}  // namespace stowage
