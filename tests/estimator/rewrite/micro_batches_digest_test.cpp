// Steps of three micro-batches as they were when the lowering unrolled micro-batches itself, and
// the steps of one that they belong to: all shipped models, both kernel sets.
//
// micro_batch_digests.txt was recorded from that lowering. A change of what a layer is lowered to
// changes both numbers of a line; then, and only then, put the printed line in its place.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <string>

#include "estimator/rewrite/lower_step.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/step_digest.hpp"

namespace stowage {

namespace {

/// Such that all that rewriting treats differently occurs: gradients that are taken over, copied,
/// kept in float32 and kept from step to step; autocast's copies; augmented inputs.
std::vector<LoweringSettings> settings_of(const ModelGraph& model) {
  std::vector<LoweringSettings> all;
  for (const KernelSet kernels : {KernelSet::stowage, KernelSet::pytorch}) {
    LoweringSettings settings{.kernels = kernels, .optimizer = model.optimizer, .step = model.step};
    if (kernels == KernelSet::stowage) settings.optimizer = {};
    settings.step.augment = model.precision == Precision::amp_fp16 ? 1 : 0;
    settings.step.prefetch = settings.step.augment;
    if (model.precision == Precision::mixed_bf16) {
      if (kernels == KernelSet::stowage) {
        settings.step.zero_grad = ZeroGrad::to_zero;
      } else {
        settings.optimizer.master_weights = MasterWeights::weights_and_gradients;
      }
    }
    all.push_back(settings);
  }
  return all;
}

/// One number over all settings and precisions; what cannot be lowered counts as such.
std::uint64_t digest(const std::string& name, int micro_batches) {
  std::uint64_t digest = 0;
  for (const Precision precision : {Precision::fp32, Precision::amp_fp16, Precision::mixed_bf16}) {
    ModelOptions options;
    options.precision = precision;
    const auto source = find_model(name, testing::source_path("/configs/models"));
    REQUIRE(source);
    const auto model = load_model(source->source, overridden(source->options, options));
    if (!model) continue;  // a loss that refuses the format
    for (LoweringSettings settings : settings_of(*model)) {
      settings.micro_batches = micro_batches;
      const auto graph = lower_step(*model, settings);
      digest = digest * 31 + (graph ? testing::StepDigest(*graph).value() : 1);
    }
  }
  return digest;
}

std::map<std::string, std::string> recorded() {
  std::ifstream file(testing::source_path("/tests/estimator/rewrite/micro_batch_digests.txt"));
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(file, line);) lines[line.substr(0, line.find(' '))] = line;
  return lines;
}

}  // namespace

TEST_CASE("three micro-batches are what the lowering that unrolled them made") {
  const auto lines = recorded();
  const auto names = model_names(testing::source_path("/configs/models"));
  CHECK(lines.size() == names.size());
  for (const std::string& name : names) {
    const auto line = lines.find(name);
    const std::string found =
        fmt::format("{} {:016x} {:016x}", name, digest(name, 1), digest(name, 3));
    CHECK(found == (line == lines.end() ? "" : line->second));
  }
}

}  // namespace stowage
