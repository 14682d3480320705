// Kernels that write their result over an argument, and those that must not.
#include "estimator/rewrite/results_in_place.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "estimator/catalogue/operator_example.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/rewrite/node_order.hpp"
#include "estimator/step/kernel_table.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {
namespace {

using testing::described;
using testing::shipped;

StepGraph step_of(const ModelGraph& model, LoweringSettings settings, bool in_place) {
  settings.in_place = in_place;
  return *testing::lowered(model, settings);
}

/// A network of an input x, the given layers and a mean squared error of the last.
std::string net_of(const std::string& layers) {
  return "model: net\ninputs: {x: {shape: [batch, 8]}, t: {shape: [batch, 8]}}\nlayers:\n" +
         layers + "  - linear: {name: head, features: 8}\nloss:\n  mse: {from: [head, t]}\n";
}

const KernelNode& found_node(const StepGraph& step, std::string_view name) {
  const auto found = std::ranges::find(step.nodes, name, &KernelNode::name);
  REQUIRE_MESSAGE(found != step.nodes.end(), std::string(name));
  return *found;
}

/// The node writes a storage that it reads.
bool is_in_place(const StepGraph& step, std::string_view name) {
  const KernelNode& node = found_node(step, name);
  return std::ranges::any_of(node.writes, [&](const TensorView& written) {
    return std::ranges::count(node.reads, written.storage, &TensorView::storage) > 0;
  });
}

int nodes_in_place(const StepGraph& step) {
  return static_cast<int>(std::ranges::count_if(
      step.nodes, [&](const KernelNode& node) { return is_in_place(step, node.name); }));
}

/// Of each argument of each node: the node that wrote it last, and the node's own storage; -1: none
/// has.
std::vector<std::vector<std::int32_t>> writers(const StepGraph& step) {
  std::vector<std::int32_t> last(step.storages.size(), -1);
  std::vector<std::vector<std::int32_t>> of_nodes;
  for (std::size_t n = 0; n < step.nodes.size(); ++n) {
    std::vector<std::int32_t>& of = of_nodes.emplace_back();
    for (const TensorView& view : step.nodes[n].reads) of.push_back(last[view.storage.index()]);
    for (const StorageId id : step.nodes[n].holds) of.push_back(last[id.index()]);
    for (const TensorView& view : step.nodes[n].writes) {
      last[view.storage.index()] = static_cast<std::int32_t>(n);
    }
  }
  std::vector<std::int32_t>& kept = of_nodes.emplace_back();
  for (const auto* views : {&step.losses, &step.gradients, &step.inputs}) {
    for (const TensorView& view : *views) {
      if (view.storage.valid()) kept.push_back(last[view.storage.index()]);
    }
  }
  // The output is no result of a training step.
  const bool trains = step.settings.mode == Mode::train;
  if (!trains) kept.push_back(last[step.output.storage.index()]);
  return of_nodes;
}

/// Each argument is what the same node made; the step's file says so, and is read back.
void check_same_values(const StepGraph& in_place, const StepGraph& apart) {
  REQUIRE(in_place.nodes.size() == apart.nodes.size());
  for (std::size_t n = 0; n < apart.nodes.size(); ++n) {
    CHECK(in_place.nodes[n].name == apart.nodes[n].name);
  }
  CHECK(writers(in_place) == writers(apart));
}

void check_document(const ModelGraph& model, const StepGraph& step) {
  StepDocument document =
      make_document(model, {.lowering = {.in_place = true}}, Runtime::stowage, {}, step_alone)
          .value();
  document.graph = std::make_shared<const StepGraph>(step);
  const std::string text = write_step(document);
  const auto read = read_step(std::make_shared<const SourceText>(SourceText{"s", text}));
  if (!read) FAIL(render(read.error()));
  CHECK(*read->graph == step);
}

std::int64_t peak_bytes(const StepGraph& step, std::int64_t batch) {
  const auto sized = size_storages(std::make_shared<const StepGraph>(step), batch).value();
  const auto live = live_bytes(sized, {.with_workspaces = false}, storage_touches(step));
  return std::ranges::max(live).count();
}

}  // namespace

TEST_CASE("the backward of an activation writes over the gradient that it reads") {
  const ModelGraph model =
      described(net_of("  - linear: {name: a, from: x, features: 8}\n"
                       "  - gelu: {name: act}\n"));
  const StepGraph apart = step_of(model, {}, false), in_place = step_of(model, {}, true);
  CHECK(in_place.settings.in_place);
  CHECK_FALSE(is_in_place(apart, "act.backward"));
  CHECK(is_in_place(in_place, "act.backward"));
  const KernelNode& act = found_node(in_place, "act.backward");
  CHECK(in_place.storage(act.writes[0].storage).name == "head.grad_input");
  CHECK(found_node(in_place, "a.backward.filter").reads[1].storage == act.writes[0].storage);
  CHECK(in_place.storages.size() == apart.storages.size() - 2);  // and the loss's
  check_same_values(in_place, apart);
}

TEST_CASE("a loss's gradient takes the place of the model's output, and of nothing else") {
  const std::string layers = "  - linear: {name: a, from: x, features: 8}\n  - gelu: {name: act}\n";
  const StepGraph step = step_of(described(net_of(layers)), {}, true);
  CHECK(is_in_place(step, "loss.backward"));
  CHECK(found_node(step, "loss.backward").writes[0].storage == step.output.storage);
  // A mean squared error between two results of the network: only the first one is its output.
  const ModelGraph two = described(
      "model: net\ninputs: {x: {shape: [batch, 8]}}\nlayers:\n"
      "  - linear: {name: a, from: x, features: 8}\n  - linear: {name: b, features: 8}\n"
      "loss:\n  mse: {from: [a, b]}\n");
  const StepGraph both = step_of(two, {}, true);
  check_same_values(both, step_of(two, {}, false));
  for (const KernelNode& node : both.nodes) {
    if (node.phase != Phase::backward) continue;
    for (const TensorView& written : node.writes) {
      const bool is_output = written.storage == both.output.storage;
      const StorageClass of = both.storage(written.storage).storage_class;
      CHECK((is_output || of != StorageClass::activation));
    }
  }
  // Of an inference the output is the result.
  const StepGraph inference = step_of(described(net_of(layers)), {.mode = Mode::inference}, true);
  CHECK(inference.storage(inference.output.storage).name == "head");
}

TEST_CASE("a gradient that two branches read is overwritten by the last of them alone") {
  // The sum's gradient is that of both branches; first's backward comes second.
  const ModelGraph model =
      described(net_of("  - linear: {name: a, from: x, features: 8}\n"
                       "  - gelu: {name: first, from: a}\n"
                       "  - silu: {name: second, from: a}\n"
                       "  - add: {from: [first, second]}\n"));
  const StepGraph step = step_of(model, {}, true);
  CHECK_FALSE(is_in_place(step, "second.backward"));
  CHECK(is_in_place(step, "first.backward"));
  check_same_values(step, step_of(model, {}, false));
}

TEST_CASE("a gradient that is read again under another view is not overwritten") {
  const ModelGraph model =
      described(net_of("  - linear: {name: a, from: x, features: 8}\n"
                       "  - reshape: {name: r, from: a, shape: [batch * 2, 4]}\n"
                       "  - gelu: {name: seen}\n"
                       "  - reshape: {name: back, shape: [batch, 8]}\n"
                       "  - add: {name: sum, from: [a, back]}\n"));
  const StepGraph step = step_of(model, {}, true);
  // The gradient of a's own path is added to what comes back from seen.
  CHECK_FALSE(is_in_place(step, "seen.backward"));
  check_same_values(step, step_of(model, {}, false));
}

TEST_CASE("what reads its argument twice, repeats it or has another format makes room") {
  const ModelGraph square =
      described(net_of("  - linear: {name: a, from: x, features: 8}\n"
                       "  - mul: {name: square, from: [a, a]}\n"));
  const StepGraph step = step_of(square, {}, true);
  check_same_values(step, step_of(square, {}, false));
  for (const KernelNode& node : step.nodes) {
    for (const TensorView& written : node.writes) {
      CHECK(std::ranges::count(node.reads, written.storage, &TensorView::storage) <= 1);
    }
  }
  const ModelGraph repeated =
      described(net_of("  - linear: {name: a, from: x, features: 8}\n"
                       "  - mean: {name: level, axes: [1], keep: true}\n"
                       "  - mul: {name: wide, from: [a, level]}\n"));
  const StepGraph wide = step_of(repeated, {}, true);
  check_same_values(wide, step_of(repeated, {}, false));
  for (const KernelNode& node : wide.nodes) {
    for (std::size_t w = 0; w < node.writes.size(); ++w) {
      for (std::size_t r = 0; r < node.reads.size(); ++r) {
        if (node.reads[r].storage != node.writes[w].storage || updates_arguments(node.kernel)) {
          continue;
        }
        CHECK(may_write_over(node.kernel, w, r));
        CHECK(node.reads[r].shape == node.writes[w].shape);
        CHECK(node.reads[r].type == node.writes[w].type);
      }
    }
  }
}

TEST_CASE("a gradient that a parameter keeps is not overwritten") {
  // The parameter's gradient is the sum's, as it arrives; a scale's backward reads it, too.
  const ModelGraph model = described(
      "model: net\ninputs: {x: {shape: [4, 8]}, t: {shape: [4, 8]}}\nlayers:\n"
      "  - linear: {name: a, from: x, features: 8}\n  - scale: {name: s, factor: 2.0}\n"
      "  - parameter: {name: token, shape: [4, 8]}\n  - add: {name: sum, from: [s, token]}\n"
      "  - linear: {name: head, features: 8}\nloss:\n  mse: {from: [head, t]}\n");
  for (const ZeroGrad zero_grad : {ZeroGrad::to_none, ZeroGrad::to_zero}) {
    for (const int micro_batches : {1, 3}) {
      const LoweringSettings settings{.micro_batches = micro_batches,
                                      .step = {.zero_grad = zero_grad}};
      check_same_values(step_of(model, settings, true), step_of(model, settings, false));
    }
  }
}

TEST_CASE("an order that would overwrite a gradient before it is read is refused") {
  const ModelGraph model =
      described(net_of("  - linear: {name: a, from: x, features: 8}\n"
                       "  - gelu: {name: first, from: a}\n"
                       "  - silu: {name: second, from: a}\n"
                       "  - add: {from: [first, second]}\n"));
  const auto exchanged = [&](bool in_place) {
    const StepGraph step = step_of(model, {}, in_place);
    std::vector<std::int32_t> order;
    for (std::size_t n = 0; n < step.nodes.size(); ++n) {
      order.push_back(static_cast<std::int32_t>(n));
    }
    const auto at = [&](std::string_view name) {
      return static_cast<std::size_t>(&found_node(step, name) - step.nodes.data());
    };
    std::swap(order[at("first.backward")], order[at("second.backward")]);
    return with_order(step, runs_of_order(step, order));
  };
  CHECK(exchanged(false).has_value());
  const auto refused = exchanged(true);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().front().message ==
        "the step of 'net' cannot be reordered: 'first.backward' would run before "
        "'second.backward', on which it depends");
}

TEST_CASE("every operator's values are the same in place, and its file is read back") {
  int in_place = 0;
  for (const OperatorRow& row : operator_catalogue()) {
    CAPTURE(row.name);
    const ModelGraph model = described(example_description(row));
    for (const Mode mode : {Mode::train, Mode::inference}) {
      const StepGraph step = step_of(model, {.mode = mode}, true);
      check_same_values(step, step_of(model, {.mode = mode}, false));
      check_document(model, step);
      in_place += nodes_in_place(step);
    }
  }
  CHECK(in_place > 20);
}

TEST_CASE("whole networks: same values whatever else is rewritten, and a lower peak") {
  for (const char* name : {"vgg11", "resnet18", "unet", "mobilenet_v2", "bert-base", "gpt2"}) {
    CAPTURE(name);
    const ModelGraph model = shipped(name);
    const StepGraph apart = step_of(model, {}, false), in_place = step_of(model, {}, true);
    check_same_values(in_place, apart);
    check_document(model, in_place);
    CHECK(nodes_in_place(in_place) > nodes_in_place(apart));
    CHECK(peak_bytes(in_place, 4) <= peak_bytes(apart, 4));
    const LoweringSettings settings{.micro_batches = 2, .early_updates = true};
    check_same_values(step_of(model, settings, true), step_of(model, settings, false));
  }
}

TEST_CASE("what cannot work in place is refused") {
  const ModelGraph model = described(net_of("  - linear: {name: a, from: x, features: 8}\n"));
  const auto refusal = [](const StepGraph& step) {
    const auto made = with_results_in_place(step);
    REQUIRE_FALSE(made.has_value());
    return made.error().front().message;
  };
  const std::string net = "the step of 'net' cannot work in place: ";
  CHECK(refusal(step_of(model, {}, true)) == net + "it does already");
  CHECK(refusal(step_of(model, {.micro_batches = 2}, false)) ==
        net + "it has several micro-batches");
  CHECK(refusal(step_of(model, {.early_updates = true}, false)) == net + "its updates are early");
  CHECK(refusal(step_of(model, {.kernels = KernelSet::pytorch}, false)) ==
        net + "its kernels are those of pytorch, which makes room for every result");
}

}  // namespace stowage
