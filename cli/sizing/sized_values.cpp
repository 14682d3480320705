#include "cli/sizing/sized_values.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "cli/options/serving_request.hpp"
#include "cli/report/replicas.hpp"
#include "cli/sizing/serving.hpp"

namespace stowage {

namespace {

using SharedSizes = std::shared_ptr<const SizedSteps>;

SharedSizes shared_sizes(std::vector<SizedStep> steps) {
  return std::make_shared<const SizedSteps>(SizedSteps{std::move(steps)});
}

Result<SharedSizes> sizes_with_seq(const BatchRequest& request, std::int64_t seq,
                                   const RequestedCard& card, WorkspaceSource& workspaces) {
  StepRequest with_seq = request.step;
  with_seq.model.options.seq = seq;
  const auto requested = requested_step(with_seq, card, step_alone);
  if (!requested) return tl::unexpected(requested.error());
  if (!requested->model || requested->model->graph.default_seq == 0) {
    return failure(fmt::format("'{}' has no symbol 'seq', so that its sequences have no length",
                               request.step.model.source));
  }
  const auto graph = sizing_step(requested->document);
  if (!graph) return tl::unexpected(graph.error());
  auto step =
      size_step(*graph, replica_batch(request.batch.value_or(1), requested->settings), workspaces);
  if (!step) return tl::unexpected(std::move(step.error()));
  return shared_sizes({*std::move(step)});
}

/// Prefill in chunks and decode have the same lengths whatever the context and the users: what is
/// asked for a second time is kept.
ModelAtLength kept_models(ModelAtLength read) {
  struct Known {
    std::set<std::int64_t> asked;
    std::map<std::int64_t, Result<ModelGraph>> models;
  };
  return [read = std::move(read), known = std::make_shared<Known>()](std::int64_t positions) {
    const auto found = known->models.find(positions);
    if (found != known->models.end()) return found->second;
    Result<ModelGraph> model = read(positions);
    if (!known->asked.insert(positions).second) known->models.emplace(positions, model);
    return model;
  };
}

}  // namespace

Sought sought(LargestOf of) {
  switch (of) {
    case LargestOf::users:
      return {"users", "number of users"};
    case LargestOf::context_length:
      return {"context-length", "context length"};
    case LargestOf::seq:
      return {"seq", "sequence length"};
  }
  return {};
}

Result<SizedAt> sizes_of_values(const BatchRequest& request, const RequestedCard& card,
                                WorkspaceSource& workspaces) {
  if (*request.of == LargestOf::seq) {
    return SizedAt([&request, card, &workspaces](std::int64_t seq) {
      return sizes_with_seq(request, seq, card, workspaces);
    });
  }
  const auto usual = with_usual_cache(*request.serving, request.step);
  if (!usual) return tl::unexpected(usual.error());
  auto served = served_model(request.step, usual->cache, card);
  if (!served) return tl::unexpected(std::move(served.error()));
  const ServingSettings settings = with_usual_chunk(*usual, card.card);
  const bool of_users = *request.of == LargestOf::users;
  ModelAtLength read = kept_models(model_at_length(*served));
  return SizedAt([served = *std::move(served), read = std::move(read), settings, of_users,
                  &workspaces](std::int64_t value) -> Result<SharedSizes> {
    ServingSettings with_value = settings;
    (of_users ? with_value.users : with_value.context_length) = value;
    auto sized = size_serving(served, read, with_value, workspaces);
    if (!sized) return tl::unexpected(std::move(sized.error()));
    return shared_sizes({std::move(sized->prefill.step), std::move(sized->decode.step)});
  });
}

}  // namespace stowage
