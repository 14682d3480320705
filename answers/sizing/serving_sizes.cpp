#include "answers/sizing/serving_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "answers/question/question_error.hpp"
#include "answers/subject/notes.hpp"
#include "answers/subject/process_settings.hpp"
#include "answers/subject/pytorch_release.hpp"
#include "estimator/formats/import_model.hpp"
#include "estimator/huggingface/import_config.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/serving/encoder_decoder.hpp"

namespace stowage {

namespace {

Result<ChosenStep> kernels_of_pass(const ServingPass& pass, const ServedModel& served) {
  StepWishes wishes = served.question.wishes;
  wishes.mode = Mode::inference;
  return choose_kernels(std::move(wishes), pass.model, served.settings.runtime, served.card.card);
}

/// The release of PyTorch that runs the passes; a served model's runtime always has one.
PytorchRelease release_of(const ServedModel& served) {
  return {served.settings.stack.pytorch, served.question.process.software.pytorch.has_value()};
}

Result<SizedPass> size_pass(const ServingPass& pass, const ServedModel& served,
                            WorkspaceSource& workspaces) {
  auto lowered = step_of_pass(pass, served);
  if (!lowered) return tl::unexpected(std::move(lowered.error()));
  auto step = size_step(std::move(lowered->graph), pass.batch, workspaces);
  if (!step) return tl::unexpected(std::move(step.error()));
  return SizedPass{.batch = pass.batch,
                   .tokens = pass.tokens,
                   .past = pass.past,
                   .encoded = pass.encoded,
                   .step = *std::move(step),
                   .warnings = std::move(lowered->warnings)};
}

// Serving trains nothing, and the loss of a causal model wants several positions where a decoding
// step has one: whoever reads a foreign format leaves it out. A server of a paged cache brings its
// own attention, whatever the configuration says of transformers'.
StepQuestion question_as_served(StepQuestion question, CacheKind cache) {
  const FileHead file_head = read_file_head(question.model.source);
  for (const FormatRow& format : format_table()) {
    if (!format.recognises(file_head)) continue;
    question.model.loss = "none";
    if (format.name == "Hugging Face" && cache == CacheKind::paged) {
      question.model.options.arguments.emplace("attention", "paged");
    }
    break;
  }
  return question;
}

}  // namespace

Result<PassStep> step_of_pass(const ServingPass& pass, const ServedModel& served) {
  const PytorchRelease release = release_of(served);
  auto of_release = model_of_release(pass.model, release.version);
  if (!of_release) return tl::unexpected(std::move(of_release.error()));
  auto chosen = kernels_of_pass(pass, served);
  if (!chosen) return tl::unexpected(std::move(chosen.error()));
  chosen = step_of_release(*std::move(chosen), release.version, of_release->changes);
  if (!chosen) return tl::unexpected(std::move(chosen.error()));
  auto graph =
      lower_step(of_release->changed ? *of_release->changed : pass.model, chosen->lowering);
  if (!graph) return tl::unexpected(std::move(graph.error()));
  append_notes(chosen->warnings, notes_on_release(release, of_release->changes));
  append_notes(chosen->warnings, notes_on_cuda(served.question.process.software.cuda));
  return PassStep{std::make_shared<const StepGraph>(*std::move(graph)),
                  std::move(chosen->warnings)};
}

Result<ServedModel> served_model(const StepQuestion& asked, CacheKind cache,
                                 const AskedCard& card) {
  StepQuestion question = question_as_served(asked, cache);
  // The encoder's length, which is none of the decoder's.
  const std::optional<std::int64_t> encoder_length =
      std::exchange(question.model.options.seq, std::nullopt);
  auto found = find_asked_model(question.model);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (is_step_file(found->source->text)) {
    return failure(Diagnostic{.message = "a step's file says no context, and no cache",
                              .span = {.source = found->source},
                              .hint = "serving takes a model's description"});
  }
  const auto model = load_asked_model(*found, question.model);
  if (!model) return tl::unexpected(model.error());
  if (model->graph.default_seq == 0) {
    return failure(fmt::format("model '{}' has no symbol 'seq', so that its context has no length",
                               model->graph.name));
  }
  const bool caches = std::ranges::any_of(model->graph.operators, [](const Operator& op) {
    return op.row->name == "scaled_dot_product_attention";
  });
  if (encoder_length && caches && !find_encoder(model->graph)) {
    return failure(question_error("`seq` and `context_length` cannot be combined",
                                  "the context's length takes the place of the sequence's"));
  }
  const Runtime runtime = question.process.runtime_or_usual();
  if (kernel_set_of(runtime) != KernelSet::pytorch) {
    return failure(question_error(
        fmt::format("`runtime` {} serves no cache of keys and values", to_string(runtime)),
        "`runtime` pytorch does"));
  }
  auto settings = process_settings(question, runtime, card);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  const PytorchRelease release{settings->stack.pytorch,
                               question.process.software.pytorch.has_value()};
  if (auto served = check_release(release, question); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  question.model.options.seq = encoder_length;
  return ServedModel{*std::move(found), question, card, *std::move(settings),
                     model->graph.warnings};
}

Result<ServingSettings> with_usual_cache(const ServingSettings& settings,
                                         const StepQuestion& question) {
  if (!settings.cache_is_default) return settings;
  StepQuestion asked = question_as_served(question, settings.cache);
  asked.model.options.seq.reset();
  auto found = find_asked_model(asked.model);
  if (!found) return tl::unexpected(std::move(found.error()));
  ServingSettings chosen = settings;
  if (is_step_file(found->source->text)) return chosen;  // refused where it is served
  const auto model = load_asked_model(*found, asked.model);
  if (!model) return tl::unexpected(model.error());
  if (!find_encoder(model->graph)) return chosen;
  if (chosen.format != CacheFormat::model) {
    return failure(question_error(
        fmt::format("an encoder-decoder's cache keeps keys and values as the model computes them, "
                    "and not as {}",
                    to_string(chosen.format))));
  }
  chosen.cache = CacheKind::dynamic;
  return chosen;
}

ServingSettings with_usual_chunk(ServingSettings settings, const Card& card) {
  constexpr Bytes large_card = 70_GiB;
  constexpr std::int64_t chunk_of_large = 8192, chunk_of_others = 2048;
  if (settings.cache != CacheKind::paged || settings.prefill_chunk) return settings;
  const bool is_a100 = card.name.find("A100") != std::string::npos;
  const bool is_large = card.cuda_total >= large_card && !is_a100;
  settings.prefill_chunk = is_large ? chunk_of_large : chunk_of_others;
  return settings;
}

ModelAtLength model_at_length(const ServedModel& served) {
  return [found = served.found,
          question = served.question.model](std::int64_t positions) -> Result<ModelGraph> {
    ModelQuestion of_length = question;
    of_length.options.seq = positions;
    const auto graph_of = [](AskedModel&& model) { return std::move(model.graph); };
    if (found.takes_values) return load_asked_model(found, of_length).map(graph_of);
    // A reader of a foreign format has put the length into its numbers: it reads again.
    return find_asked_model(of_length).and_then([&](FoundModel&& again) {
      return load_asked_model(std::move(again), of_length).map(graph_of);
    });
  };
}

Result<ServingPasses> passes_of(const ServedModel& served, const ModelAtLength& read,
                                const ServingSettings& settings) {
  ServingSettings with_encoder = settings;
  with_encoder.encoder_length = served.question.model.options.seq;
  return serving_passes(read, with_encoder);
}

Result<SizedServing> size_serving(const ServedModel& served, const ModelAtLength& read,
                                  const ServingSettings& settings, WorkspaceSource& workspaces) {
  const auto passes = passes_of(served, read, settings);
  if (!passes) return tl::unexpected(passes.error());
  auto prefill = size_pass(passes->prefill, served, workspaces);
  if (!prefill) return tl::unexpected(std::move(prefill.error()));
  auto decode = size_pass(passes->decode, served, workspaces);
  if (!decode) return tl::unexpected(std::move(decode.error()));
  return SizedServing{.prefill = *std::move(prefill),
                      .decode = *std::move(decode),
                      .precision = passes->decode.model.precision,
                      .model = passes->decode.model.name};
}

}  // namespace stowage
