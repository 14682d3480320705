// A model or a plan in the words of another program.
//
//   ExportQuestion -> ExportAnswer: the file's text, what it cannot say, what memory it then takes
//
// Of a model the settings are those of `check` and of serving, and the configuration that is
// written is sized by the same road, so that the answer says what the other program will take by
// our count. Of a plan its decisions are written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "answers/question/card_question.hpp"
#include "answers/question/step_question.hpp"
#include "answers/sizing/check.hpp"
#include "answers/sizing/serving.hpp"
#include "answers/subject/named_plan.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

enum class ExportForm : std::uint8_t {
  dot,
  json,
  tensorflow,
  deepspeed,
  fsdp,
  accelerate,
  torchtitan,
  megatron,
  axolotl,
  trl,
  llama_cpp,
  trace,
  memory_snapshot,
  svg,
  markdown,
};

/// What is exported to a form, in which language its file is written.
struct ExportFormRow {
  ExportForm form;
  std::string_view name;              ///< "llama.cpp"
  std::string_view title;             ///< whose configuration it is: "DeepSpeed"
  std::string_view ending;            ///< of the file: ".json"
  std::string_view plan_ending = {};  ///< of a plan's file, where that is of another language
  std::string_view comment = {};  ///< what begins a line of comment; empty: the language has none
  bool of_plan = false;           ///< a plan's file can be exported to it
  bool of_model = false;          ///< a model can
  bool is_sized = false;          ///< of a model: its step, or its serving, is sized on a card
  bool is_picture = false;        ///< it is no configuration: it shows a step, or a plan
  bool is_binary = false;         ///< the file is no text
};
[[nodiscard]] const std::vector<ExportFormRow>& export_forms();
[[nodiscard]] const ExportFormRow& row_of(ExportForm form);
[[nodiscard]] const ExportFormRow* find_export_form(std::string_view name);  ///< null: unknown

struct ExportQuestion {
  ExportForm form = ExportForm::dot;
  StepQuestion step;                     ///< its model's source may also be a plan's file
  std::optional<NamedPytorchPlan> plan;  ///< `step` and `card` are those that it was made of
  std::optional<CardQuestion> card;      ///< of a form that is sized
  std::optional<std::int64_t> batch;
  std::optional<ServingSettings> serving;
  std::string written_by;  ///< the program: "stowage 0.1.0"
};

struct ExportAnswer {
  ExportForm form = ExportForm::dot;
  bool of_plan = false;
  std::vector<std::string> head;  ///< lines of comment, where the file's language has them
  std::string body;               ///< the file without them
  /// Settings that were counted and that the file does not say, a line each.
  std::vector<std::string> unsaid;
  std::vector<std::string> remarks;    ///< what else the file cannot say
  std::vector<std::string> uncounted;  ///< what the program does with memory that is not counted
  std::variant<std::monostate, CheckAnswer, ServingAnswer> sizes;
  std::optional<Verdict> placed;  ///< where only a part of what was sized stays on the GPU
  Diagnostics notes;

  [[nodiscard]] std::optional<Verdict> verdict() const;
  [[nodiscard]] bool fits() const;  ///< true where nothing is sized
};

/// The file: the head's lines as comments, then the body.
[[nodiscard]] std::string whole_text(const ExportAnswer& answer);

/// Errors: those of `check` and of serving; a setting that the program does not have; a plan where
/// the form is a model's, and the other way round.
[[nodiscard]] Result<ExportAnswer> answer(const ExportQuestion& question);

}  // namespace stowage
