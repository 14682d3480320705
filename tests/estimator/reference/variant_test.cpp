// Steps in other precisions, and loops written in other ways (accumulation, gradients that
// zero_grad keeps, checkpointed blocks, optimizers one parameter at a time or fused), against
// PyTorch. One subcase a file: -sc="resnet18*".
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "estimator/step/lower.hpp"
#include "tests/estimator/reference/known_differences.hpp"
#include "tests/estimator/reference/step_comparison.hpp"
#include "tests/estimator/reference/unequal_steps.hpp"

namespace stowage::reference {

namespace {

bool is_variant(const ReferenceModel& reference) {
  return reference.precision != "fp32" || !reference.variant.empty();
}

ModelGraph our_variant(const ReferenceModel& reference) {
  ModelOptions options = reference.options;
  if (reference.variant == "checkpoint-blocks") options.arguments["checkpoint"] = "true";
  ModelGraph model = our_model(reference.model, options);
  model.loss_in_model = true;  // the reference's loop has output and loss from one call
  return model;
}

LoweringSettings settings_of(const ReferenceModel& reference, const std::string& optimizer) {
  LoweringSettings settings{.kernels = KernelSet::pytorch, .optimizer = {.name = optimizer}};
  if (optimizer == "sgd-momentum") settings.optimizer = {.name = "sgd", .momentum = 0.9};
  if (reference.variant == "accumulate-2") settings.micro_batches = 2;
  if (reference.variant == "zero-grad-to-zero") settings.step.zero_grad = ZeroGrad::to_zero;
  if (reference.variant == "for-loop") {
    settings.optimizer.implementation = OptimizerImplementation::for_loop;
  }
  if (reference.variant == "fused") {
    settings.optimizer.implementation = OptimizerImplementation::fused;
  }
  return settings;
}

SizedStep step_of(const ModelGraph& model, const LoweringSettings& settings, std::int64_t batch) {
  auto graph = lower(model, settings);
  if (!graph) throw std::runtime_error(render(graph.error()));
  auto sized = size_storages(std::make_shared<const StepGraph>(*std::move(graph)), batch);
  if (!sized) throw std::runtime_error(render(sized.error()));
  return *std::move(sized);
}

/// transformers' output holds the loss, beside the script's variable that has a micro-batch's share
/// of it.
Bytes whole_loss(const ReferenceModel& reference) {
  return reference.model == "gpt2" && reference.variant == "accumulate-2" ? Bytes(4) : Bytes();
}

Multiset saved_beyond_the_state(const SizedStep& step) {
  Multiset sizes;
  std::set<StorageId> seen;
  for (const SavedTensor& saved : step.graph->saved) {
    if (!seen.insert(saved.storage).second) continue;
    const StorageClass kind = step.graph->storage(saved.storage).storage_class;
    if (kind == StorageClass::parameter || kind == StorageClass::buffer) continue;
    ++sizes[step.bytes(saved.storage).count()];
  }
  return sizes;
}

}  // namespace

TEST_CASE("other precisions and loops are compared") {
  const auto& models = reference_models();
  CHECK(std::count_if(models.begin(), models.end(), is_variant) >= 43);
}

TEST_CASE("in other precisions what is saved is what PyTorch saves, storage by storage") {
  for (const ReferenceModel& reference : reference_models()) {
    if (!is_variant(reference) || !reference.variant.empty()) continue;
    if (saved_differ(reference.file)) continue;
    SUBCASE(reference.file.c_str()) {
      Multiset theirs;
      for (const SavedStorages& row : accounted_saved(reference).saved) {
        if (row.kind == "parameter" || row.kind == "buffer") continue;
        theirs[row.bytes] += row.count;
      }
      const Multiset ours = saved_beyond_the_state(
          step_of(our_variant(reference), settings_of(reference, "sgd"), reference.batch));
      CHECK(surplus(ours, theirs) == "");
      CHECK(surplus(theirs, ours) == "");
    }
  }
}

TEST_CASE("in other precisions and loops the peak of each phase is PyTorch's, to the byte") {
  for (const ReferenceModel& reference : reference_models()) {
    if (!is_variant(reference)) continue;
    SUBCASE(reference.file.c_str()) {
      const ModelGraph model = our_variant(reference);
      compare_peaks(
          reference,
          [&](const std::string& name) {
            return step_of(model, settings_of(reference, name), reference.batch);
          },
          whole_loss(reference));
    }
  }
}

}  // namespace stowage::reference
