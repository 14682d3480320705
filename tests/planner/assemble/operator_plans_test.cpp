// Every operator's step is placed whole: with parameters left out or frozen, and with any choice
// made the other way, each node finds room for all that it writes and works in.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "estimator/catalogue/operator_example.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/validate/checks.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {
namespace {

/// The example with a further attribute of its operator; "": the example sets it itself.
std::string with_attribute(const OperatorRow& row, std::string_view attribute, bool value) {
  std::string text = example_description(row);
  if (example_lines(row).find(fmt::format("{}:", attribute)) != std::string_view::npos) return "";
  const std::string call = fmt::format("- {}", row.name);
  const std::size_t at = text.find(std::string(example_lines(row)));
  const std::size_t found = text.find(call, at);
  if (at == text.npos || found == text.npos) return "";
  const std::size_t end = found + call.size();
  const std::string set = fmt::format("{}: {}", attribute, value);
  if (text.compare(end, 3, ": {") == 0) return text.insert(end + 3, set + ", ");
  if (text.compare(end, 1, "\n") == 0) return text.insert(end, ": {" + set + "}");
  return "";
}

/// The checks that fail where the step is placed with everything on the GPU.
std::string misplaced(const StepGraph& graph) {
  const auto source = rule_workspace_source(8.6);
  const auto step = size_step(std::make_shared<const StepGraph>(graph), 4, *source);
  if (!step) return render(step.error());
  const ResidencyProblem problem = make_problem(*step, Rates{}, {.all_on_gpu = true});
  if (std::string wrong = ill_formed(problem); !wrong.empty()) return wrong;
  const Plan plan =
      assemble_plan(*step, problem, all_gpu_placement(problem), {.budget = GpuBudget::unlimited()});
  std::string failed;
  for (const Check& check : check_presence(plan)) {
    if (!check.passed) failed += check.name + ": " + check.detail + "\n";
  }
  return failed;
}

void check_placed(const ModelGraph& model) {
  for (const KernelSet kernels : all_kernel_sets) {
    CAPTURE(to_string(kernels));
    const auto graph = lower_step(model, {.kernels = kernels, .optimizer = {.name = "adam"}});
    if (graph) CHECK(misplaced(*graph) == "");  // our own kernels do not run every operator
  }
}

/// By parameter, whether it gets a gradient; empty: the kernels do not run the operator.
std::vector<bool> with_gradient(const ModelGraph& model, KernelSet kernels) {
  std::vector<bool> found;
  const auto graph = lower_step(model, {.kernels = kernels, .optimizer = {.name = "adam"}});
  if (!graph) return found;
  for (const TensorView& gradient : graph->gradients) found.push_back(gradient.storage.valid());
  return found;
}

}  // namespace

TEST_CASE("every operator is placed, whichever of its parameters are frozen") {
  for (const OperatorRow& row : operator_catalogue()) {
    CAPTURE(row.name);
    const ModelGraph model = testing::described(example_description(row));
    check_placed(model);
    const auto op = std::ranges::find(model.operators, &row, &Operator::row);
    REQUIRE(op != model.operators.end());
    for (const ParameterId id : op->parameters) {
      CAPTURE(model.parameter(id).name);
      ModelGraph frozen = model;
      frozen.parameters[id.index()].trainable = false;
      check_placed(frozen);
      for (const KernelSet kernels : all_kernel_sets) {  // all others learn as before
        CAPTURE(to_string(kernels));
        std::vector<bool> expected = with_gradient(model, kernels);
        if (!expected.empty()) expected[id.index()] = false;
        CHECK(with_gradient(frozen, kernels) == expected);
      }
    }
  }
}

TEST_CASE("every operator is placed with each of its choices made the other way") {
  int tried = 0;
  for (const OperatorRow& row : operator_catalogue()) {
    CAPTURE(row.name);
    for (const AttributeSpec& attribute : row.attributes) {
      if (attribute.type != AttributeType::boolean) continue;
      CAPTURE(attribute.name);
      for (const bool value : {false, true}) {
        const std::string text = with_attribute(row, attribute.name, value);
        if (text.empty()) continue;
        const auto model =
            load_model(std::make_shared<const SourceText>(SourceText{"test.yaml", text}));
        if (!model) continue;  // not every choice goes with the example
        ++tried;
        check_placed(*model);
      }
    }
  }
  CHECK(tried > 60);
}

TEST_CASE("what a step's file does not list as its node's scratch is placed all the same") {
  const ModelGraph model =
      testing::described(with_attribute(*find_operator("layer_norm"), "bias", false));
  StepDocument document = make_document(model, {.lowering = {.optimizer = {.name = "adam"}}},
                                        Runtime::stowage, {}, step_alone)
                              .value();
  StepGraph graph = *document.graph;
  int unlisted = 0;
  for (KernelNode& node : graph.nodes) {
    unlisted += static_cast<int>(node.temporaries.size());
    node.temporaries.clear();
  }
  CHECK(unlisted == 1);
  document.graph = std::make_shared<const StepGraph>(std::move(graph));
  const auto read =
      read_step(std::make_shared<const SourceText>(SourceText{"step.json", write_step(document)}));
  if (!read) FAIL(render(read.error()));
  CHECK(misplaced(*read->graph) == "");
}

}  // namespace stowage
