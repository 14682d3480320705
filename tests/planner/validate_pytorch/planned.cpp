#include "tests/planner/validate_pytorch/planned.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "estimator/document/make_document.hpp"
#include "estimator/document/step_hash.hpp"
#include "estimator/recorded/complete_step.hpp"
#include "estimator/runtime/process_overhead.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/problem/rates.hpp"
#include "planner/pytorch/hooked_step.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage::testing {

ModelGraph small_blocks() {
  return described(R"(model: blocks
inputs:
  image: {shape: [batch, 64, 32, 32]}
  label: {shape: [batch], dtype: int64}
blocks:
  pair:
    layers:
      - conv2d: {name: conv1, channels: 64, kernel: 3, padding: 1}
      - batch_norm: {name: bn}
      - relu: {name: relu}
      - conv2d: {name: conv2, channels: 64, kernel: 3, padding: 1}
      - relu: {name: end}
layers:
  - pair: {name: block, from: image, repeat: 4}
  - flatten: {name: flat}
  - linear: {name: head, features: 10}
loss:
  cross_entropy: {from: [head, label]}
)");
}

ModelGraph wide_layers() {
  return described(R"(model: wide
inputs:
  x: {shape: [batch, 512]}
  label: {shape: [batch], dtype: int64}
blocks:
  wide:
    layers:
      - linear: {name: fc, features: 512}
      - relu: {name: act}
layers:
  - wide: {name: block, from: x, repeat: 48}
  - linear: {name: head, features: 10}
loss:
  cross_entropy: {from: [head, label]}
)");
}

namespace {

PytorchRequest request_of(StepDocument document, std::int64_t batch, Bytes left) {
  PytorchRequest request{
      .plan = {.document = std::move(document),
               .batch = WholeBatch(batch),
               .card = generic_card(64_GiB),
               .host = {.name = "test", .memory = 64_GiB, .pinned_limit = 32_GiB},
               .stowage_version = "test"}};
  request.process.runtime = Runtime::pytorch;
  const StepGraph& graph = *request.plan.document.graph;
  const Bytes outside = 64_GiB - allocator_limit(graph, request.plan.card, request.process);
  request.plan.card = generic_card(outside + left);
  request.plan.available = allocator_limit(graph, request.plan.card, request.process);
  request.plan.budget = request.plan.available;
  return request;
}

}  // namespace

PytorchRequest recorded_stages(std::int64_t batch, Bytes left) {
  const std::string path = source_path("/tests/recorded/stages.json");
  auto document =
      read_completed_step(std::make_shared<const SourceText>(SourceText{path, file_text(path)}));
  if (!document) throw std::runtime_error(render(document.error()));
  return request_of(*std::move(document), batch, left);
}

PytorchRequest request_for(const ModelGraph& model, std::int64_t batch, Bytes left, Mode mode,
                           const std::string& optimizer) {
  const ChosenStep step{.lowering = {.kernels = KernelSet::pytorch,
                                     .mode = mode,
                                     .optimizer = {.name = optimizer, .learning_rate = 1e-3}}};
  return request_of(make_document(model, step, Runtime::pytorch, {}, step_alone).value(), batch,
                    left);
}

PytorchPlan proposal_of(const PytorchRequest& request, const std::string& name) {
  const auto workspaces = rule_workspace_source(request.plan.card.compute_capability);
  const auto plans = make_pytorch_plans(request, *workspaces);
  if (!plans) throw std::runtime_error(render(plans.error()));
  std::string names;
  for (const PytorchProposal& made : *plans) {
    if (made.name == name) return made.plan;
    names += " " + made.name;
  }
  for (const PytorchProposal& made : *plans) {
    if (made.name.starts_with(name)) return made.plan;
  }
  throw std::runtime_error(fmt::format("no plan '{}', only{}", name, names));
}

void change_step(PytorchRequest& request, PytorchPlan& plan, StepGraph graph) {
  request.plan.document.graph = std::make_shared<const StepGraph>(std::move(graph));
  const auto workspaces = rule_workspace_source(request.plan.card.compute_capability);
  plan.step_hash = step_hash(
      size_step(request.plan.document.graph, request.plan.batch.samples, *workspaces).value());
}

Result<PlanValidation> recount_text(const PytorchRequest& request, const std::string& text) {
  const auto source = std::make_shared<const SourceText>(SourceText{"p.json", text});
  const auto plan = read_pytorch_plan(source);
  if (!plan) return tl::unexpected(plan.error());
  const Rates rates = make_rates(request.plan.card, request.plan.host);
  const StepOfPlan step{
      .document = request.plan.document,
      .batch = request.plan.batch.samples,
      .card = request.plan.card,
      .process = request.process,
      .rates = {
          .gpu = [&](const SizedStep& of, NodeId node) { return gpu_seconds(rates, of, node); },
          .cpu = [&](const SizedStep& of, NodeId node) { return cpu_seconds(rates, of, node); },
          .to_host = [&](Bytes bytes) { return d2h_seconds(rates, bytes); },
          .from_host = [&](Bytes bytes) { return h2d_seconds(rates, bytes); },
          .hook = hook_seconds,
          .update_hook = update_hook_seconds}};
  const auto workspaces = rule_workspace_source(request.plan.card.compute_capability);
  return recount_pytorch_plan(*plan, source, step, *workspaces);
}

std::vector<std::string> failed_checks(const PlanValidation& validation) {
  std::vector<std::string> failed;
  for (const Check& check : validation.checks) {
    if (check.passed || check.detail.starts_with("not checked")) continue;
    failed.push_back(fmt::format("{}: {}", check.name, check.detail));
  }
  return failed;
}

}  // namespace stowage::testing
