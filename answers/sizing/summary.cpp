#include "answers/sizing/summary.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "answers/question/question_error.hpp"
#include "answers/subject/asked_model.hpp"
#include "answers/subject/contradictions.hpp"
#include "answers/subject/notes.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/formats/import_model.hpp"
#include "estimator/recorded/complete_step.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/step/choose_step.hpp"

namespace stowage {

namespace {

bool names_weights(const FileHead& file_head) {
  if (file_head.is_folder) {
    std::error_code code;
    const std::filesystem::path folder(file_head.argument);
    return !std::filesystem::exists(folder / "config.json", code) && has_weights(folder);
  }
  return file_head.is_file &&
         (is_gguf(file_head.first_bytes) || is_safetensors(file_head.first_bytes, file_head.size));
}

Result<WeightsSummary> summary_of_weights(const FileHead& file_head, const std::string& source) {
  auto weights = file_head.is_folder              ? read_weight_folder(file_head.argument)
                 : is_gguf(file_head.first_bytes) ? read_gguf(file_head.argument)
                                                  : read_safetensors(file_head.argument);
  return std::move(weights).map([&](StoredWeights&& stored) {
    return WeightsSummary{.source = source, .weights = std::move(stored)};
  });
}

// The step as the description has it, in eager PyTorch's kernels.
Result<std::shared_ptr<const StepGraph>> described_step(const ModelGraph& model,
                                                        std::optional<TensorLayout> layout) {
  const auto chosen = choose_step(model, {.layout = layout});
  if (!chosen) return tl::unexpected(chosen.error());
  auto step = lower_step(model, chosen->lowering);
  if (!step) return tl::unexpected(step.error());
  return std::make_shared<const StepGraph>(*std::move(step));
}

/// Of all parameters, or of all buffers.
Bytes parameter_bytes(const StepDocument& document, bool buffers) {
  Bytes sum;
  for (const Parameter& parameter : document.parameters) {
    if (parameter.is_buffer != buffers) continue;
    sum += Bytes(element_count(parameter.type.shape).constant) * element_size(parameter.type.type);
  }
  return sum;
}

std::int64_t parameter_count(const StepDocument& document, bool trainable_only) {
  std::int64_t count = 0;
  for (const Parameter& parameter : document.parameters) {
    if (parameter.is_buffer || (trainable_only && !parameter.trainable)) continue;
    count += parameter.values > 0 ? parameter.values : element_count(parameter.type.shape).constant;
  }
  return count;
}

/// What a step file has of its model; its graph is not looked at.
Result<StepDocument> read_document(SourceTextPtr source, const SummaryQuestion& question) {
  auto document = read_completed_step(std::move(source));
  if (!document) return document;
  Diagnostics found = contradictions(*document, question.model.options);
  const TensorLayout layout = document->graph->settings.step.layout;
  if (question.layout && *question.layout != layout) {
    found.push_back(question_error(fmt::format("`layout` {}: the step was made for {}",
                                               to_string(*question.layout), to_string(layout))));
  }
  if (question.costs && !document->has_costs) {
    found.push_back(question_error("the step file does not say what its layers compute and keep",
                                   "leave out `verbose`"));
  }
  if (question.batch) {
    if (auto served = check_batch(*document, *question.batch, "batch"); !served) {
      found.push_back(served.error().front());
    }
  }
  if (!found.empty()) return tl::unexpected(std::move(found));
  return document;
}

/// As read_document, of a model, which has no step unless a batch is asked about.
Result<StepDocument> described(const ModelGraph& model, const SummaryQuestion& question) {
  StepDocument document;
  document.source = model.source;
  document.parameters = model.parameters;
  document.layers = layers_of(model);
  document.warnings = model.warnings;
  if (question.costs) {
    const TensorLayout layout = question.layout.value_or(model.step.layout);
    const auto added = add_costs(model, layout, document.layers);
    if (!added) return tl::unexpected(added.error());
  }
  if (question.batch) {
    auto step = described_step(model, question.layout);
    if (!step) return tl::unexpected(std::move(step.error()));
    document.graph = *std::move(step);
  }
  return document;
}

/// The layers at the batch, and their sums.
void add_layers(const std::vector<Layer>& layers, std::int64_t batch, ModelSummary& summary) {
  Affine flops = 0, saved = 0;
  for (const Layer& layer : layers) {
    summary.layers.push_back({.name = layer.name,
                              .op = std::string(layer.op),
                              .output = layer.output,
                              .output_at_batch = at_batch(layer.output, batch),
                              .parameters = layer.parameters,
                              .flops = layer.flops.real_at(batch),
                              .saved = Bytes(layer.saved_bytes.at(batch))});
    flops = flops + layer.flops;
    saved = saved + layer.saved_bytes;
  }
  summary.flops = flops.real_at(batch);
  summary.saved = Bytes(saved.at(batch));
}

/// Who is live at the step's peak: tensors alone, exact, without workspaces.
Result<Footprint> tensor_footprint(std::shared_ptr<const StepGraph> step, std::int64_t batch) {
  const auto sized = size_storages(std::move(step), batch);
  if (!sized) return tl::unexpected(sized.error());
  return peak_footprint(*sized, {.with_workspaces = false}, storage_touches(*sized->graph));
}

Result<ModelSummary> summary_of(const StepDocument& document, const std::string& name,
                                const SummaryQuestion& question) {
  ModelSummary summary{.name = name,
                       .source = document.source,
                       .batch = question.batch,
                       .parameters = parameter_count(document, false),
                       .trainable_parameters = parameter_count(document, true),
                       .parameter_bytes = parameter_bytes(document, false),
                       .buffer_bytes = parameter_bytes(document, true),
                       .has_costs = question.costs,
                       .notes = document.warnings};
  append_notes(summary.notes, notes_on_update(document));
  if (question.batch) summary.missing_update = missing_update(document);
  add_layers(document.layers, question.batch.value_or(1), summary);
  if (!question.batch) return summary;
  auto memory = tensor_footprint(document.graph, *question.batch);
  if (!memory) return tl::unexpected(std::move(memory.error()));
  summary.memory = *std::move(memory);
  return summary;
}

Result<ModelSummary> summary_of_model(const SummaryQuestion& question) {
  auto found = find_asked_model(question.model);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (is_step_file(found->source->text)) {
    const auto document = read_document(std::move(found->source), question);
    if (!document) return tl::unexpected(document.error());
    return summary_of(*document, document->graph->model, question);
  }
  const auto model = load_asked_model(*std::move(found), question.model);
  if (!model) return tl::unexpected(model.error());
  const auto document = described(model->graph, question);
  if (!document) return tl::unexpected(document.error());
  return summary_of(*document, model->graph.name, question);
}

}  // namespace

Result<SummaryAnswer> answer(const SummaryQuestion& question) {
  const FileHead file_head = read_file_head(question.model.source);
  if (names_weights(file_head)) {
    return summary_of_weights(file_head, question.model.source).map([](WeightsSummary&& summary) {
      return SummaryAnswer(std::move(summary));
    });
  }
  try {
    return summary_of_model(question).map(
        [](ModelSummary&& summary) { return SummaryAnswer(std::move(summary)); });
  } catch (const ArithmeticOverflow&) {
    return failure(question_error(fmt::format("`batch` {}: what this model keeps leaves 64 bits",
                                              question.batch.value_or(1))));
  }
}

}  // namespace stowage
