// A step file: read; what is read is written back and read again as the same; recorded calls are
// completed, once and for all; then it is sized at a batch that may be extreme, and checked on a
// small card; and an update that it lacks is added.
#include <array>

#include "estimator/check/check.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/recorded/complete_step.hpp"
#include "estimator/recorded/missing_update.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stowage;

namespace {

// Bounds on the work for one input, not on what is allowed.
constexpr std::size_t most_text = std::size_t{64} << 10;
constexpr std::size_t most_nodes = 2000;
constexpr std::size_t most_arena_nodes = 400;  // a search for an arena grows faster than its step

constexpr std::array<std::int64_t, 6> batches{
    1, 3, 64, 50'021, 1'000'000'000, std::int64_t{1} << 62};

void weigh(const StepDocument& document, std::size_t choice) {
  const bool has_arena = document.runtime == Runtime::stowage;
  if (document.graph->nodes.size() > (has_arena ? most_arena_nodes : most_nodes)) return;
  const std::int64_t batch =
      document.fixed_batch ? *document.batch : batches[choice % batches.size()];
  const auto rule = rule_workspace_source(8.6);
  RuntimeWorkspaceSource workspaces(*rule, document.runtime);
  const auto step = size_step(document.graph, batch, workspaces);
  if (!step) return fuzz::require_shown(step.error());
  const CheckReport report = check(*step, generic_card(8_GiB), {.runtime = document.runtime});
  fuzz::require(report.tensor_bytes() >= Bytes());
}

/// Two micro-batches out of what says that it is one: refused, or as many nodes as foretold.
void repeat(const StepGraph& graph) {
  if (graph.nodes.size() > most_nodes) return;
  const std::size_t foretold = nodes_with_micro_batches(graph, 2);
  const auto repeated = with_micro_batches(graph, 2);
  if (!repeated) return fuzz::require_shown(repeated.error());
  fuzz::require(repeated->nodes.size() <= foretold + graph.gradients.size());
}

/// An update of what the step does not update: refused, or a step that is written and read back.
void add_update(const StepDocument& document, std::size_t choice) {
  if (!missing_update(document) || document.graph->nodes.size() > most_nodes) return;
  const std::vector<std::string_view> names = optimizer_names();
  const auto optimizer = named_optimizer(names[choice % names.size()]);
  const auto updated = with_update(document, *optimizer);
  if (!updated) return fuzz::require_shown(updated.error());
  fuzz::require(!missing_update(*updated).has_value());
  const std::string written = write_step(*updated);
  const auto again = read_step(std::make_shared<const SourceText>(SourceText{"updated", written}));
  fuzz::require(again.has_value() && write_step(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > most_text) return -1;
  const auto document = read_step(fuzz::source_of(data, size));
  if (!document) {
    fuzz::require_shown(document.error());
    return 0;
  }
  const std::string written = write_step(*document);
  const auto again = read_step(std::make_shared<const SourceText>(SourceText{"written", written}));
  fuzz::require(again.has_value() && write_step(*again) == written);
  const auto whole = complete_step(*document);
  if (!whole) {
    fuzz::require_shown(whole.error());
    return 0;
  }
  const auto twice = complete_step(*whole);
  fuzz::require(twice.has_value() && write_step(*twice) == write_step(*whole));
  weigh(*whole, fuzz::choice(data, size));
  repeat(*whole->graph);
  add_update(*whole, fuzz::choice(data, size));
  return 0;
}
