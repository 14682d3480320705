#include "answers/exporting/pytorch_plan.hpp"

#include <fmt/format.h>

#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

Result<EngineStep> engine_step(const PytorchPlan& plan) {
  if (!plan.trains) {
    return failure("a plan of an inference has no settings for an engine that trains");
  }
  const auto precision = parse_precision(plan.precision);
  if (!precision) return failure(fmt::format("'{}' is no precision", plan.precision));
  const auto optimizer = named_optimizer(plan.optimizer);
  if (!optimizer) return failure(fmt::format("'{}' is no optimizer", plan.optimizer));
  EngineStep step{.model = plan.model,
                  .source = plan.model,
                  .batch = plan.batch,
                  .accumulation = plan.micro_batches,
                  .precision = *precision};
  step.lowering.kernels = KernelSet::pytorch;
  step.lowering.optimizer = *optimizer;
  step.stated = {{"batch", std::to_string(step.batch)}};
  if (step.accumulation > 1) {
    step.stated.push_back({"accumulation", std::to_string(step.accumulation)});
  }
  step.stated.push_back({"precision", plan.precision});
  step.stated.push_back({"optimizer", optimizer_text(*optimizer)});
  return step;
}

std::vector<std::string> unexpressed_decisions(const PytorchPlan& plan) {
  const auto counted = [](std::size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  std::vector<std::string> lines;
  if (!plan.offload.empty()) {
    lines.push_back(counted(plan.offload.size(), "storage") + " of saved tensors on the host");
  }
  if (!plan.checkpoint.empty()) {
    lines.push_back(fmt::format("{}: {}{}", counted(plan.checkpoint.size(), "checkpointed module"),
                                plan.checkpoint.front(),
                                plan.checkpoint.size() > 1 ? " and others" : ""));
  }
  if (!plan.stream.empty()) {
    lines.push_back(fmt::format("{} whose parameters are streamed: {}{}",
                                counted(plan.stream.size(), "block"), plan.stream.front().module,
                                plan.stream.size() > 1 ? " and others" : ""));
  }
  if (plan.optimizer_on_cpu) lines.emplace_back("updates on the CPU");
  return lines;
}

}  // namespace stowage
