#include "estimator/step/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "estimator/base/affine.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/base/cure.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/step/autograd_refusals.hpp"
#include "estimator/step/step_builder.hpp"

namespace stowage {

namespace {

// What the settings ask of the optimizer that there is not.
std::optional<Diagnostic> optimizer_problem(const LoweringSettings& settings) {
  const auto problem = [](std::string message, std::string hint) {
    return Diagnostic{.message = std::move(message), .hint = std::move(hint)};
  };
  const OptimizerSettings& optimizer = settings.optimizer;
  if (auto found = problem_of(optimizer)) return problem(found->message, found->hint);
  const KernelSetTraits& set = traits(settings.kernels);
  if (set.library_optimizer) return std::nullopt;
  if (!find_optimizer(optimizer.name)->executable) {
    return problem(fmt::format("the kernel set '{}' does not run {}", set.name, optimizer.name),
                   hint_of("use another optimizer", Cure::pytorch_kernels));
  }
  if (optimizer.name == "lamb" && optimizer.max_gradient_norm > 0) {
    return problem(
        fmt::format("the kernel set '{}' clips no gradients to a norm over all of them", set.name),
        hint_of("give lamb `max_gradient_norm: 0`", Cure::pytorch_kernels));
  }
  return std::nullopt;
}

}  // namespace

Result<StepGraph> lower(const ModelGraph& model, const LoweringSettings& settings) {
  if (settings.mode == Mode::train && !model.loss.valid()) {
    return failure(fmt::format("model '{}' has no loss, so that it cannot be trained", model.name),
                   hint_of("add a `loss:` to the description", Cure::inference));
  }
  if (settings.mode == Mode::train && settings.step.zero_grad == ZeroGrad::to_zero &&
      settings.optimizer.master_weights == MasterWeights::weights_and_gradients) {
    return failure(
        "gradients kept in fp32 beside 16-bit ones are not served with "
        "`zero_grad: to_zero`",
        "leave zero_grad at to_none, or keep the gradients in 16 bits");
  }
  if (settings.micro_batches != 1) {
    throw std::logic_error("a step is lowered for one micro-batch; lower_step repeats it");
  }
  const bool floating = std::any_of(model.inputs.begin(), model.inputs.end(), [&](TensorId id) {
    return is_floating_point(model.tensor(id).type.type);
  });
  if (traits(settings.kernels).contiguous_only &&
      settings.step.layout != TensorLayout::contiguous) {
    return failure("only PyTorch's kernels run with channels innermost (layout nhwc)",
                   hint_of(in_words(Cure::contiguous_layout), Cure::pytorch_kernels));
  }
  if (settings.step.augment > 0 && !floating) {
    return failure(fmt::format("model '{}' has no floating-point input to augment", model.name));
  }
  if (settings.mode == Mode::train) {
    if (auto problem = optimizer_problem(settings)) {
      return tl::unexpected(Diagnostics{*std::move(problem)});
    }
  }
  Diagnostics diagnostics;
  for (const Operator& op : model.operators) {
    if (rules_of(*op.row, settings.kernels).forward != nullptr) continue;
    diagnostics.push_back(
        {.message = fmt::format("the kernel set '{}' does not run {} (layer '{}')",
                                to_string(settings.kernels), op.row->name, op.name),
         .span = op.span});
  }
  if (!diagnostics.empty()) return tl::unexpected(std::move(diagnostics));
  try {
    StepGraph graph = StepBuilder(model, settings).build();
    if (graph.nodes.empty()) {
      return failure(
          fmt::format("model '{}' computes nothing in {}: all its layers are views of "
                      "their inputs",
                      model.name, to_string(settings.mode)));
    }
    if (settings.mode == Mode::train) {
      if (Diagnostics refused = autograd_refusals(model, graph); !refused.empty()) {
        return tl::unexpected(std::move(refused));
      }
    }
    return graph;
  } catch (const ArithmeticOverflow& overflow) {
    return failure(
        fmt::format("model '{}' has a size past 64 bits: {}", model.name, overflow.what()));
  } catch (const NotAffine& product) {
    return failure(fmt::format("model '{}' has a size that grows faster than the batch: {}",
                               model.name, product.what()));
  }
}

}  // namespace stowage
