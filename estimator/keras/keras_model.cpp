#include "estimator/keras/keras_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "estimator/base/read_source.hpp"
#include "estimator/import/choose_loss.hpp"
#include "estimator/import/unknown_operators.hpp"
#include "estimator/keras/keras_graph.hpp"
#include "estimator/keras/training_config.hpp"

namespace stowage {

namespace {

Diagnostic keras_note(std::string message) {
  return {.severity = Severity::note, .message = std::move(message)};
}

// The policy of most layers: "mixed_float16", of Keras 2 and 3 alike.
std::optional<std::string> precision_of(const std::string& text) {
  const auto has = [&](std::string_view policy) {
    return text.find(fmt::format("\"{}\"", policy)) != std::string::npos;
  };
  if (has("mixed_float16")) return "amp-fp16";
  if (has("mixed_bfloat16")) return "amp-bf16";
  return std::nullopt;
}

// In Keras the loss is a function outside the model.
void forget_module_loss(DescriptionFrame& frame) {
  std::erase_if(frame.train, [](const NamedText& entry) { return entry.first == "loss_in_model"; });
  for (ImportedLoss& loss : frame.losses) {
    std::erase_if(loss.given, [](const auto& entry) { return entry.first == "upcast"; });
  }
}

// Chooses the loss of probabilities or that of logits, by whether the last layer is a sigmoid.
std::optional<std::string> suited_loss(const std::optional<std::string>& loss,
                                       const LayerList& layers, const LayerOutput& output) {
  if (loss == "bce" && !layers.at(output.layer).is("sigmoid")) return "bce_with_logits";
  return loss;
}

Result<ImportedModel> described(const YamlDocument& document, const ImportOptions& options) {
  const KerasConfig model(document.root);
  KerasTranslation translation;
  auto graph = translate_keras_graph(document, options, translation);
  if (!graph) return tl::unexpected(std::move(graph.error()));
  LayerList& layers = translation.layers();
  Diagnostics notes{keras_note(
      "a Keras model: images are held with their channels first, which has the same sizes")};
  if (graph->has_fixed_batch) {
    notes.push_back(keras_note("the file has a fixed batch, which is left open here"));
  }
  std::vector<LayerOutput> outputs;
  for (const KerasTensor& output : graph->outputs) outputs.push_back(output.layer);
  const std::string stem = std::filesystem::path(document.source->name).stem().string();
  DescriptionFrame frame{.model = model.at("config").text("name", stem.empty() ? "model" : stem),
                         .source = fmt::format("Keras {}", model.text("keras_version", "JSON")),
                         .output = outputs[0]};
  if (graph->seq > 0) frame.symbols.emplace_back("seq", graph->seq);
  KerasTraining training = read_training_config(model);
  frame.train = training.train;
  notes.insert(notes.end(), training.notes.begin(), training.notes.end());
  const bool of_file = !options.loss && training.loss;
  auto losses =
      choose_losses(layers, outputs,
                    of_file ? suited_loss(training.loss, layers, outputs[0]) : options.loss, frame);
  if (!losses && of_file) losses = choose_losses(layers, outputs, std::nullopt, frame);
  if (!losses) return tl::unexpected(std::move(losses.error()));
  notes.insert(notes.end(), losses->begin(), losses->end());
  forget_module_loss(frame);
  auto counted = count_unknown_operators(layers, frame, options.allow_unknown, graph->reasons);
  if (!counted) return tl::unexpected(std::move(counted.error()));
  notes.insert(notes.end(), counted->begin(), counted->end());
  tie_shared_parameters(layers, frame);
  if (const auto precision = precision_of(document.source->text)) {
    frame.train.emplace_back("precision", *precision);
  }
  return ImportedModel{.description = std::make_shared<const SourceText>(
                           SourceText{document.source->name, write_description(layers, frame)}),
                       .notes = std::move(notes)};
}

}  // namespace

bool is_keras_model(const FileHead& file_head) {
  const std::string_view head = file_head.first_bytes;
  const auto first = std::ranges::find_if(
      head, [](char c) { return std::isspace(static_cast<unsigned char>(c)) == 0; });
  if (first == head.end() || *first != '{') return false;
  const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
  return has("\"class_name\"") && has("\"config\"") && !has("\"model_type\"") &&
         (has("\"Sequential\"") || has("\"Functional\"") || has("\"Model\"") || has("\"layers\""));
}

Result<ImportedModel> import_keras_model(const FileHead& file_head, const ImportOptions& options) {
  auto source = file_head.text ? Result<SourceTextPtr>(file_head.text)
                               : read_source(file_head.argument, FileKind::description);
  if (!source) return tl::unexpected(std::move(source.error()));
  auto document = read_yaml(*source);
  if (!document) return tl::unexpected(std::move(document.error()));
  auto model = described(*document, options);
  if (model) return model;
  for (Diagnostic& mistake : model.error()) {
    if (!mistake.span.source) mistake.span.source = *source;
  }
  return model;
}

}  // namespace stowage
