#include "estimator/recorded/complete_step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "estimator/document/check_step_graph.hpp"
#include "estimator/pytorch/attention.hpp"
#include "estimator/recorded/aten_table.hpp"
#include "estimator/recorded/recorded_costs.hpp"
#include "estimator/rewrite/renumber.hpp"

namespace stowage {

namespace {

/// What the table says about a kernel, whatever its arguments are.
struct KnownCall {
  const AtenRow* row = nullptr;
  bool results_alone = false;
  bool is_told = false;  ///< among the unknown ones
};

/// One for each element of the result, or of the argument that is reduced.
void count_operations(KernelNode& node) {
  if (node.flops != Affine(0)) return;
  for (const auto* views : {&node.reads, &node.writes}) {
    if (!views->empty()) node.flops = larger(node.flops, element_count(views->front().shape));
  }
}

class StepCompletion {
 public:
  explicit StepCompletion(const StepGraph& recorded) : recorded_(recorded), step_(recorded) {}

  StepGraph run() {
    const std::size_t storages = recorded_.storages.size();
    step_.nodes.clear();
    step_.nodes.reserve(recorded_.nodes.size());
    for (const KernelNode& node : recorded_.nodes) {
      first_.push_back(NodeId::of(step_.nodes.size()));
      add(node);
      last_.push_back(NodeId::of(step_.nodes.size() - 1));
    }
    first_.push_back(NodeId::of(step_.nodes.size()));
    last_.push_back(NodeId::of(step_.nodes.size()));
    renumber();
    renumber_convolutions(step_);
    into_micro_batch(step_, storages);
    return std::move(step_);
  }

  [[nodiscard]] const std::vector<std::string>& unknown() const { return unknown_; }

  /// Precondition: run() was called.
  void renumber(std::vector<RecordedModule>& modules) const {
    for (RecordedModule& module : modules) {
      for (RecordedModule::Input& input : module.inputs) {
        if (input.held_until.valid()) input.held_until = last_[input.held_until.index()];
      }
    }
  }

 private:
  /// The table is looked up once for each name.
  KnownCall& known(const std::string& kernel) {
    const auto [at, is_new] = known_.try_emplace(kernel);
    if (is_new) at->second = {find_aten(kernel), allocates_only_results(kernel), false};
    return at->second;
  }

  void add(const KernelNode& node) {
    if (node.kernel != Kernel::foreign) return step_.nodes.push_back(node);
    try {
      add_foreign(node);
    } catch (const ArithmeticOverflow&) {
      refuse_call(node, "whose sizes go past 64 bits");
    } catch (const NotAffine&) {
      refuse_call(node, "whose sizes grow faster than the batch");
    }
  }

  void add_foreign(const KernelNode& node) {
    KnownCall& known = this->known(*node.foreign_kernel);
    if (known.row != nullptr && completed(node, *known.row)) return;
    step_.nodes.push_back(node);
    if (known.results_alone) {
      count_operations(step_.nodes.back());
    } else if (is_recorded_call(node) && !std::exchange(known.is_told, true)) {
      unknown_.push_back(*node.foreign_kernel);
    }
  }

  bool completed(const KernelNode& node, const AtenRow& row) {
    const AtenCall call(node);
    const std::size_t storages = step_.storages.size(), calls = step_.convolutions.size();
    CallCompletion completion(step_, call);
    if (!row.complete(completion)) {
      step_.storages.resize(storages);
      step_.convolutions.resize(calls);
      return false;
    }
    for (KernelNode& made : std::move(completion).take()) step_.nodes.push_back(std::move(made));
    return true;
  }

  /// References to the call's node become references to its first kernel or its last one.
  void renumber() {
    renumber_nodes(step_, last_);
    for (const auto& [storage, recorded] : recorded_.script_holds) {
      if (!recorded.loaded_before.valid()) continue;
      const NodeId before = first_[recorded.loaded_before.index()];
      step_.script_holds.update(storage, [&](ScriptHold& hold) { hold.loaded_before = before; });
    }
    for (std::size_t i = 0; i < recorded_.saved.size(); ++i) {
      const auto& recorded = recorded_.saved[i].call;
      if (!recorded || !recorded->unpacked_before.valid()) continue;
      step_.saved[i].call->unpacked_before = first_[recorded->unpacked_before.index()];
    }
    const MicroBatch& part = recorded_.micro_batch;
    if (part.first_node.valid()) step_.micro_batch.first_node = first_[part.first_node.index()];
    if (part.end_node.valid()) step_.micro_batch.end_node = first_[part.end_node.index()];
  }

  const StepGraph& recorded_;
  StepGraph step_;
  std::vector<NodeId> first_, last_;  // by recorded node, and one past the last
  std::unordered_map<std::string, KnownCall> known_;
  std::vector<std::string> unknown_;
};

bool is_recorded(const StepGraph& graph) {
  return std::ranges::any_of(graph.nodes, [](const KernelNode& node) {
    return node.kernel == Kernel::foreign &&
           (node.foreign_kernel->starts_with("aten::") || is_recorded_call(node));
  });
}

void add_warning(StepDocument& document, std::vector<std::string> kernels) {
  std::ranges::sort(kernels);
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  constexpr std::size_t most_names = 20;
  const std::size_t more = kernels.size() > most_names ? kernels.size() - most_names : 0;
  kernels.resize(kernels.size() - more);
  std::string names = fmt::format("{}", fmt::join(kernels, ", "));
  if (more > 0) names += fmt::format(" and {} others", more);
  Diagnostic warning{
      .severity = Severity::warning,
      .message = fmt::format("nothing is known of what these kernels allocate inside: {}", names),
      .hint = "they are weighed by their arguments and results alone"};
  const bool is_there = std::ranges::any_of(
      document.warnings, [&](const Diagnostic& other) { return other.message == warning.message; });
  if (!is_there) document.warnings.push_back(std::move(warning));
}

}  // namespace

Result<StepDocument> complete_step(StepDocument document) {
  std::vector<std::string> unknown;
  bool is_any = false;
  const std::optional<std::int64_t> batch = document.fixed_batch ? document.batch : std::nullopt;
  for (auto* graph : {&document.graph, &document.evaluation}) {
    if (*graph == nullptr || !is_recorded(**graph)) continue;
    is_any = true;
    try {
      StepCompletion completion(**graph);
      StepGraph whole = completion.run();
      if (auto found = step_graph_problem(whole, document.parameters, batch)) {
        return failure(*std::move(found));
      }
      *graph = std::make_shared<const StepGraph>(std::move(whole));
      if (graph == &document.graph) completion.renumber(document.modules);
      unknown.insert(unknown.end(), completion.unknown().begin(), completion.unknown().end());
    } catch (const CallRefused& refused) {
      return failure(refused.diagnostic);
    }
  }
  if (!is_any) return document;
  if (!unknown.empty()) add_warning(document, std::move(unknown));
  add_recorded_costs(document);
  return document;
}

Result<StepDocument> read_completed_step(SourceTextPtr source) {
  auto document = read_step(source);
  if (!document) return document;
  auto whole = complete_step(*std::move(document));
  if (!whole) {
    for (Diagnostic& found : whole.error()) found.span.source = source;
  }
  return whole;
}

}  // namespace stowage
