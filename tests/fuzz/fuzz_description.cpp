// A description: read, lowered for a runtime, sized at an extreme batch and checked on a small
// card.
#include <array>

#include "estimator/check/check.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stowage;

namespace {

// Bounds on the work for one input, not on what is allowed.
constexpr std::size_t most_text = std::size_t{16} << 10;
constexpr std::size_t most_operators_tried = 300;
constexpr std::size_t most_nodes = 2000;
constexpr std::size_t most_arena_nodes = 400;  // a search for an arena grows faster than its step

constexpr std::array<Runtime, 4> runtimes{Runtime::pytorch, Runtime::tensorflow, Runtime::stowage,
                                          Runtime::ideal};
constexpr std::array<std::int64_t, 8> batches{
    1, 3, 64, 50'021, 999'999'937, 1'000'000'000, std::int64_t{1} << 40, std::int64_t{1} << 62};

void weigh(const ModelGraph& model, std::size_t choice) {
  const Runtime runtime = runtimes[choice % runtimes.size()];
  choice /= runtimes.size();
  const std::int64_t batch = batches[choice % batches.size()];
  choice /= batches.size();
  LoweringSettings settings{.kernels = kernel_set_of(runtime),
                            .mode = choice % 2 == 0 ? Mode::train : Mode::inference,
                            .optimizer = model.optimizer,
                            .in_place = works_in_place(runtime),
                            .step = model.step};
  choice /= 2;
  settings.micro_batches = choice % 3 == 0 ? 2 : 1;
  if (has_master_weights(model.precision)) {
    settings.optimizer.master_weights = MasterWeights::weights;
  }
  auto graph = lower_step(model, settings);
  if (!graph) return fuzz::require_shown(graph.error());
  const bool has_arena = runtime == Runtime::stowage;
  if (graph->nodes.size() > (has_arena ? most_arena_nodes : most_nodes)) return;
  const auto rule = rule_workspace_source(8.6);
  RuntimeWorkspaceSource workspaces(*rule, runtime);
  const auto step =
      size_step(std::make_shared<const StepGraph>(*std::move(graph)), batch, workspaces);
  if (!step) return fuzz::require_shown(step.error());
  const CheckReport report = check(*step, generic_card(8_GiB), {.runtime = runtime});
  fuzz::require(report.tensor_bytes() >= Bytes());
  fuzz::require(report.fits == completes(*step, generic_card(8_GiB), {.runtime = runtime}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > most_text) return -1;
  const auto model = load_model(fuzz::source_of(data, size));
  if (!model) {
    fuzz::require_shown(model.error());
    return 0;
  }
  if (model->operators.size() <= most_operators_tried) weigh(*model, fuzz::choice(data, size));
  return 0;
}
