#include "answers/exporting/export.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "answers/exporting/engine_files.hpp"
#include "answers/question/question_error.hpp"
#include "answers/subject/asked_model.hpp"
#include "answers/subject/file_kind.hpp"
#include "answers/subject/step_setup.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/formats/import_model.hpp"
#include "planner/export/dot.hpp"
#include "planner/plan/plan_file.hpp"

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
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(argument, ignored);
  if (!is_file || stowage_file(read_file_head(argument).first_bytes) != StowageFile::plan) {
    return SourceTextPtr();
  }
  return read_source(argument, FileKind::plan);
}

ExportAnswer plain_answer(ExportForm form, std::string text) {
  ExportAnswer found;
  found.form = form;
  found.body = std::move(text);
  return found;
}

Result<ExportAnswer> export_plan(const ExportQuestion& question, SourceTextPtr source) {
  const ExportFormRow& row = row_of(question.form);
  if (!row.of_plan) {
    return failure(Diagnostic{
        .message = fmt::format("{}'s settings are of a model, and this is a plan", row.title),
        .span = {.source = std::move(source)},
        .hint = "name the model that it was made of"});
  }
  const auto plan = read_plan(std::move(source));
  if (!plan) return tl::unexpected(plan.error());
  auto text = export_dot(*plan);
  if (!text) return tl::unexpected(std::move(text.error()));
  return plain_answer(question.form, *std::move(text));
}

Result<ExportAnswer> draw_model(const ExportQuestion& question, FoundModel source) {
  if (auto mistake = program_to_export(*source.source)) return failure(*std::move(mistake));
  const auto model = load_asked_model(std::move(source), question.step.model);
  if (!model) return tl::unexpected(model.error());
  return plain_answer(question.form, export_dot(model->graph));
}

Result<void> check_training(const ExportFormRow& row, const StepSetup& setup) {
  if (setup.step.settings.runtime != Runtime::pytorch) {
    return failure(question_error(fmt::format("`runtime` {}: {} runs PyTorch",
                                              to_string(setup.step.settings.runtime), row.title)));
  }
  if (setup.step.document.graph->settings.mode != Mode::train) {
    return failure(question_error(
        fmt::format("{}'s settings are of training, and this is an inference", row.title)));
  }
  return {};
}

Result<EngineFile> write_engine_file(ExportForm form, const EngineStep& step) {
  switch (form) {
    case ExportForm::deepspeed:
      return deepspeed_file(step);
    default:
      break;
  }
  return failure(fmt::format("{} has no settings of training", row_of(form).name));
}

std::vector<std::string> head_of(const ExportQuestion& question, const std::string& model,
                                 const Verdict& verdict, const Card& card,
                                 const ExportAnswer& found) {
  const auto [needed, available] = format_apart(verdict.device_bytes, verdict.available_bytes);
  std::vector<std::string> lines{
      fmt::format("Written by {} for {} on {}.", question.written_by, model, card.name),
      verdict.fits ? fmt::format("It fits: {} of {} available.", needed, available)
                   : fmt::format("It does not fit: {} wanted, {} available.", needed, available)};
  const auto list = [&](std::string_view title, const std::vector<std::string>& items) {
    if (items.empty()) return;
    lines.emplace_back(title);
    for (const std::string& item : items) lines.push_back("  " + item);
  };
  list("Counted, and not said by this file:", found.unsaid);
  list("Beside the file:", found.remarks);
  list("Not counted:", found.uncounted);
  return lines;
}

Result<ExportAnswer> export_step(const ExportQuestion& question) {
  const ExportFormRow& row = row_of(question.form);
  const CheckQuestion check{.step = question.step, .card = *question.card, .batch = question.batch};
  const auto setup = set_up_check(check);
  if (!setup) return tl::unexpected(setup.error());
  if (auto served = check_training(row, *setup); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  auto sizes = answer(check, *setup);
  if (!sizes) return tl::unexpected(std::move(sizes.error()));
  const EngineStep step = engine_step(question.step, setup->step, sizes->batch);
  auto file = write_engine_file(question.form, step);
  if (!file) return tl::unexpected(std::move(file.error()));
  ExportAnswer found;
  found.form = question.form;
  found.unsaid = unsaid_settings(step, *file);
  found.body = std::move(file->body);
  found.remarks = std::move(file->remarks);
  found.uncounted = std::move(file->uncounted);
  found.head = head_of(question, step.model, sizes->verdict(), sizes->card, found);
  found.notes = sizes->notes;
  found.sizes = *std::move(sizes);
  return found;
}

}  // namespace

std::optional<Verdict> ExportAnswer::verdict() const {
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
  if (comment.empty()) return answer.body;
  std::string text;
  for (const std::string& line : answer.head) text += fmt::format("{} {}\n", comment, line);
  return text + answer.body;
}

Result<ExportAnswer> answer(const ExportQuestion& question) {
  auto source = source_of_plan(question);
  if (!source) return tl::unexpected(std::move(source.error()));
  if (*source && stowage_file((*source)->text) == StowageFile::plan) {
    return export_plan(question, *std::move(source));
  }
  const ExportFormRow& row = row_of(question.form);
  if (!row.of_model) {
    return failure(question_error(fmt::format("{} is written of a plan, and '{}' is none", row.name,
                                              question.step.model.source),
                                  "stowage plan makes one"));
  }
  if (row.is_sized) return export_step(question);
  if (*source) return draw_model(question, {.source = *std::move(source)});
  return find_asked_model(question.step.model).and_then([&](FoundModel&& found) {
    return draw_model(question, std::move(found));
  });
}

}  // namespace stowage
