#include "cli/requested/requested_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "cli/options/arguments.hpp"
#include "cli/options/cure_options.hpp"
#include "cli/report/step_file.hpp"
#include "cli/requested/file_kind.hpp"
#include "cli/requested/requested_settings.hpp"
#include "estimator/adapt/adapt.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/formats/import_model.hpp"
#include "estimator/huggingface/quantised_weights.hpp"
#include "estimator/recorded/complete_step.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/step/foreign_kernels.hpp"
#include "gpu_probe/cache/kept_files.hpp"
#include "gpu_probe/device/present_card.hpp"

namespace stowage {

namespace {

// A message about the step as one about the command line that asks for it.
tl::unexpected<Diagnostics> about_command_line(Diagnostics mistakes) {
  for (Diagnostic& mistake : mistakes) {
    if (!mistake.span.source) mistake = command_line_error(mistake.message, mistake.hint);
  }
  return tl::unexpected(std::move(mistakes));
}

constexpr double usual_capability = 8.6;

Card named_generic_card(Bytes total, double capability) {
  Card card = generic_card(total, capability);
  card.total_source = "--gpu-memory";
  if (capability != usual_capability) {
    card.name =
        fmt::format("a generic {} card of compute capability {}", format_bytes(total), capability);
  }
  return card;
}

Diagnostic note(std::string text) {
  return {.severity = Severity::note, .message = std::move(text)};
}

Result<RequestedCard> card_of_this_machine(const CardRequest& request) {
  auto present = present_card(probe_gpus(), request.configs.gpus());
  if (!present) return tl::unexpected(std::move(present.error()));
  RequestedCard requested{.card = std::move(present->card), .in_use = present->in_use};
  requested.notes.push_back(
      note(fmt::format("this machine's {}: {} of it free", requested.card.name,
                       format_bytes(requested.card.cuda_total - present->in_use))));
  if (!present->note.empty()) requested.notes.push_back(note(std::move(present->note)));
  if (request.cuda_total) requested.card.cuda_total = *request.cuda_total;
  return requested;
}

Result<RequestedCard> uncalibrated_card(const CardRequest& request) {
  RequestedCard requested;
  if (request.name.empty()) {
    const double capability = request.compute_capability.value_or(usual_capability);
    requested.card = named_generic_card(*request.cuda_total, capability);
    requested.notes.push_back(
        note(fmt::format("taken for a generic card of {} with compute capability {:.1f}; "
                         "--gpu NAME takes a real one",
                         format_bytes(*request.cuda_total), capability)));
    return requested;
  }
  if (request.name == present_name) return card_of_this_machine(request);
  auto found = find_card(request.name, request.configs.gpus());
  if (!found) return tl::unexpected(std::move(found.error()));
  requested.card = std::move(found->card);
  if (!found->note.empty()) requested.notes.push_back(note(std::move(found->note)));
  if (request.cuda_total) requested.card.cuda_total = *request.cuda_total;
  return requested;
}

FoundModel described_by_reader(ImportedModel imported) {
  return {.source = std::move(imported.description),
          .notes = std::move(imported.notes),
          .takes_values = imported.takes_values};
}

bool is_piped(const std::string& source) {
  std::error_code code;
  return source == "-" ||
         (std::filesystem::exists(source, code) && !std::filesystem::is_regular_file(source, code));
}

// What only readers of foreign formats listen to.
std::optional<Diagnostic> idle_import_options(const ModelRequest& request) {
  if (!request.loss && !request.allow_unknown) return std::nullopt;
  return command_line_error(fmt::format("--{} is for a model of another format, and '{}' is a "
                                        "description",
                                        request.loss ? "loss" : "allow-unknown", request.source),
                            "a description says its loss and its operators itself");
}

}  // namespace

Result<RequestedModel> loaded_model(FoundModel found, const ModelRequest& request) {
  if (auto mistake = not_a_model(*found.source)) return failure(*std::move(mistake));
  ModelOptions given = request.options;
  if (!found.takes_values) {
    given.seq.reset();
    given.arguments.clear();
  }
  ModelOptions options = overridden(std::move(found.options), given);
  auto graph = load_adapted(found.source, options);
  if (!graph) return tl::unexpected(std::move(graph.error()));
  if (const auto& base = graph->fine_tuning.base) {
    std::erase_if(found.notes,
                  [&](const Diagnostic& note) { return answers_quantisation(*base, note); });
  }
  graph->warnings.insert(graph->warnings.begin(), found.notes.begin(), found.notes.end());
  return RequestedModel{std::move(found.source), std::move(options), std::move(*graph)};
}

Result<FoundModel> found_model(const ModelRequest& request) {
  const ImportOptions options{.seq = request.options.seq,
                              .values = request.options.arguments,
                              .loss = request.loss,
                              .allow_unknown = request.allow_unknown};
  auto imported = import_model(read_file_head(request.source), options);
  if (!imported) return tl::unexpected(std::move(imported.error()));
  if (*imported) return described_by_reader(**std::move(imported));
  auto found = find_model(request.source, request.configs.models());
  if (!found) return found;
  if (is_piped(request.source)) {
    imported = import_model(file_head_of(found->source), options);
    if (!imported) return tl::unexpected(std::move(imported.error()));
    if (*imported) return described_by_reader(**std::move(imported));
  }
  if (auto mistake = idle_import_options(request)) return failure(*std::move(mistake));
  return found;
}

Result<RequestedModel> requested_model(const ModelRequest& request) {
  auto found = found_model(request);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (is_step_file(found->source->text)) {
    return failure(Diagnostic{.message = "this is a step, and a description is wanted here",
                              .span = {.source = found->source},
                              .hint = "stowage check, batch, summary and plan take a step's file"});
  }
  return loaded_model(*std::move(found), request);
}

Result<RequestedCard> requested_card(const CardRequest& request) {
  auto requested = uncalibrated_card(request);
  if (!requested) return requested;
  if (!request.calibration.empty()) {
    const auto source = read_source(request.calibration, FileKind::calibration);
    if (!source) return tl::unexpected(source.error());
    auto calibrated = read_calibration(*source, requested->card);
    if (!calibrated) return tl::unexpected(std::move(calibrated.error()));
    requested->card = *std::move(calibrated);
  }
  if (!request.cuda_total) {
    for (std::string& remark : remarks_on(requested->card)) {
      requested->notes.push_back(note(in_options(std::move(remark))));
    }
  }
  return requested;
}

void attend_as_released(StepWishes& wishes, const ReleaseVersion& pytorch) {
  constexpr ReleaseVersion efficient_takes_groups{2, 14};
  wishes.efficient_takes_groups = pytorch >= efficient_takes_groups;
}

Result<ChosenStep> requested_choice(StepWishes wishes, const ModelGraph& model, Runtime runtime,
                                    const Card& card) {
  wishes.kernels = kernel_set_of(runtime);
  wishes.in_place = works_in_place(runtime);
  wishes.compute_capability = card.compute_capability;
  auto chosen = choose_step(model, wishes);
  if (!chosen) return about_command_line(std::move(chosen.error()));
  return chosen;
}

namespace {

Result<RequestedStep> step_of_document(StepDocument document, const StepRequest& request,
                                       const RequestedCard& card) {
  Diagnostics found = contradictions(document, request);
  if (!card.is_assumed) {
    std::ranges::move(contradictions(document, card.card), std::back_inserter(found));
  }
  if (!found.empty()) return tl::unexpected(std::move(found));
  const Runtime runtime = request.process.runtime.value_or(document.runtime);
  if (request.process.theano.value_or(TheanoMemory{}).keeps_intermediates) {
    return failure(
        command_line_error("allow_gc=False is in the step itself, and not in the one of this file",
                           "name the model in place of its step"));
  }
  return requested_settings(request, runtime, card).map([&](CheckSettings settings) {
    return RequestedStep{std::move(document), std::move(settings), nullptr};
  });
}

Result<RequestedStep> step_of_file(SourceTextPtr source, const StepRequest& request,
                                   const RequestedCard& card) {
  return read_completed_step(std::move(source)).and_then([&](StepDocument&& document) {
    return step_of_document(std::move(document), request, card);
  });
}

/// What of a model Keras over Theano does not have.
Diagnostics not_of_theano(const ModelGraph& model, const FineTuningTexts& tuning) {
  Diagnostics mistakes;
  const Precision precision = model.precision;
  if (precision != Precision::fp32 && precision != Precision::fp16 &&
      precision != Precision::fp64) {
    mistakes.push_back(command_line_error(
        fmt::format("--runtime theano has no {}", to_string(precision)),
        "Theano's floatX is float32, float16 or float64: --precision fp32, fp16 or fp64"));
  }
  if (!tuning.empty()) {
    mistakes.push_back(
        command_line_error("adapters, quantised weights and checkpoints are PyTorch's, and not of "
                           "--runtime theano"));
  } else if (std::ranges::any_of(model.operators,
                                 [](const Operator& op) { return op.region >= 0; })) {
    mistakes.push_back(
        command_line_error("the description checkpoints blocks, which --runtime theano does not"));
  }
  return mistakes;
}

// Without a reduce_dtype, PyTorch before 2.15 reduced in param_dtype (_fsdp_api.py says so).
void reduce_as_released(FullyShard& fsdp, const ReleaseVersion& pytorch, Precision precision) {
  constexpr ReleaseVersion reduces_in_kept_format{2, 15};
  if (!fsdp.on || fsdp.reduce_type || !has_master_weights(precision)) return;
  if (pytorch < reduces_in_kept_format) fsdp.reduce_type = float_type(precision);
}

Result<RequestedStep> step_of_loaded_model(std::shared_ptr<const RequestedModel> model,
                                           CheckSettings settings, const StepRequest& request,
                                           const DocumentParts& parts, const RequestedCard& card) {
  StepWishes wishes = request.wishes;
  DocumentParts with = parts;
  if (settings.runtime == Runtime::theano) {
    if (auto found = not_of_theano(model->graph, request.model.options.fine_tuning);
        !found.empty()) {
      return tl::unexpected(std::move(found));
    }
    with.theano = {.channels_last = wishes.layout == TensorLayout::channels_last,
                   .keeps_intermediates = settings.theano.keeps_intermediates};
    wishes.layout.reset();  // Keras's, which is no memory format
  }
  reduce_as_released(wishes.parallel.fsdp, settings.stack.pytorch, model->graph.precision);
  attend_as_released(wishes, settings.stack.pytorch);
  const auto chosen =
      requested_choice(std::move(wishes), model->graph, settings.runtime, card.card);
  if (!chosen) return tl::unexpected(chosen.error());
  auto document = make_document(model->graph, *chosen, settings.runtime, model->options.seq, with);
  if (!document) return tl::unexpected(std::move(document.error()));
  return RequestedStep{*std::move(document), std::move(settings), std::move(model)};
}

Result<CheckSettings> settings_for_model(const StepRequest& request, const RequestedCard& card) {
  const Runtime runtime = request.process.runtime.value_or(request.process.usual_runtime);
  return requested_settings(request, runtime, card);
}

Result<RequestedStep> step_of_model(FoundModel found, const StepRequest& request,
                                    const DocumentParts& parts, const RequestedCard& card) {
  auto settings = settings_for_model(request, card);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  auto model = loaded_model(std::move(found), request.model);
  if (!model) return tl::unexpected(std::move(model.error()));
  return step_of_loaded_model(std::make_shared<const RequestedModel>(*std::move(model)),
                              *std::move(settings), request, parts, card);
}

}  // namespace

Result<RequestedStep> requested_step(const StepRequest& request, const RequestedCard& card,
                                     const DocumentParts& parts) {
  auto found = found_model(request.model);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (is_step_file(found->source->text)) {
    return step_of_file(std::move(found->source), request, card);
  }
  return step_of_model(*std::move(found), request, parts, card);
}

Result<StepSource> step_source(const StepRequest& request) {
  auto found = found_model(request.model);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (is_step_file(found->source->text)) {
    return read_completed_step(std::move(found->source)).map([](StepDocument&& document) {
      return StepSource{.model = nullptr,
                        .document = std::make_shared<const StepDocument>(std::move(document))};
    });
  }
  return loaded_model(*std::move(found), request.model).map([](RequestedModel&& model) {
    return StepSource{.model = std::make_shared<const RequestedModel>(std::move(model)),
                      .document = nullptr};
  });
}

Result<RequestedStep> requested_step(const StepSource& source, const StepRequest& request,
                                     const RequestedCard& card, const DocumentParts& parts) {
  if (source.document) return step_of_document(*source.document, request, card);
  auto settings = settings_for_model(request, card);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  return step_of_loaded_model(source.model, *std::move(settings), request, parts, card);
}

Diagnostics notes_of(const RequestedStep& step, const RequestedCard& card) {
  Diagnostics notes = step.document.warnings;
  std::ranges::move(misspelt_kernels(*step.document.graph), std::back_inserter(notes));
  notes.insert(notes.end(), card.notes.begin(), card.notes.end());
  return notes;
}

Result<SharedGraph> accumulating_step(const StepDocument& document) {
  if (document.graph->settings.micro_batches > 1) return document.graph;
  return with_micro_batches(*document.graph, 2).map([](StepGraph&& graph) {
    return std::make_shared<const StepGraph>(std::move(graph));
  });
}

Result<SharedGraph> sizing_step(const StepDocument& document) {
  if (document.accumulation == 1) return document.graph;
  return accumulating_step(document);
}

std::string answer_folder(bool keep_answers) { return keep_answers ? default_cache_folder() : ""; }

}  // namespace stowage
