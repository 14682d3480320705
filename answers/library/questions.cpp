#include "answers/library/questions.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "answers/question/question_error.hpp"

namespace stowage {

namespace {

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Result<std::optional<Precision>> precision_of(const std::string& word) {
  if (word.empty()) return std::optional<Precision>();
  const auto precision = parse_precision(word);
  if (precision) return precision;
  return failure(question_error(fmt::format("`precision` '{}' is none that there is", word),
                                "fp32, fp16, bf16, amp-bf16 and mixed-bf16 are among them"));
}

Result<std::optional<ReleaseVersion>> version_of(std::string_view field, const std::string& text) {
  if (text.empty()) return std::optional<ReleaseVersion>();
  const auto version = parse_version(text);
  if (version) return version;
  return failure(question_error(
      fmt::format("{} '{}' is not a version such as 2.8", setting_name(field), text)));
}

Result<FineTuningTexts> fine_tuning_of(const ModelSpec& model) {
  FineTuningTexts texts{.lora = unless_empty(model.lora),
                        .base = unless_empty(model.base),
                        .checkpoint = unless_empty(model.checkpoint)};
  FineTuning unused;
  if (auto read = read_fine_tuning(texts, unused); !read) {
    return tl::unexpected(about_question(std::move(read.error())));
  }
  return texts;
}

Result<DataParallel> parallel_of(const StepSpec& step) {
  if (step.gpus < 1 || step.gpus > most_gpus) {
    return failure(question_error(
        fmt::format("`gpus` {} is out of range; it takes 1 to {}", step.gpus, most_gpus)));
  }
  if (step.zero < 0 || step.zero > last_zero_stage) {
    return failure(question_error(
        fmt::format("`zero` {} is out of range; it takes 0 to {}", step.zero, last_zero_stage)));
  }
  return DataParallel{.gpus = step.gpus, .zero = step.zero};
}

Result<StepWishes> wishes_of(const StepSpec& step) {
  const auto parallel = parallel_of(step);
  if (!parallel) return tl::unexpected(parallel.error());
  if (step.accumulation != 0) {
    if (auto mistake = out_of_range("accumulation", step.accumulation)) {
      return failure(*std::move(mistake));
    }
  }
  StepWishes wishes{.optimizer = unless_empty(step.optimizer), .parallel = *parallel};
  if (step.inference) wishes.mode = Mode::inference;
  if (step.accumulation > 0) wishes.accumulation = step.accumulation;
  return wishes;
}

Result<std::optional<Runtime>> runtime_of(const std::string& name) {
  if (name.empty()) return std::optional<Runtime>();
  const auto runtime = find_runtime(name);
  if (runtime) return runtime;
  return failure(question_error(fmt::format(
      "`runtime` '{}' is none of pytorch, tensorflow, theano, stowage and ideal", name)));
}

Result<ProcessChoice> process_of(const StepSpec& step, Runtime usual) {
  const auto runtime = runtime_of(step.runtime);
  if (!runtime) return tl::unexpected(runtime.error());
  const auto pytorch = version_of("pytorch_version", step.pytorch_version);
  if (!pytorch) return tl::unexpected(pytorch.error());
  const auto cuda = version_of("cuda_version", step.cuda_version);
  if (!cuda) return tl::unexpected(cuda.error());
  if (auto mistake = below_zero("reserve", step.reserve_bytes)) return failure(*std::move(mistake));
  ProcessChoice process{.runtime = *runtime,
                        .usual_runtime = usual,
                        .reserve = Bytes(step.reserve_bytes),
                        .software = {.cuda = *cuda, .pytorch = *pytorch}};
  if (step.in_use_bytes >= 0) process.in_use = Bytes(step.in_use_bytes);
  return process;
}

}  // namespace

std::optional<Diagnostic> out_of_range(std::string_view field,
                                       const std::optional<std::int64_t>& value) {
  if (!value || (*value >= 1 && *value <= most_of_a_number)) return std::nullopt;
  return question_error(fmt::format("{} {} is out of range; it takes 1 to {}", setting_name(field),
                                    *value, most_of_a_number));
}

std::optional<Diagnostic> below_zero(std::string_view field,
                                     const std::optional<std::int64_t>& bytes) {
  if (!bytes || *bytes >= 0) return std::nullopt;
  return question_error(fmt::format("{} is below 0", setting_name(field)));
}

Result<ModelQuestion> model_question(const ModelSpec& model) {
  if (auto mistake = out_of_range("seq", model.seq)) return failure(*std::move(mistake));
  auto configs = find_configs({});
  if (!configs) return tl::unexpected(std::move(configs.error()));
  const auto precision = precision_of(model.precision);
  if (!precision) return tl::unexpected(precision.error());
  auto fine_tuning = fine_tuning_of(model);
  if (!fine_tuning) return tl::unexpected(std::move(fine_tuning.error()));
  return ModelQuestion{.source = model.source,
                       .options = {.seq = model.seq,
                                   .arguments = model.values,
                                   .precision = *precision,
                                   .fine_tuning = *std::move(fine_tuning)},
                       .configs = *std::move(configs),
                       .loss = unless_empty(model.loss)};
}

Result<StepQuestion> step_question(const StepSpec& step, Runtime usual) {
  auto model = model_question(step.model);
  if (!model) return tl::unexpected(std::move(model.error()));
  auto wishes = wishes_of(step);
  if (!wishes) return tl::unexpected(std::move(wishes.error()));
  auto process = process_of(step, usual);
  if (!process) return tl::unexpected(std::move(process.error()));
  return StepQuestion{.model = *std::move(model),
                      .wishes = *std::move(wishes),
                      .process = *std::move(process),
                      .given = {.gpus = step.gpus != 1, .zero = step.zero != 0},
                      .asks_cudnn = step.ask_cudnn,
                      .keep_answers = step.keep_cudnn_answers};
}

Result<CardQuestion> card_question(const GpuSpec& gpu, const ConfigDirectory& configs) {
  if (auto mistake = below_zero("gpu_memory", gpu.memory_bytes))
    return failure(*std::move(mistake));
  if (gpu.name.empty() && gpu.memory_bytes == 0) {
    return failure(question_error("a card is missing: its name, or how much memory it has"));
  }
  CardQuestion card{.name = gpu.name, .configs = configs};
  if (gpu.memory_bytes > 0) card.cuda_total = Bytes(gpu.memory_bytes);
  return card;
}

}  // namespace stowage
