#include "cli/options/read_request.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <initializer_list>
#include <iterator>

#include "answers/exporting/pytorch_plan.hpp"
#include "answers/question/shell_word.hpp"
#include "answers/question/version.hpp"
#include "cli/options/command.hpp"
#include "cli/options/planned_question.hpp"
#include "cli/options/read_subject.hpp"
#include "cli/options/serving_request.hpp"
#include "cli/output/terminal.hpp"
#include "estimator/base/name_match.hpp"
#include "estimator/base/read_source.hpp"

namespace stowage {

namespace {

std::string first_positional(const Arguments& arguments) {
  return arguments.positionals().empty() ? std::string() : arguments.positionals().front();
}

// A file that is named as a picture and holds the text of one would open nowhere; one that is named
// as another language is read wrongly.
std::optional<Diagnostic> contradicting_extension(const Arguments& arguments,
                                                  const ExportFormRow& form, bool of_plan) {
  const std::string_view ending =
      of_plan && !form.plan_ending.empty() ? form.plan_ending : form.ending;
  const std::string output = text_or_empty(arguments, "output");
  const std::string extension = lower_case(std::filesystem::path(output).extension().string());
  constexpr std::array<std::string_view, 7> pictures{".svg", ".png", ".pdf", ".ps",
                                                     ".jpg", ".gif", ".webp"};
  constexpr std::array<std::string_view, 12> others{".html", ".json", ".yaml",   ".yml",
                                                    ".csv",  ".toml", ".py",     ".sh",
                                                    ".dot",  ".md",   ".pickle", ".pftrace"};
  const bool is_drawing = form.form == ExportForm::dot;
  if (is_drawing && std::ranges::find(pictures, extension) != pictures.end()) {
    return command_line_error(
        fmt::format("dot is a text for graphviz, and '{}' is named as a picture", output),
        fmt::format("{} | dot -T{} -o {}", advice(arguments.typed(), "export"), extension.substr(1),
                    shell_word(output)));
  }
  if (extension == ending || (extension == ".yml" && ending == ".yaml")) {
    return std::nullopt;
  }
  if (std::ranges::find(others, extension) != others.end() ||
      std::ranges::find(pictures, extension) != pictures.end()) {
    const std::string better = std::filesystem::path(output).replace_extension(ending).string();
    return command_line_error(
        fmt::format("what is written is {}, and '{}' is named as something else",
                    is_drawing ? std::string("dot") : fmt::format("a file {}", ending), output),
        fmt::format("{} -o {}", advice(arguments.typed(), "export", {.repeat = {"to"}}),
                    shell_word(better)));
  }
  return std::nullopt;
}

/// The error for a file that is no text, where stdout would have it on a terminal or within JSON.
std::optional<Diagnostic> unprintable_form(const Arguments& arguments, const ExportFormRow& form) {
  const std::string output = text_or_empty(arguments, "output");
  if (!form.is_binary || (!output.empty() && output != "-")) return std::nullopt;
  const bool is_json = format_of(*arguments.text("format")) == Format::json;
  if (!is_json && !is_terminal(STDOUT_FILENO)) return std::nullopt;
  return command_line_error(
      fmt::format("{} is no text, and stdout is {}", form.name, is_json ? "JSON" : "a terminal"),
      fmt::format("{} -o step{}", advice(arguments.typed(), "export", {.repeat = {"to"}}),
                  form.ending));
}

/// The options of a step that were given to a form that has none.
Diagnostics idle_step_options(const Arguments& arguments, const ExportFormRow& form, bool of_plan) {
  constexpr std::array<std::string_view, 4> of_all{"to", "output", "configs", "format"};
  constexpr std::array<std::string_view, 6> of_model{"seq", "lora", "base",
                                                     "set", "loss", "allow-unknown"};
  Diagnostics mistakes;
  for (const std::string_view option : find_command("export")->options) {
    if (!arguments.given(option) || std::ranges::find(of_all, option) != of_all.end()) continue;
    if (!of_plan && std::ranges::find(of_model, option) != of_model.end()) continue;
    mistakes.push_back(command_line_error(
        of_plan ? fmt::format("--{} is of a model; a plan says its step itself", option)
                : fmt::format("--{} says nothing about {}", option, form.name)));
  }
  return mistakes;
}

/// What is sized: a step, or served passes of it, on a card.
struct SizedSubject {
  StepQuestion step;
  std::optional<ServingSettings> serving;
  CardQuestion card;
};

Result<SizedSubject> read_sized_subject(const Arguments& arguments) {
  auto step = read_step(arguments, default_runtime);
  if (!step) return tl::unexpected(std::move(step.error()));
  auto serving = read_serving(arguments);
  if (!serving) return tl::unexpected(std::move(serving.error()));
  auto card = read_card(arguments, step->model.configs);
  if (!card) return tl::unexpected(std::move(card.error()));
  return SizedSubject{*std::move(step), *std::move(serving), *std::move(card)};
}

/// The models of a table, or its only one; `named` as the command line does.
TableQuestion table_of(const Arguments& arguments, StepQuestion step, CardQuestion card,
                       TableCell cell) {
  return {.step = std::move(step),
          .models = arguments.positionals(),
          .cards = std::move(card),
          .cell = cell};
}

bool asks_for_table(const Arguments& arguments, const StepQuestion& step,
                    const CardQuestion& card) {
  return asks_for_table(arguments.positionals(), step.model.configs, card);
}

Diagnostics options_of_one_answer(const Arguments& arguments,
                                  std::initializer_list<std::string_view> options) {
  Diagnostics mistakes;
  for (const std::string_view option : options) {
    if (!arguments.given(option)) continue;
    mistakes.push_back(command_line_error(fmt::format("--{} is of one model on one card", option)));
  }
  return mistakes;
}

/// Of several models or cards.
Result<CheckRequest> read_check_table(const Arguments& arguments, StepQuestion step,
                                      CardQuestion card,
                                      const std::optional<ServingSettings>& serving) {
  if (Diagnostics mistakes =
          options_of_one_answer(arguments, {"eval-batch", "rule-of-thumb", "report"});
      !mistakes.empty()) {
    return tl::unexpected(std::move(mistakes));
  }
  const TableCell cell = serving ? TableCell(TableOfServing{*serving})
                                 : TableCell(TableAtBatch{given_batch(arguments)});
  return CheckRequest{.question = table_of(arguments, std::move(step), std::move(card), cell),
                      .verbose = arguments.flag("verbose"),
                      .typed = arguments.typed()};
}

}  // namespace

Result<CheckRequest> read_check_request(const Arguments& arguments) {
  auto subject = read_sized_subject(arguments);
  if (!subject) return tl::unexpected(std::move(subject.error()));
  auto& [step, serving, card] = *subject;
  if (asks_for_table(arguments, step, card)) {
    return read_check_table(arguments, std::move(step), std::move(card), serving);
  }
  CheckRequest request{.verbose = arguments.flag("verbose"),
                       .page = text_or_empty(arguments, "report"),
                       .typed = arguments.typed()};
  if (serving) {
    if (arguments.given("report")) {
      return failure(
          command_line_error("--report is of one step, and --context-length sizes two passes"));
    }
    request.question = ServingQuestion{std::move(step), std::move(card), *serving};
    return request;
  }
  request.question = CheckQuestion{.step = std::move(step),
                                   .card = std::move(card),
                                   .batch = given_batch(arguments),
                                   .eval_batch = arguments.integer("eval-batch"),
                                   .rule_of_thumb = arguments.flag("rule-of-thumb")};
  return request;
}

namespace {

/// The batch of all GPUs and steps that is to be reached. Errors: the GPUs cannot share it.
Result<std::optional<WholeBatch>> read_global_batch(const Arguments& arguments,
                                                    const StepQuestion& step) {
  const auto global_batch = of_whole_step(arguments.integer("global-batch"));
  if (!global_batch) return global_batch;
  const std::int64_t gpus = step.wishes.parallel.gpus;
  if (!micro_batch_of(*global_batch, gpus)) {
    const std::int64_t samples = global_batch->samples;
    return failure(command_line_error(
        fmt::format("--global-batch {} cannot be shared equally by {} GPUs", samples, gpus),
        samples < gpus ? fmt::format("the smallest is {}", gpus)
                       : fmt::format("the nearest below is {}", samples / gpus * gpus)));
  }
  if (step.process.pools.virtual_gpus.value_or(1) > 1) {
    return failure(command_line_error("--global-batch and --virtual-gpus cannot be combined"));
  }
  return global_batch;
}

}  // namespace

Result<BatchRequest> read_batch_request(const Arguments& arguments) {
  auto step = read_step(arguments, default_runtime);
  if (!step) return tl::unexpected(std::move(step.error()));
  auto card = read_card(arguments, step->model.configs);
  if (!card) return tl::unexpected(std::move(card.error()));
  const auto of = read_largest_of(arguments);
  if (!of) return tl::unexpected(of.error());
  const auto global_batch = read_global_batch(arguments, *step);
  if (!global_batch) return tl::unexpected(global_batch.error());
  const auto margin = arguments.size("margin");
  const auto batch = arguments.integer("at-batch");
  if (asks_for_table(arguments, *step, *card)) {
    if (Diagnostics mistakes = options_of_one_answer(arguments, {"global-batch", "report"});
        !mistakes.empty()) {
      return tl::unexpected(std::move(mistakes));
    }
    const TableCell cell = of->what
                               ? TableCell(TableOfValues{*of->what, of->serving, batch, margin})
                               : TableCell(TableOfBatches{margin});
    return BatchRequest{table_of(arguments, *std::move(step), *std::move(card), cell)};
  }
  if (of->what && arguments.given("report")) {
    return failure(command_line_error(
        fmt::format("--report is of the largest batch, and this is a search for the largest {}",
                    searched_quantity(*of->what).noun)));
  }
  if (of->what) {
    return BatchRequest{LargestValueQuestion{.step = *std::move(step),
                                             .card = *std::move(card),
                                             .of = *of->what,
                                             .serving = of->serving,
                                             .batch = batch,
                                             .margin = margin}};
  }
  return BatchRequest{BatchQuestion{.step = *std::move(step),
                                    .card = *std::move(card),
                                    .margin = margin,
                                    .global_batch = *global_batch},
                      text_or_empty(arguments, "report")};
}

Result<LowerRequest> read_lower_request(const Arguments& arguments) {
  auto model = read_model(arguments);
  if (!model) return tl::unexpected(std::move(model.error()));
  auto wishes = read_wishes(arguments);
  if (!wishes) return tl::unexpected(std::move(wishes.error()));
  LowerRequest request{.question = {.model = *std::move(model),
                                    .wishes = *std::move(wishes),
                                    .batch = given_batch(arguments),
                                    .written_by = fmt::format("stowage {}", program_version)},
                       .output = text_or_empty(arguments, "output")};
  LowerQuestion& question = request.question;
  if (const auto runtime = arguments.text("runtime")) {
    question.runtime = find_runtime(*runtime).value_or(question.runtime);
  }
  if (auto served = check_layout(question.runtime, question.wishes); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  if (!arguments.given("gpu") && !arguments.given("gpu-memory")) return request;
  auto card = read_card(arguments, question.model.configs);
  if (!card) return tl::unexpected(std::move(card.error()));
  question.card = *std::move(card);
  return request;
}

namespace {

/// Which of the plans are for PyTorch, and what each was made of.
Result<void> find_plans_for_pytorch(const Arguments& arguments, ValidateQuestion& question) {
  Diagnostics mistakes;
  for (const std::string& file : question.plans) {
    auto source = read_source(file, FileKind::plan);
    if (!source) continue;  // whoever reads all plans says so
    question.texts.emplace(file, *source);
    auto named = pytorch_plan_of(*source);
    if (!named) {
      std::ranges::move(named.error(), std::back_inserter(mistakes));
      continue;
    }
    if (!*named) continue;
    auto made_of = question_of_plan(**named, text_or_empty(arguments, "step"), arguments);
    if (!made_of) {
      std::ranges::move(made_of.error(), std::back_inserter(mistakes));
      continue;
    }
    made_of->step.keep_answers = question.keep_answers;
    question.for_pytorch.emplace(
        file, PytorchPlanQuestion{.named = **std::move(named), .made_of = *std::move(made_of)});
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  if (!arguments.given("step") || (question.plans.size() == 1 && !question.for_pytorch.empty())) {
    return {};
  }
  return failure(command_line_error("--step is of one plan, and of one for PyTorch"));
}

}  // namespace

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
  const bool calibrates = arguments.given("write-calibration");
  ValidateRequest request{
      .question = {.plans = plans,
                   .keep_answers = !arguments.flag("no-cache"),
                   .compare_source = arguments.flag("source"),
                   .run = !model_only,
                   .on = arguments.text("on") == "cuda" ? RunOn::cuda : RunOn::host,
                   .steps = arguments.integer("steps").value_or(1),
                   .measures_anew = calibrates,
                   .insists = arguments.given("on") || arguments.given("steps") || calibrates},
      .calibration = text_or_empty(arguments, "write-calibration")};
  if (auto found = find_plans_for_pytorch(arguments, request.question); !found) {
    return tl::unexpected(std::move(found.error()));
  }
  return request;
}

Result<ExplainQuestion> read_explain_request(const Arguments& arguments) {
  return ExplainQuestion{.plan = arguments.positionals()[0], .name = arguments.positionals()[1]};
}

namespace {

/// The card, the step and the cache of a configuration that is sized.
Result<ExportQuestion> read_sized_export(const Arguments& arguments) {
  auto subject = read_sized_subject(arguments);
  if (!subject) return tl::unexpected(std::move(subject.error()));
  if (names_several_cards(subject->card)) {
    return failure(
        command_line_error("what is exported is sized on one card", "--gpu takes one name here"));
  }
  return ExportQuestion{.step = std::move(subject->step),
                        .card = std::move(subject->card),
                        .batch = given_batch(arguments),
                        .serving = subject->serving};
}

/// What a plan for PyTorch was made of, to be sized as another program runs it.
Result<ExportQuestion> read_planned_export(NamedPytorchPlan named, const Arguments& typed) {
  const auto words = words_of(named, "export", typed);
  if (!words) return tl::unexpected(words.error());
  auto question = read_sized_export(*words);
  if (!question) return question;
  question->plan = std::move(named);
  return question;
}

}  // namespace

Result<ExportRequest> read_export_request(const Arguments& arguments) {
  const ExportFormRow& form = *find_export_form(*arguments.text("to"));
  const bool of_plan = names_plan(arguments.positionals().front());
  auto pytorch_plan = find_pytorch_plan(arguments.positionals().front());
  if (!pytorch_plan) return tl::unexpected(std::move(pytorch_plan.error()));
  if (auto mistake = contradicting_extension(arguments, form, of_plan && !*pytorch_plan)) {
    return failure(*std::move(mistake));
  }
  if (auto mistake = unprintable_form(arguments, form)) return failure(*std::move(mistake));
  ExportRequest request{.format = format_of(*arguments.text("format")),
                        .output = text_or_empty(arguments, "output")};
  const bool is_asked_again =
      *pytorch_plan && takes_pytorch_plans(form) && (*pytorch_plan)->plan.question;
  if (form.is_sized && !of_plan) {
    auto question = read_sized_export(arguments);
    if (!question) return tl::unexpected(std::move(question.error()));
    request.question = *std::move(question);
  } else {
    if (Diagnostics mistakes = idle_step_options(arguments, form, of_plan); !mistakes.empty()) {
      return tl::unexpected(std::move(mistakes));
    }
    auto model = read_model(arguments);
    if (!model) return tl::unexpected(std::move(model.error()));
    request.question.step.model = *std::move(model);
  }
  if (is_asked_again) {
    auto question = read_planned_export(**std::move(pytorch_plan), arguments);
    if (!question) return tl::unexpected(std::move(question.error()));
    request.question = *std::move(question);
  }
  request.question.form = form.form;
  request.question.written_by = fmt::format("stowage {}", program_version);
  return request;
}

Result<SummaryQuestion> read_summary_request(const Arguments& arguments) {
  return read_model(arguments).map([&](ModelQuestion model) {
    return SummaryQuestion{
        .model = std::move(model),
        .batch = given_batch(arguments),
        .layout = read_layout(arguments),
        .costs = arguments.flag("verbose") || arguments.text("format") != "table"};
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
  return TopicRequest{.all = arguments.flag("all"),
                      .topic = first_positional(arguments),
                      .format = format_of(*arguments.text("format"))};
}

}  // namespace stowage
