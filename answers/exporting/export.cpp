#include "answers/exporting/export.hpp"

#include <fmt/format.h>

#include <utility>

#include "answers/exporting/engine_files.hpp"
#include "answers/exporting/llama_cpp_plan.hpp"
#include "answers/exporting/pictures.hpp"
#include "answers/exporting/planned_step.hpp"
#include "answers/exporting/pytorch_plan.hpp"
#include "answers/question/question_error.hpp"
#include "answers/subject/asked_model.hpp"
#include "answers/subject/file_kind.hpp"
#include "answers/subject/step_setup.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/recorded/missing_update.hpp"
#include "planner/export/dot.hpp"
#include "planner/export/plan_text.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/pytorch/pytorch_plan_file.hpp"

namespace stowage {

namespace {

/// The source, where it may be a plan: a plan's file, or stdin, which is read once; null: it is
/// none.
Result<SourceTextPtr> source_of_plan(const ExportQuestion& question) {
  const std::string& argument = question.step.model.source;
  if (argument == "-") {
    const ExportFormRow& row = row_of(question.form);
    if (!row.of_plan || row.is_sized) return SourceTextPtr();
    return read_source(argument, FileKind::plan);
  }
  if (!names_plan(argument)) return SourceTextPtr();
  return read_source(argument, FileKind::plan);
}

ExportAnswer plain_answer(ExportForm form, std::string text) {
  ExportAnswer found;
  found.form = form;
  found.body = std::move(text);
  return found;
}

/// The comment on the file's head: for what it was written, whether that fits, and the lists.
void add_head(const ExportQuestion& question, const std::string& model, const Card& card,
              ExportAnswer& found) {
  found.head = {fmt::format("Written by {} for {} on {}.", question.written_by, model, card.name)};
  if (const auto verdict = found.verdict()) {
    const auto [needed, available] = format_apart(verdict->device_bytes, verdict->available_bytes);
    found.head.push_back(
        verdict->fits
            ? fmt::format("It fits: {} of {} available.", needed, available)
            : fmt::format("It does not fit: {} wanted, {} available.", needed, available));
  }
  const auto list = [&](std::string_view title, const std::vector<std::string>& items) {
    if (items.empty()) return;
    found.head.emplace_back(title);
    for (const std::string& item : items) found.head.push_back("  " + item);
  };
  list("Counted, and not said by this file:", found.unsaid);
  list("Beside the file:", found.remarks);
  list("Not counted:", found.uncounted);
}

/// The file of a model that was sized, without its head.
ExportAnswer with_file(const ExportQuestion& question, EngineFile file) {
  ExportAnswer found = plain_answer(question.form, std::move(file.body));
  found.unsaid = std::move(file.unsaid);
  found.remarks = std::move(file.remarks);
  found.uncounted = std::move(file.uncounted);
  return found;
}

Result<ExportAnswer> draw_model(const ExportQuestion& question, FoundModel source) {
  if (auto mistake = program_to_export(*source.source)) return failure(*std::move(mistake));
  const auto model = load_asked_model(std::move(source), question.step.model);
  if (!model) return tl::unexpected(model.error());
  return plain_answer(question.form, export_dot(model->graph));
}

Diagnostic no_training(const ExportFormRow& row) {
  return question_error(
      fmt::format("{}'s settings are of training, and this is an inference", row.title));
}

Result<void> check_training(const ExportFormRow& row, const StepSetup& setup) {
  if (setup.step.settings.runtime != Runtime::pytorch) {
    return failure(question_error(fmt::format("`runtime` {}: {} runs PyTorch",
                                              to_string(setup.step.settings.runtime), row.title)));
  }
  if (setup.step.document.graph->settings.mode != Mode::train) {
    return failure(no_training(row));
  }
  const auto missing = missing_update(setup.step.document);
  if (missing && missing->is_whole) {
    return failure(question_error(
        fmt::format("the step has no update of its parameters, and {} trains with one", row.title),
        "`optimizer` NAME adds one"));
  }
  return {};
}

Result<EngineFile> write_engine_file(ExportForm form, const EngineStep& step) {
  switch (form) {
    case ExportForm::deepspeed:
      return deepspeed_file(step);
    case ExportForm::fsdp:
      return fsdp_file(step);
    case ExportForm::accelerate:
      return accelerate_file(step);
    case ExportForm::torchtitan:
      return torchtitan_file(step);
    case ExportForm::megatron:
      return megatron_file(step);
    case ExportForm::axolotl:
      return axolotl_file(step);
    case ExportForm::trl:
      return trl_file(step);
    default:
      break;
  }
  return failure(fmt::format("{} has no settings of training", row_of(form).name));
}

/// What the program does where the question leaves FSDP's reductions open: accelerate reduces in
/// the format of the gathered parameters.
std::optional<DataType> usual_reduction(ExportForm form, const StepDocument& document) {
  const FullyShard& fsdp = document.graph->settings.parallel.fsdp;
  const bool by_accelerate = form != ExportForm::torchtitan && form != ExportForm::megatron;
  if (!by_accelerate || !fsdp.on || fsdp.reduce_type || !has_master_weights(document.precision)) {
    return std::nullopt;
  }
  return float_type(document.precision);
}

/// Errors: set_up_check's.
Result<StepSetup> set_up_export(CheckQuestion& check, ExportForm form) {
  auto setup = set_up_check(check);
  if (!setup) return setup;
  const auto reduction = usual_reduction(form, setup->step.document);
  if (!reduction || setup->step.model == nullptr) return setup;
  check.step.wishes.parallel.fsdp.reduce_type = reduction;
  return set_up_check(check);
}

/// The configuration of a step that is set up.
Result<ExportAnswer> export_setup(const ExportQuestion& question, const PlannedStep& planned) {
  const auto& [check, setup, reruns_blocks, unexpressed] = planned;
  if (auto served = check_training(row_of(question.form), setup); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  auto sizes = answer(check, setup);
  if (!sizes) return tl::unexpected(std::move(sizes.error()));
  EngineStep step = engine_step(check.step, setup.step, sizes->batch);
  if (reruns_blocks) add_rerun_blocks(step);
  auto file = write_engine_file(question.form, step);
  if (!file) return tl::unexpected(std::move(file.error()));
  file->unsaid = unsaid_settings(step, *file);
  std::vector<std::string> remarks;
  remarks.reserve(unexpressed.size());
  for (const std::string& line : unexpressed) {
    remarks.push_back(fmt::format("of the plan it cannot say {}{}", line,
                                  question.plan ? "; stowage.apply carries it out" : ""));
  }
  file->remarks.insert(file->remarks.begin(), remarks.begin(), remarks.end());
  const std::vector<std::string> own_head = file->head;
  ExportAnswer found = with_file(question, *std::move(file));
  found.notes = sizes->notes;
  const Card card = sizes->card;
  found.sizes = *std::move(sizes);
  add_head(question, step.model, card, found);
  found.head.insert(found.head.end(), own_head.begin(), own_head.end());
  return found;
}

Result<ExportAnswer> export_step(const ExportQuestion& question) {
  if (question.form == ExportForm::llama_cpp) {
    return failure(
        question_error("llama.cpp serves: how long is a context?", "`context_length` N says it"));
  }
  CheckQuestion check{.step = question.step, .card = *question.card, .batch = question.batch};
  auto setup = set_up_export(check, question.form);
  if (!setup) return tl::unexpected(std::move(setup.error()));
  return export_setup(question, {.question = std::move(check), .setup = *std::move(setup)});
}

Result<ExportAnswer> export_planned_step(const ExportQuestion& question, const Plan& plan) {
  if (plan.step.graph->settings.mode != Mode::train) {
    return failure(no_training(row_of(question.form)));
  }
  const bool moves_activations =
      question.form == ExportForm::trl || question.form == ExportForm::axolotl;
  const auto planned = set_up_planned_step(plan, moves_activations);
  if (!planned) return tl::unexpected(planned.error());
  return export_setup(question, *planned);
}

/// Errors: also a form that plans for PyTorch are not exported to; a plan whose model is not named.
Result<ExportAnswer> export_pytorch_plan(const ExportQuestion& question) {
  const ExportFormRow& row = row_of(question.form);
  const NamedPytorchPlan& named = *question.plan;
  const auto refused = [&](std::string message, std::string hint) {
    return failure(Diagnostic{
        .message = std::move(message), .span = {.source = named.source}, .hint = std::move(hint)});
  };
  if (!takes_pytorch_plans(row)) {
    return refused(
        fmt::format("a plan for PyTorch is not exported to {}", row.name),
        "stowage.apply carries it out; the forms of engines that train take its settings");
  }
  if (!named.plan.question || !question.card) {
    return refused(
        "the plan does not say of which file or model it was made, so that nothing can be sized",
        "stowage plan writes that into a plan of a file or of a model that is named");
  }
  const auto planned = set_up_hooked_step(question);
  if (!planned) return tl::unexpected(planned.error());
  auto found = export_setup(question, *planned);
  if (found) found->of_plan = true;
  return found;
}

Result<PlanText> plan_text(ExportForm form, const Plan& plan) {
  switch (form) {
    case ExportForm::dot:
      return export_dot(plan).map(
          [](std::string&& text) { return PlanText{.body = std::move(text)}; });
    case ExportForm::json:
      return plan_json(plan);
    case ExportForm::tensorflow:
      return tensorflow_placement(plan);
    case ExportForm::accelerate:
      return device_map(plan);
    case ExportForm::llama_cpp:
      return llama_cpp_plan(plan);
    case ExportForm::trace:
    case ExportForm::svg:
    case ExportForm::markdown:
      return picture_of_plan(form, plan);
    default:
      break;
  }
  return failure(fmt::format("{} takes no plan", row_of(form).name));
}

Result<ExportAnswer> export_plan(const ExportQuestion& question, SourceTextPtr source) {
  const ExportFormRow& row = row_of(question.form);
  if (!row.of_plan) {
    return failure(Diagnostic{
        .message = row.is_picture
                       ? fmt::format("{} is of a model's step, and this is a plan", row.name)
                       : fmt::format("{}'s settings are of a model, and this is a plan", row.title),
        .span = {.source = std::move(source)},
        .hint = "name the model that it was made of, with its settings"});
  }
  const auto plan = read_plan(std::move(source));
  if (!plan) return tl::unexpected(plan.error());
  const bool has_own_text = !row.is_sized || row.is_picture ||
                            question.form == ExportForm::accelerate ||
                            question.form == ExportForm::llama_cpp;
  if (!has_own_text) return export_planned_step(question, *plan);
  auto text = plan_text(question.form, *plan);
  if (!text) return tl::unexpected(std::move(text.error()));
  ExportAnswer found = plain_answer(question.form, std::move(text->body));
  found.of_plan = true;
  found.remarks = std::move(text->remarks);
  const GpuBudget& budget = plan->inputs.budget;
  if (text->gpu_peak && budget.is_limited()) {
    found.placed = Verdict{.fits = budget.fits(*text->gpu_peak),
                           .device_bytes = *text->gpu_peak,
                           .available_bytes = budget.bytes,
                           .headroom_bytes = budget.bytes - *text->gpu_peak};
    found.uncounted = {
        "what the runtime takes beside the tensors: its context, its libraries, what its allocator "
        "keeps"};
  }
  if (!row.comment.empty() && row.plan_ending.empty()) {
    add_head(question, plan->inputs.model_name, plan->inputs.card, found);
  }
  return found;
}

Result<ExportAnswer> export_serving(const ExportQuestion& question) {
  if (row_of(question.form).is_picture) {
    return failure(question_error(
        fmt::format("`context_length` is of serving, and {} shows a step: one pass over the batch",
                    row_of(question.form).name),
        "without `context_length` the model's step is shown"));
  }
  if (question.form != ExportForm::llama_cpp) {
    return failure(question_error(
        fmt::format("`context_length` is of serving, and {}'s settings are of training",
                    row_of(question.form).title),
        "`to` llama.cpp serves"));
  }
  auto sizes = answer(ServingQuestion{question.step, *question.card, *question.serving});
  if (!sizes) return tl::unexpected(std::move(sizes.error()));
  auto placed = llama_cpp_file(*sizes, question.step);
  if (!placed) return tl::unexpected(std::move(placed.error()));
  ExportAnswer found = with_file(question, std::move(placed->file));
  found.placed = placed->verdict;
  found.notes = sizes->notes;
  add_head(question, sizes->step.model, sizes->card, found);
  found.sizes = *std::move(sizes);
  return found;
}

}  // namespace

std::optional<Verdict> ExportAnswer::verdict() const {
  if (placed) return placed;
  if (const auto* check = std::get_if<CheckAnswer>(&sizes)) return check->verdict();
  if (const auto* serving = std::get_if<ServingAnswer>(&sizes)) {
    return verdict_of(serving->deciding().report);
  }
  return std::nullopt;
}

bool ExportAnswer::fits() const {
  const auto found = verdict();
  return !found || found->fits;
}

std::string whole_text(const ExportAnswer& answer) {
  const std::string_view comment = row_of(answer.form).comment;
  if (comment.empty() || answer.head.empty()) return answer.body;
  std::string text;
  for (const std::string& line : answer.head) text += fmt::format("{} {}\n", comment, line);
  return text + answer.body;
}

Result<ExportAnswer> answer(const ExportQuestion& question) {
  if (question.plan) return export_pytorch_plan(question);
  auto source = source_of_plan(question);
  if (!source) return tl::unexpected(std::move(source.error()));
  if (*source && stowage_file((*source)->text) == StowageFile::plan) {
    return export_plan(question, *std::move(source));
  }
  if (*source && stowage_file((*source)->text) == StowageFile::pytorch_plan) {
    auto plan = read_pytorch_plan(*source);
    if (!plan) return tl::unexpected(std::move(plan.error()));
    ExportQuestion named{.form = question.form,
                         .plan = NamedPytorchPlan{*std::move(source), *std::move(plan)}};
    return export_pytorch_plan(named);
  }
  const ExportFormRow& row = row_of(question.form);
  if (!row.of_model) {
    return failure(question_error(fmt::format("{} is written of a plan, and '{}' is none", row.name,
                                              question.step.model.source),
                                  "stowage plan makes one"));
  }
  if (row.is_picture && !question.serving) return picture_of_step(question);
  if (row.is_sized) return question.serving ? export_serving(question) : export_step(question);
  if (*source) return draw_model(question, {.source = *std::move(source)});
  return find_asked_model(question.step.model).and_then([&](FoundModel&& found) {
    return draw_model(question, std::move(found));
  });
}

}  // namespace stowage
