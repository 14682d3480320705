#include "cli/options/read_subject.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/options/advice.hpp"
#include "cli/options/fine_tuning_options.hpp"
#include "cli/options/read_process_options.hpp"
#include "cli/options/sharding_options.hpp"

namespace stowage {

namespace {

constexpr Bytes least_card{1 << 20};  // who gives less has left out the unit

Result<ModelOptions> read_options(const Arguments& arguments) {
  auto fine_tuning = read_fine_tuning_options(arguments);
  if (!fine_tuning) return tl::unexpected(std::move(fine_tuning.error()));
  ModelOptions options{.seq = arguments.integer("seq"),
                       .arguments = arguments.assignments("set"),
                       .fine_tuning = *std::move(fine_tuning)};
  if (arguments.flag("packing")) options.arguments.emplace("packing", "true");
  if (const auto precision = arguments.text("precision")) {
    options.precision = parse_precision(*precision);
  }
  return options;
}

}  // namespace

std::string text_or_empty(const Arguments& arguments, std::string_view option) {
  return arguments.text(option).value_or(std::string());
}

Result<ModelQuestion> read_model(const Arguments& arguments) {
  auto options = read_options(arguments);
  if (!options) return tl::unexpected(std::move(options.error()));
  return find_configs(arguments.text("configs")).map([&](ConfigDirectory configs) {
    return ModelQuestion{.source = arguments.positionals().front(),
                         .options = *std::move(options),
                         .configs = std::move(configs),
                         .loss = arguments.text("loss"),
                         .allow_unknown = arguments.flag("allow-unknown")};
  });
}

std::optional<TensorLayout> read_layout(const Arguments& arguments) {
  const auto name = arguments.text("layout");
  if (!name) return std::nullopt;
  return *name == to_string(TensorLayout::contiguous) ? TensorLayout::contiguous
                                                      : TensorLayout::channels_last;
}

Result<StepWishes> read_wishes(const Arguments& arguments) {
  auto parallel = read_sharding(arguments);
  if (!parallel) return tl::unexpected(std::move(parallel.error()));
  StepWishes wishes{.optimizer = arguments.text("optimizer"),
                    .accumulation = arguments.integer("accumulation"),
                    .parallel = *std::move(parallel),
                    .layout = read_layout(arguments),
                    .master_gradients = arguments.flag("master-gradients"),
                    .convolutions = {.tf32 = arguments.text("tf32") == "on",
                                     .deterministic = arguments.flag("deterministic"),
                                     .benchmark = arguments.flag("cudnn-benchmark")}};
  if (const auto mode = arguments.text("mode")) {
    wishes.mode = *mode == to_string(Mode::train) ? Mode::train : Mode::inference;
  }
  using enum OptimizerImplementation;
  const auto word = arguments.text("optimizer-implementation");
  for (const OptimizerImplementation candidate : {usual, for_loop, foreach, fused}) {
    if (word && to_string(candidate) == *word) wishes.implementation = candidate;
  }
  return wishes;
}

Result<CardQuestion> read_card(const Arguments& arguments, const ConfigDirectory& configs) {
  CardQuestion card{.name = text_or_empty(arguments, "gpu"),
                    .cuda_total = arguments.size("gpu-memory"),
                    .total_source = "--gpu-memory",
                    .compute_capability = arguments.number("compute-capability"),
                    .calibration = text_or_empty(arguments, "calibration"),
                    .configs = configs};
  if (card.name.empty() && !card.cuda_total) {
    const std::string batch = arguments.text("batch").value_or("1");
    const std::string without = advice(arguments.typed(), "summary", {.set = {{"batch", batch}}});
    return failure(command_line_error(
        "a card is missing: --gpu NAME or --gpu-memory SIZE",
        fmt::format("stowage gpus lists the names; without a card, {} says what the tensors take",
                    without)));
  }
  if (!card.name.empty() && card.compute_capability) {
    return failure(command_line_error(
        "--compute-capability is for the generic card of a bare --gpu-memory, not for --gpu"));
  }
  if (card.cuda_total && *card.cuda_total < least_card) {
    return failure(command_line_error(
        fmt::format("--gpu-memory {} is too small for a card", format_bytes(*card.cuda_total)),
        "sizes are written with their unit: 8GiB"));
  }
  return card;
}

Result<void> check_layout(Runtime runtime, const StepWishes& wishes) {
  if (!traits(runtime).chooses_layout || wishes.layout != TensorLayout::channels_last) return {};
  return failure(command_line_error(
      "--layout nhwc is a memory format of PyTorch's; TensorFlow chooses between NHWC and NCHW "
      "by itself, and is sized with NCHW"));
}

std::optional<std::int64_t> given_batch(const Arguments& arguments) {
  return arguments.given("batch") ? arguments.integer("batch") : std::nullopt;
}

std::optional<WholeBatch> of_whole_step(std::optional<std::int64_t> samples) {
  return samples ? std::optional(WholeBatch(*samples)) : std::nullopt;
}

Result<StepQuestion> read_step(const Arguments& arguments, Runtime usual) {
  auto model = read_model(arguments);
  if (!model) return tl::unexpected(std::move(model.error()));
  auto process = read_process_options(arguments, usual);
  if (!process) return tl::unexpected(std::move(process.error()));
  auto wishes = read_wishes(arguments);
  if (!wishes) return tl::unexpected(std::move(wishes.error()));
  if (auto served = check_layout(process->runtime.value_or(usual), *wishes); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  return StepQuestion{.model = *std::move(model),
                      .wishes = *std::move(wishes),
                      .process = *std::move(process),
                      .given = {.gpus = arguments.given("gpus"),
                                .zero = arguments.given("zero"),
                                .fsdp = arguments.given("fsdp"),
                                .offload = arguments.given("offload"),
                                .tf32 = arguments.given("tf32")},
                      .keep_answers = !arguments.flag("no-cache")};
}

}  // namespace stowage
