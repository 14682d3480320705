#include "cli/value_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/replicas.hpp"
#include "cli/requested_settings.hpp"
#include "cli/serving_report.hpp"
#include "cli/serving_request.hpp"
#include "cli/step_report.hpp"
#include "estimator/check/batch_search.hpp"
#include "estimator/check/roomy_runs.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/runtime/process_overhead.hpp"
#include "estimator/runtime/runtime_buffers.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"

namespace stowage {

namespace {

/// Of all that is lowered, PyTorch's choice of an attention kernel alone depends on the card.
bool lowers_alike_everywhere(const ModelGraph& model) {
  return std::ranges::none_of(model.operators, [](const Operator& op) {
    return op.row->name == "scaled_dot_product_attention";
  });
}

/// Cards by what their steps are lowered for; all in one where the model lowers alike.
std::map<double, std::vector<std::size_t>> by_capability(const ModelGraph& model,
                                                         const std::vector<RequestedCard>& all,
                                                         const std::vector<std::size_t>& cards) {
  std::map<double, std::vector<std::size_t>> groups;
  const bool alike = lowers_alike_everywhere(model);
  for (const std::size_t card : cards) {
    groups[alike ? 0.0 : all[card].card.compute_capability].push_back(card);
  }
  return groups;
}

/// A lowered step at a batch, on one card after the other.
class StepOnCards {
 public:
  StepOnCards(SharedGraph graph, std::int64_t batch)
      : graph_(std::move(graph)), batch_(batch), touches_(storage_touches(*graph_)) {}

  Result<ValueRun> on(const Card& card, const CheckSettings& settings, WorkspaceSource& source) {
    if (!RoomyRuns::serves(*graph_, settings)) {
      const auto step = size_step(graph_, batch_, source);
      if (!step) return tl::unexpected(step.error());
      return run_of(check(*step, card, settings), card, settings);
    }
    if (!step_) {
      auto step = size_step(graph_, batch_, source);
      if (!step) return tl::unexpected(std::move(step.error()));
      step_ = *std::move(step);
    }
    const RoomyRun run = roomy_beside(runtime_buffers(*graph_, card, settings), settings);
    if (run.reserved > allocator_limit(*graph_, card, settings)) {
      return run_of(check(*step_, card, settings), card, settings);
    }
    const Bytes available = card.cuda_total - settings.in_use - settings.reserve;
    const Bytes taken = run.reserved + outside_allocator(*graph_, card, settings);
    return ValueRun{.fits = true,
                    .calm = run.settles,
                    .device_bytes = taken,
                    .headroom = available - taken,
                    .available = available,
                    .usual_margin = usual_margin(*graph_, card, settings)};
  }

 private:
  RoomyRun roomy_beside(std::vector<RuntimeBuffer> buffers, const CheckSettings& settings) {
    auto known = std::ranges::find_if(
        roomy_, [&](const auto& runs) { return runs->are_of(*graph_, buffers); });
    if (known == roomy_.end()) {
      roomy_.push_back(std::make_unique<RoomyRuns>(graph_, std::move(buffers), settings.allocator));
      known = roomy_.end() - 1;
    }
    return (*known)->of(*step_, touches_);
  }

  SharedGraph graph_;
  std::int64_t batch_;
  std::vector<Touches> touches_;
  std::optional<SizedStep> step_;
  std::vector<std::unique_ptr<RoomyRuns>> roomy_;
};

/// cuDNN's, where it is asked, or the documented rule's.
class SourceOfCard {
 public:
  SourceOfCard(const Card& card, Runtime runtime, const ValueQuestion& question) {
    if (question.asks_cudnn) {
      kernels_ =
          std::make_unique<CudnnWorkspaceSource>(card, answer_folder(question.step.keep_answers));
    } else {
      kernels_ = rule_workspace_source(card.compute_capability);
    }
    runtime_ = std::make_unique<RuntimeWorkspaceSource>(*kernels_, runtime);
  }
  WorkspaceSource& source() { return *runtime_; }

 private:
  std::unique_ptr<WorkspaceSource> kernels_, runtime_;
};

/// The runs of two passes of one process.
Result<ValueRun> both(Result<ValueRun> before, Result<ValueRun> now) {
  if (!before) return before;
  if (!now) return now;
  return larger_of(*before, *now);
}

}  // namespace

Result<ValueRuns> ValueRuns::of(const ValueQuestion& question,
                                const std::vector<RequestedCard>& cards) {
  ValueRuns runs(question, cards);
  if (!question.serving) return runs;
  auto served = served_model(question.step, question.serving->cache, cards.front());
  if (!served) return tl::unexpected(std::move(served.error()));
  runs.served_ = *std::move(served);
  for (const RequestedCard& card : cards) {
    runs.settings_.push_back(
        requested_settings(runs.served_->request, runs.served_->settings.runtime, card));
  }
  return runs;
}

std::vector<Result<ValueRun>> ValueRuns::at(std::int64_t value,
                                            const std::vector<std::size_t>& cards) {
  std::vector<Result<ValueRun>> runs(cards_->size(), ValueRun{});
  if (question_.serving) {
    serve(value, cards, runs);
  } else {
    train(value, cards, runs);
  }
  return runs;
}

ServedModel ValueRuns::served_on(std::size_t card) const {
  ServedModel served = *served_;
  served.card = (*cards_)[card];
  if (settings_[card]) served.settings = *settings_[card];
  return served;
}

// Cards differ in the chunk that a server takes on them, and in their compute capability.
void ValueRuns::serve(std::int64_t value, const std::vector<std::size_t>& cards,
                      std::vector<Result<ValueRun>>& runs) {
  std::map<std::int64_t, std::vector<std::size_t>> by_chunk;
  std::map<std::int64_t, ServingSettings> settings_of;
  for (const std::size_t card : cards) {
    if (!settings_[card]) {
      runs[card] = tl::unexpected(settings_[card].error());
      continue;
    }
    ServingSettings settings = with_usual_chunk(*question_.serving, (*cards_)[card].card);
    if (question_.of == LargestOf::users) settings.users = value;
    if (question_.of == LargestOf::context_length) settings.context_length = value;
    const std::int64_t chunk = settings.prefill_chunk.value_or(0);
    by_chunk[chunk].push_back(card);
    settings_of.emplace(chunk, settings);
  }
  for (const auto& [chunk, of_chunk] : by_chunk) {
    const ServingSettings& settings = settings_of.at(chunk);
    const auto passes = served_passes(*served_, settings);
    if (!passes) {
      for (const std::size_t card : of_chunk) runs[card] = tl::unexpected(passes.error());
      continue;
    }
    const ModelGraph& model = passes->decode.model;
    if (heading_.empty()) {
      heading_ = describe_serving(model.name, model.precision, settings, question_.of);
    }
    for (const ServingPass* pass : {&passes->prefill, &passes->decode}) {
      const bool first = pass == &passes->prefill;
      for (const auto& [capability, alike] : by_capability(pass->model, *cards_, of_chunk)) {
        const auto graph = lowered_pass(*pass, served_on(alike.front()));
        if (!graph) {
          for (const std::size_t card : alike) runs[card] = tl::unexpected(graph.error());
          continue;
        }
        StepOnCards step(*graph, pass->batch);
        for (const std::size_t card : alike) {
          const CheckSettings& of_card = *settings_[card];
          SourceOfCard source((*cards_)[card].card, of_card.runtime, question_);
          auto run = step.on((*cards_)[card].card, of_card, source.source());
          runs[card] = first ? std::move(run) : both(std::move(runs[card]), std::move(run));
        }
      }
    }
  }
}

void ValueRuns::train(std::int64_t value, const std::vector<std::size_t>& cards,
                      std::vector<Result<ValueRun>>& runs) {
  StepRequest request = question_.step;
  request.model.options.seq = value;
  const auto source = step_source(request);
  if (!source) {
    for (const std::size_t card : cards) runs[card] = tl::unexpected(source.error());
    return;
  }
  if (!source->model || source->model->graph.default_seq == 0) {
    const Diagnostic mistake{
        .message = fmt::format("'{}' has no symbol 'seq', so that its sequences have no length",
                               request.model.source)};
    for (const std::size_t card : cards) runs[card] = failure(mistake);
    return;
  }
  for (const auto& [capability, alike] : by_capability(source->model->graph, *cards_, cards)) {
    const auto requested = requested_step(*source, request, (*cards_)[alike.front()], step_alone);
    const auto graph = requested ? sizing_step(requested->document)
                                 : Result<SharedGraph>(tl::unexpected(requested.error()));
    if (!graph) {
      for (const std::size_t card : alike) runs[card] = tl::unexpected(graph.error());
      continue;
    }
    if (heading_.empty()) {
      ToldStep told = told_step(requested->document);
      told.seq = 0;
      heading_ = describe_step(told, question_.batch);
    }
    const std::int64_t batch = replica_batch(question_.batch, requested->settings);
    StepOnCards step(*graph, batch);
    for (const std::size_t card : alike) {
      const auto settings =
          requested_settings(request, requested->settings.runtime, (*cards_)[card]);
      if (!settings) {
        runs[card] = tl::unexpected(settings.error());
        continue;
      }
      SourceOfCard workspaces((*cards_)[card].card, settings->runtime, question_);
      runs[card] = step.on((*cards_)[card].card, *settings, workspaces.source());
    }
  }
}

}  // namespace stowage
