#include "answers/subject/asked_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "answers/question/question_error.hpp"
#include "answers/subject/contradictions.hpp"
#include "answers/subject/notes.hpp"
#include "answers/subject/process_settings.hpp"
#include "answers/subject/pytorch_release.hpp"
#include "estimator/base/cure.hpp"
#include "estimator/base/grouped_digits.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/recorded/complete_step.hpp"
#include "estimator/recorded/missing_update.hpp"
#include "estimator/rewrite/micro_batches.hpp"

namespace stowage {

Result<ChosenStep> choose_kernels(StepWishes wishes, const ModelGraph& model, Runtime runtime,
                                  const Card& card) {
  wishes.kernels = kernel_set_of(runtime);
  wishes.in_place = works_in_place(runtime);
  wishes.compute_capability = card.compute_capability;
  auto chosen = choose_step(model, wishes);
  if (!chosen) return tl::unexpected(about_question(std::move(chosen.error())));
  return chosen;
}

namespace {

/// The document with an update by the optimizer that the question names; the document itself where
/// it has an update, or none is named.
Result<StepDocument> updated_as_asked(StepDocument document, const StepWishes& wishes) {
  const auto missing = missing_update(document);
  if (!missing || !wishes.optimizer) return document;
  const OptimizerSettings recorded = document.graph->settings.optimizer;
  auto optimizer = named_optimizer(*wishes.optimizer);
  if (!optimizer) {
    return failure(question_error(fmt::format("there is no optimizer '{}'", *wishes.optimizer)));
  }
  if (missing->is_whole && recorded.name == optimizer->name) {
    optimizer->implementation = recorded.implementation;
  }
  optimizer->implementation = wishes.implementation.value_or(optimizer->implementation);
  if (const auto problem = problem_of(*optimizer)) {
    return failure(question_error(problem->message, problem->hint));
  }
  auto updated = with_update(std::move(document), *optimizer);
  if (!updated) return tl::unexpected(about_question(std::move(updated.error())));
  updated->warnings.push_back(
      {.severity = Severity::note,
       .message = fmt::format("the update of {} parameter{} by {} was not recorded: it is added at "
                              "the end of the step",
                              grouped_digits(missing->parameters),
                              missing->parameters == 1 ? "" : "s", optimizer_text(*optimizer))});
  return updated;
}

PytorchRelease asked_release(const StepQuestion& question, const CheckSettings& settings) {
  return {settings.stack.pytorch, question.process.software.pytorch.has_value()};
}

// A description that the reader of Keras' files has written says so as its source.
Diagnostics notes_on_keras(const StepQuestion& question, const AskedModel& model,
                           const CheckSettings& settings) {
  const bool asked = question.process.runtime.has_value();
  if (asked || traits(settings.runtime).is_keras || !model.graph.source.starts_with("Keras ")) {
    return {};
  }
  return {{.severity = Severity::note,
           .message =
               fmt::format("a Keras model is sized as {} runs it", traits(settings.runtime).title),
           .hint = hint_of(Cure::tensorflow_runtime)}};
}

Result<AskedStep> step_of_document(StepDocument document, const StepQuestion& question,
                                   const AskedCard& card) {
  Diagnostics found = contradictions(document, question);
  if (!card.is_assumed) {
    std::ranges::move(contradictions(document, card.card), std::back_inserter(found));
  }
  if (!found.empty()) return tl::unexpected(std::move(found));
  const Runtime runtime = question.process.runtime.value_or(document.runtime);
  if (question.process.theano.value_or(TheanoMemory{}).keeps_intermediates) {
    return failure(
        question_error("allow_gc=False is in the step itself, and not in the one of this file",
                       "name the model in place of its step"));
  }
  auto updated = updated_as_asked(std::move(document), question.wishes);
  if (!updated) return tl::unexpected(std::move(updated.error()));
  auto settings = process_settings(question, runtime, card);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  const PytorchRelease release = asked_release(question, *settings);
  if (auto served = check_release(release, question); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  append_notes(updated->warnings, notes_on_release(release, *updated));
  append_notes(updated->warnings, notes_on_cuda(question.process.software.cuda));
  return AskedStep{*std::move(updated), *std::move(settings), nullptr};
}

/// What of a model Keras over Theano does not have.
Diagnostics not_of_theano(const ModelGraph& model, const FineTuningTexts& tuning) {
  Diagnostics mistakes;
  const Precision precision = model.precision;
  if (precision != Precision::fp32 && precision != Precision::fp16 &&
      precision != Precision::fp64) {
    mistakes.push_back(question_error(
        fmt::format("`runtime` theano has no {}", to_string(precision)),
        "Theano's floatX is float32, float16 or float64: `precision` fp32, fp16 or fp64"));
  }
  if (!tuning.empty()) {
    mistakes.push_back(
        question_error("adapters, quantised weights and checkpoints are PyTorch's, and not of "
                       "`runtime` theano"));
  } else if (std::ranges::any_of(model.operators,
                                 [](const Operator& op) { return op.region >= 0; })) {
    mistakes.push_back(
        question_error("the description checkpoints blocks, which `runtime` theano does not"));
  }
  return mistakes;
}

// Without a reduce_dtype, PyTorch before 2.15 reduced in param_dtype (_fsdp_api.py says so).
void set_reduction_for_release(FullyShard& fsdp, const ReleaseVersion& pytorch,
                               Precision precision) {
  constexpr ReleaseVersion reduces_in_kept_format{2, 15};
  if (!fsdp.on || fsdp.reduce_type || !has_master_weights(precision)) return;
  if (pytorch < reduces_in_kept_format) fsdp.reduce_type = float_type(precision);
}

Result<AskedStep> step_of_loaded_model(std::shared_ptr<const AskedModel> model,
                                       CheckSettings settings, const StepQuestion& question,
                                       const DocumentParts& parts, const AskedCard& card) {
  StepWishes wishes = question.wishes;
  DocumentParts with = parts;
  if (traits(settings.runtime).has_theano_buffers) {
    if (auto found = not_of_theano(model->graph, question.model.options.fine_tuning);
        !found.empty()) {
      return tl::unexpected(std::move(found));
    }
    with.theano = {.channels_last = wishes.layout == TensorLayout::channels_last,
                   .keeps_intermediates = settings.theano.keeps_intermediates};
    wishes.layout.reset();  // Keras's, which is no memory format
  }
  set_reduction_for_release(wishes.parallel.fsdp, settings.stack.pytorch, model->graph.precision);
  const PytorchRelease release = asked_release(question, settings);
  if (auto served = check_release(release, question); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  auto chosen = choose_kernels(std::move(wishes), model->graph, settings.runtime, card.card);
  if (!chosen) return tl::unexpected(std::move(chosen.error()));
  ModelOfRelease changed;
  if (traits(kernel_set_of(settings.runtime)).dispatches_by_card) {
    auto of_release = model_of_release(model->graph, release.version);
    if (!of_release) return tl::unexpected(std::move(of_release.error()));
    changed = *std::move(of_release);
    chosen = step_of_release(*std::move(chosen), release.version, changed.changes);
    if (!chosen) return tl::unexpected(std::move(chosen.error()));
  }
  const ModelGraph& graph = changed.changed ? *changed.changed : model->graph;
  auto document = make_document(graph, *chosen, settings.runtime, model->options.seq, with);
  if (!document) return tl::unexpected(std::move(document.error()));
  append_notes(document->warnings, notes_on_release(release, changed.changes));
  append_notes(document->warnings, notes_on_keras(question, *model, settings));
  append_notes(document->warnings, notes_on_cuda(question.process.software.cuda));
  return AskedStep{*std::move(document), std::move(settings), std::move(model),
                   changed.changed.has_value()};
}

}  // namespace

Result<StepSource> read_step_source(const StepQuestion& question) {
  auto found = find_asked_model(question.model);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (is_step_file(found->source->text)) {
    return read_completed_step(std::move(found->source)).map([](StepDocument&& document) {
      return StepSource{.model = nullptr,
                        .document = std::make_shared<const StepDocument>(std::move(document))};
    });
  }
  return load_asked_model(*std::move(found), question.model).map([](AskedModel&& model) {
    return StepSource{.model = std::make_shared<const AskedModel>(std::move(model)),
                      .document = nullptr};
  });
}

Result<AskedStep> make_asked_step(const StepSource& source, const StepQuestion& question,
                                  const AskedCard& card, const DocumentParts& parts) {
  if (source.document) return step_of_document(*source.document, question, card);
  auto settings = process_settings(question, question.process.runtime_or_usual(), card);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  return step_of_loaded_model(source.model, *std::move(settings), question, parts, card);
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

}  // namespace stowage
