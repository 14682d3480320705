#include "cli/options/read_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iterator>

#include "cli/options/fine_tuning_options.hpp"
#include "cli/options/read_process_options.hpp"
#include "cli/options/serving_request.hpp"
#include "cli/options/sharding_options.hpp"
#include "cli/output/shell_word.hpp"

namespace stowage {

namespace {

constexpr Bytes least_card{1 << 20};  // who gives less has left out the unit

std::string text_or_empty(const Arguments& arguments, std::string_view option) {
  return arguments.text(option).value_or(std::string());
}

std::string first_positional(const Arguments& arguments) {
  return arguments.positionals().empty() ? std::string() : arguments.positionals().front();
}

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

Result<ModelRequest> read_model(const Arguments& arguments) {
  auto options = read_options(arguments);
  if (!options) return tl::unexpected(std::move(options.error()));
  return find_configs(arguments.text("configs")).map([&](ConfigDirectory configs) {
    return ModelRequest{.source = arguments.positionals().front(),
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

Result<CardRequest> read_card(const Arguments& arguments, const ConfigDirectory& configs) {
  CardRequest card{.name = text_or_empty(arguments, "gpu"),
                   .cuda_total = arguments.size("gpu-memory"),
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
  if (runtime != Runtime::tensorflow || wishes.layout != TensorLayout::channels_last) return {};
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

// A file that is named as a picture and holds the text of one would open nowhere.
std::optional<Diagnostic> contradicting_extension(const Arguments& arguments) {
  const std::string output = text_or_empty(arguments, "output");
  std::string extension = std::filesystem::path(output).extension().string();
  std::ranges::transform(extension, extension.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  constexpr std::array<std::string_view, 7> pictures{".svg", ".png", ".pdf", ".ps",
                                                     ".jpg", ".gif", ".webp"};
  constexpr std::array<std::string_view, 5> texts{".html", ".json", ".yaml", ".yml", ".csv"};
  if (std::ranges::find(pictures, extension) != pictures.end()) {
    return command_line_error(
        fmt::format("dot is a text for graphviz, and '{}' is named as a picture", output),
        fmt::format("{} | dot -T{} -o {}", advice(arguments.typed(), "export"), extension.substr(1),
                    shell_word(output)));
  }
  if (std::ranges::find(texts, extension) != texts.end()) {
    const std::string better = std::filesystem::path(output).replace_extension(".dot").string();
    return command_line_error(
        fmt::format("what is written is dot, and '{}' is named as something else", output),
        fmt::format("{} -o {}", advice(arguments.typed(), "export"), shell_word(better)));
  }
  return std::nullopt;
}

Result<StepRequest> read_step(const Arguments& arguments, Runtime usual) {
  auto model = read_model(arguments);
  if (!model) return tl::unexpected(std::move(model.error()));
  auto process = read_process_options(arguments, usual);
  if (!process) return tl::unexpected(std::move(process.error()));
  auto wishes = read_wishes(arguments);
  if (!wishes) return tl::unexpected(std::move(wishes.error()));
  if (auto served = check_layout(process->runtime.value_or(usual), *wishes); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  return StepRequest{.model = *std::move(model),
                     .wishes = *std::move(wishes),
                     .process = *std::move(process),
                     .given = {.gpus = arguments.given("gpus"),
                               .zero = arguments.given("zero"),
                               .fsdp = arguments.given("fsdp"),
                               .offload = arguments.given("offload"),
                               .tf32 = arguments.given("tf32")},
                     .keep_answers = !arguments.flag("no-cache"),
                     .typed = arguments.typed()};
}

Result<PinRequest> read_pins_given(const Arguments& arguments) {
  PinRequest request{.soft_placement = !arguments.flag("no-soft-placement")};
  Diagnostics mistakes;
  const auto given = arguments.assignments("pin");
  if (given.size() > most_pins) {
    return failure(command_line_error(fmt::format("--pin is given more than {} times", most_pins)));
  }
  for (const auto& [pattern, side] : given) {
    auto pin = parse_device_pin(pattern, side, command_line_error("").span);
    if (pin) {
      pin->overrides = true;
      request.pins.push_back(*std::move(pin));
    } else {
      std::ranges::move(pin.error(), std::back_inserter(mistakes));
    }
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return request;
}

// What a plan that is made without a card would not look at.
Diagnostics options_of_a_card(const Arguments& arguments) {
  Diagnostics mistakes;
  for (const std::string_view option :
       {"in-use", "reserve", "context", "cuda-version", "module-loading"}) {
    if (!arguments.given(option)) continue;
    mistakes.push_back(command_line_error(
        fmt::format("--{} is about a card, and --budget alone names none", option),
        "--gpu NAME or --gpu-memory SIZE names one"));
  }
  return mistakes;
}

}  // namespace

Result<CheckRequest> read_check_request(const Arguments& arguments) {
  auto step = read_step(arguments, Runtime::pytorch);
  if (!step) return tl::unexpected(std::move(step.error()));
  auto serving = read_serving(arguments);
  if (!serving) return tl::unexpected(std::move(serving.error()));
  return read_card(arguments, step->model.configs).map([&](CardRequest card) {
    return CheckRequest{.step = *std::move(step),
                        .card = std::move(card),
                        .batch = given_batch(arguments),
                        .eval_batch = arguments.integer("eval-batch"),
                        .serving = *serving,
                        .rule_of_thumb = arguments.flag("rule-of-thumb"),
                        .verbose = arguments.flag("verbose")};
  });
}

Result<BatchRequest> read_batch_request(const Arguments& arguments) {
  auto step = read_step(arguments, Runtime::pytorch);
  if (!step) return tl::unexpected(std::move(step.error()));
  auto card = read_card(arguments, step->model.configs);
  if (!card) return tl::unexpected(std::move(card.error()));
  auto of = read_largest_of(arguments);
  if (!of) return tl::unexpected(std::move(of.error()));
  BatchRequest request{.step = *std::move(step),
                       .card = *std::move(card),
                       .of = of->what,
                       .serving = of->serving,
                       .batch = arguments.integer("at-batch"),
                       .margin = arguments.size("margin"),
                       .global_batch = of_whole_step(arguments.integer("global-batch"))};
  const std::int64_t gpus = request.step.wishes.parallel.gpus;
  if (request.global_batch && !micro_batch_of(*request.global_batch, gpus)) {
    const std::int64_t samples = request.global_batch->samples;
    return failure(command_line_error(
        fmt::format("--global-batch {} cannot be shared equally by {} GPUs", samples, gpus),
        samples < gpus ? fmt::format("the smallest is {}", gpus)
                       : fmt::format("the nearest below is {}", samples / gpus * gpus)));
  }
  if (request.global_batch && request.step.process.pools.virtual_gpus.value_or(1) > 1) {
    return failure(command_line_error("--global-batch and --virtual-gpus cannot be combined"));
  }
  return request;
}

Result<LowerRequest> read_lower_request(const Arguments& arguments) {
  auto model = read_model(arguments);
  if (!model) return tl::unexpected(std::move(model.error()));
  auto wishes = read_wishes(arguments);
  if (!wishes) return tl::unexpected(std::move(wishes.error()));
  LowerRequest request{.model = *std::move(model),
                       .wishes = *std::move(wishes),
                       .batch = given_batch(arguments),
                       .output = text_or_empty(arguments, "output")};
  if (const auto runtime = arguments.text("runtime")) {
    request.runtime = find_runtime(*runtime).value_or(request.runtime);
  }
  if (auto served = check_layout(request.runtime, request.wishes); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  if (!arguments.given("gpu") && !arguments.given("gpu-memory")) return request;
  auto card = read_card(arguments, request.model.configs);
  if (!card) return tl::unexpected(std::move(card.error()));
  request.card = *std::move(card);
  return request;
}

Result<PlanningRequest> read_planning_request(const Arguments& arguments) {
  auto step = read_step(arguments, Runtime::stowage);
  if (!step) return tl::unexpected(std::move(step.error()));
  auto pins = read_pins_given(arguments);
  if (!pins) return tl::unexpected(std::move(pins.error()));
  const std::string placement = text_or_empty(arguments, "placement");
  auto levers = parse_levers(placement);
  if (!levers) {
    const Diagnostic& why = levers.error().front();
    return failure(command_line_error(fmt::format("--placement: {}", why.message), why.hint));
  }
  PlanningRequest request{.step = *std::move(step),
                          .calibration = text_or_empty(arguments, "calibration"),
                          .batch = of_whole_step(given_batch(arguments)),
                          .budget = arguments.size("budget"),
                          .budget_share = arguments.share("budget"),
                          .host = text_or_empty(arguments, "host"),
                          .host_memory = arguments.size("host-memory"),
                          .choice = text_or_empty(arguments, "choose"),
                          .levers = *levers,
                          .frontier = text_or_empty(arguments, "frontier"),
                          .least_pcie = arguments.text("minimize") == "pcie",
                          .time_limit_seconds = *arguments.number("time-limit"),
                          .pins = *std::move(pins),
                          .log_placement = arguments.flag("log-placement"),
                          .run_on_host = arguments.flag("validate"),
                          .output = text_or_empty(arguments, "output")};
  if (!arguments.given("gpu") && !arguments.given("gpu-memory")) {
    if (request.budget || request.budget_share) {
      if (Diagnostics mistakes = options_of_a_card(arguments); !mistakes.empty()) {
        return tl::unexpected(std::move(mistakes));
      }
      request.compute_capability = arguments.number("compute-capability");
      return request;
    }
    return failure(command_line_error("a plan needs --gpu NAME, --gpu-memory SIZE or --budget SIZE",
                                      "stowage gpus lists the names"));
  }
  auto card = read_card(arguments, request.step.model.configs);
  if (!card) return tl::unexpected(std::move(card.error()));
  request.card = *std::move(card);
  return request;
}

Result<ValidateRequest> read_validate_request(const Arguments& arguments) {
  const bool model_only = arguments.flag("model-only");
  for (const std::string_view option : {"on", "steps", "write-calibration"}) {
    if (!model_only || !arguments.given(option)) continue;
    return failure(command_line_error(
        fmt::format("--model-only runs nothing, but --{} asks for a run", option)));
  }
  const std::vector<std::string>& plans = arguments.positionals();
  if (std::ranges::count(plans, "-") > 1) {
    return failure(command_line_error("only one plan can come from stdin"));
  }
  if (plans.size() > 1 && arguments.given("write-calibration")) {
    return failure(command_line_error("--write-calibration is of one plan"));
  }
  return ValidateRequest{.plans = plans,
                         .keep_answers = !arguments.flag("no-cache"),
                         .compare_source = arguments.flag("source"),
                         .run = !model_only,
                         .on = arguments.text("on") == "cuda" ? RunOn::cuda : RunOn::host,
                         .steps = arguments.integer("steps").value_or(1),
                         .calibration = text_or_empty(arguments, "write-calibration"),
                         .insists = arguments.given("on") || arguments.given("steps") ||
                                    arguments.given("write-calibration")};
}

Result<ExplainRequest> read_explain_request(const Arguments& arguments) {
  return ExplainRequest{.plan = arguments.positionals()[0], .name = arguments.positionals()[1]};
}

Result<DiffRequest> read_diff_request(const Arguments& arguments) {
  DiffRequest request{.before = arguments.positionals()[0],
                      .after = arguments.positionals()[1],
                      .verbose = arguments.flag("verbose")};
  if (request.before == "-" && request.after == "-") {
    return failure(command_line_error("both plans cannot come from stdin"));
  }
  return request;
}

Result<ExportRequest> read_export_request(const Arguments& arguments) {
  if (auto mistake = contradicting_extension(arguments)) return failure(*std::move(mistake));
  return read_model(arguments).map([&](ModelRequest model) {
    return ExportRequest{.model = std::move(model), .output = text_or_empty(arguments, "output")};
  });
}

Result<SummaryRequest> read_summary_request(const Arguments& arguments) {
  return read_model(arguments).map([&](ModelRequest model) {
    SummaryRequest request{
        .model = std::move(model),
        .layout = read_layout(arguments),
        .costs = arguments.flag("verbose") || arguments.text("format") != "table"};
    request.batch = given_batch(arguments);
    return request;
  });
}

Result<ProbeRequest> read_probe_request(const Arguments& arguments) {
  const bool calibrate = arguments.flag("calibrate");
  Diagnostics mistakes;
  for (const std::string_view option : {"output", "device"}) {
    if (calibrate || !arguments.given(option)) continue;
    mistakes.push_back(command_line_error(fmt::format("--{} is for probe --calibrate", option)));
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  ProbeRequest request{.calibrate = calibrate,
                       .device = static_cast<int>(*arguments.integer("device")),
                       .names_device = arguments.given("device"),
                       .output = text_or_empty(arguments, "output")};
  if (!calibrate) return request;  // a list of this machine's GPUs needs no catalogue
  auto configs = find_configs(arguments.text("configs"));
  if (!configs) return tl::unexpected(std::move(configs.error()));
  request.configs = *std::move(configs);
  return request;
}

Result<CatalogueRequest> read_catalogue_request(const Arguments& arguments) {
  return find_configs(arguments.text("configs")).map([&](ConfigDirectory configs) {
    return CatalogueRequest{.configs = std::move(configs),
                            .filter = first_positional(arguments),
                            .typed = arguments.typed()};
  });
}

Result<TopicRequest> read_topic_request(const Arguments& arguments) {
  return TopicRequest{.topic = first_positional(arguments),
                      .format = format_of(*arguments.text("format"))};
}

}  // namespace stowage
