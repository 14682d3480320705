#include "cli/sizing/serving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/options/arguments.hpp"
#include "cli/options/serving_request.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/check_report.hpp"
#include "cli/report/workspace_report.hpp"
#include "cli/requested/requested_settings.hpp"
#include "cli/sizing/serving_report.hpp"
#include "estimator/formats/import_model.hpp"
#include "estimator/huggingface/import_config.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/serving/encoder_decoder.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"

namespace stowage {

namespace {

Result<std::shared_ptr<const StepGraph>> lowered_pass(const ServingPass& pass,
                                                      const ServedModel& served) {
  StepWishes wishes = served.request.wishes;
  wishes.mode = Mode::inference;
  attend_as_released(wishes, served.settings.stack.pytorch);
  const auto chosen =
      requested_choice(std::move(wishes), pass.model, served.settings.runtime, served.card.card);
  if (!chosen) return tl::unexpected(chosen.error());
  return lower_step(pass.model, chosen->lowering).map([](StepGraph&& graph) {
    return std::make_shared<const StepGraph>(std::move(graph));
  });
}

Result<SizedPass> size_pass(const ServingPass& pass, const ServedModel& served,
                            WorkspaceSource& workspaces) {
  const auto graph = lowered_pass(pass, served);
  if (!graph) return tl::unexpected(graph.error());
  auto step = size_step(*graph, pass.batch, workspaces);
  if (!step) return tl::unexpected(std::move(step.error()));
  return SizedPass{.batch = pass.batch,
                   .tokens = pass.tokens,
                   .past = pass.past,
                   .encoded = pass.encoded,
                   .step = *std::move(step)};
}

CheckedPass check_pass(const SizedPass& pass, const ServedModel& served) {
  return {.batch = pass.batch,
          .tokens = pass.tokens,
          .past = pass.past,
          .encoded = pass.encoded,
          .report = check(pass.step, served.card.card, served.settings)};
}

// Serving trains nothing, and the loss of a causal model wants several positions where a decoding
// step has one: whoever reads a foreign format leaves it out. A server of a paged cache brings its
// own attention, whatever the configuration says of transformers'.
StepRequest request_as_served(StepRequest request, CacheKind cache) {
  const FileHead file_head = read_file_head(request.model.source);
  for (const FormatRow& format : format_table()) {
    if (!format.recognises(file_head)) continue;
    request.model.loss = "none";
    if (format.name == "Hugging Face" && cache == CacheKind::paged) {
      request.model.options.arguments.emplace("attention", "paged");
    }
    break;
  }
  return request;
}

}  // namespace

const CheckedPass& ServingReport::larger() const {
  return prefill.report.device_bytes > decode.report.device_bytes ? prefill : decode;
}

Result<ServedModel> served_model(const StepRequest& asked, CacheKind cache,
                                 const RequestedCard& card) {
  StepRequest request = request_as_served(asked, cache);
  // The encoder's length, which is none of the decoder's.
  const std::optional<std::int64_t> encoder_length =
      std::exchange(request.model.options.seq, std::nullopt);
  auto found = found_model(request.model);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (is_step_file(found->source->text)) {
    return failure(Diagnostic{.message = "a step's file says no context, and no cache",
                              .span = {.source = found->source},
                              .hint = "serving takes a model's description"});
  }
  const auto model = loaded_model(*found, request.model);
  if (!model) return tl::unexpected(model.error());
  if (model->graph.default_seq == 0) {
    return failure(fmt::format("model '{}' has no symbol 'seq', so that its context has no length",
                               model->graph.name));
  }
  const bool caches = std::ranges::any_of(model->graph.operators, [](const Operator& op) {
    return op.row->name == "scaled_dot_product_attention";
  });
  if (encoder_length && caches && !find_encoder(model->graph)) {
    return failure(command_line_error("--seq and --context-length cannot be combined",
                                      "the context's length takes the place of the sequence's"));
  }
  const Runtime runtime = request.process.runtime.value_or(request.process.usual_runtime);
  if (kernel_set_of(runtime) != KernelSet::pytorch) {
    return failure(command_line_error(
        fmt::format("--runtime {} serves no cache of keys and values", to_string(runtime)),
        "--runtime pytorch does"));
  }
  auto settings = requested_settings(request, runtime, card);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  request.model.options.seq = encoder_length;
  return ServedModel{*std::move(found), request, card, *std::move(settings)};
}

Result<ServingSettings> with_usual_cache(const ServingSettings& settings,
                                         const StepRequest& request) {
  if (!settings.cache_is_default) return settings;
  StepRequest asked = request_as_served(request, settings.cache);
  asked.model.options.seq.reset();
  auto found = found_model(asked.model);
  if (!found) return tl::unexpected(std::move(found.error()));
  ServingSettings chosen = settings;
  if (is_step_file(found->source->text)) return chosen;  // refused where it is served
  const auto model = loaded_model(*found, asked.model);
  if (!model) return tl::unexpected(model.error());
  if (!find_encoder(model->graph)) return chosen;
  if (chosen.format != CacheFormat::model) {
    return failure(command_line_error(
        fmt::format("an encoder-decoder's cache keeps keys and values as the model computes them, "
                    "and not as {}",
                    to_string(chosen.format))));
  }
  chosen.cache = CacheKind::dynamic;
  return chosen;
}

ModelAtLength model_at_length(const ServedModel& served) {
  return [found = served.found,
          request = served.request.model](std::int64_t positions) -> Result<ModelGraph> {
    ModelRequest of_length = request;
    of_length.options.seq = positions;
    const auto graph_of = [](RequestedModel&& model) { return std::move(model.graph); };
    if (found.takes_values) return loaded_model(found, of_length).map(graph_of);
    // A reader of a foreign format has put the length into its numbers: it reads again.
    return found_model(of_length).and_then([&](FoundModel&& again) {
      return loaded_model(std::move(again), of_length).map(graph_of);
    });
  };
}

Result<SizedServing> size_serving(const ServedModel& served, const ModelAtLength& read,
                                  const ServingSettings& settings, WorkspaceSource& workspaces) {
  ServingSettings with_encoder = settings;
  with_encoder.encoder_length = served.request.model.options.seq;
  const auto passes = serving_passes(read, with_encoder);
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

Result<ServingReport> check_serving(const ServedModel& served, const ServingSettings& settings,
                                    WorkspaceSource& workspaces) {
  const auto sized = size_serving(served, model_at_length(served), settings, workspaces);
  if (!sized) return tl::unexpected(sized.error());
  ServingReport report{.settings = settings,
                       .prefill = check_pass(sized->prefill, served),
                       .decode = check_pass(sized->decode, served),
                       .precision = sized->precision,
                       .model = sized->model};
  report.lowering = report.decode.report.footprint.graph->settings;
  return report;
}

Result<Answer> run_serving(const CheckRequest& request) {
  const Progress progress("sizing prefill and decode");
  const auto card = requested_card(request.card);
  if (!card) return tl::unexpected(card.error());
  const auto settings = with_usual_cache(*request.serving, request.step);
  if (!settings) return tl::unexpected(settings.error());
  const auto served = served_model(request.step, settings->cache, *card);
  if (!served) return tl::unexpected(served.error());
  CudnnWorkspaceSource cudnn(card->card, answer_folder(request.step.keep_answers));
  RuntimeWorkspaceSource workspaces(cudnn, served->settings.runtime);
  const auto report = check_serving(*served, with_usual_chunk(*settings, card->card), workspaces);
  if (!report) return tl::unexpected(report.error());
  Answer answer = serving_answer(*report, *served, request.verbose);
  answer.report.notes = card->notes;
  std::ranges::move(cudnn_notes(cudnn), std::back_inserter(answer.report.notes));
  return answer;
}

}  // namespace stowage
