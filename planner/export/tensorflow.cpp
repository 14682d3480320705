// tf.device takes a function from an operation to a device's name; its operations' names begin with
// the name of the Keras layer that made them. tf.config.set_logical_device_configuration limits
// memory, tf.control_dependencies orders (TensorFlow 2.21's documentation).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/document/step_text.hpp"
#include "estimator/step/node_dependences.hpp"
#include "planner/export/layer_placement.hpp"
#include "planner/export/plan_text.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

std::string_view device_name(Device device) {
  return device == Device::gpu ? "/device:GPU:0" : "/device:CPU:0";
}

std::string python_row(const std::string& name, Device device) {
  return fmt::format("    {}: {},\n", step_text::json_text(name),
                     step_text::json_text(device_name(device)));
}

/// Pairs of layers in a row, the first of which runs first though nothing of it reaches the second.
std::vector<std::pair<std::string, std::string>> ordered_layers(const Plan& plan) {
  const StepGraph& graph = *plan.step.graph;
  std::vector<std::pair<std::string, std::string>> pairs;
  if (graph.settings.order.empty()) return pairs;
  const auto before = node_dependences(graph);
  for (std::size_t i = 1; i < graph.nodes.size(); ++i) {
    const std::string first(graph.layer(graph.nodes[i - 1].op)),
        second(graph.layer(graph.nodes[i].op));
    const bool forward = graph.nodes[i].phase == Phase::forward;
    if (!forward || first.empty() || second.empty() || first == second) continue;
    if (std::ranges::binary_search(before[i], static_cast<std::int32_t>(i) - 1)) continue;
    pairs.emplace_back(first, second);
  }
  return pairs;
}

constexpr std::string_view functions = R"(

def layer_of(name):
    """The layer whose operation has this name, as "gradient_tape/model/conv1/Conv2D" has conv1."""
    for part in reversed(name.split("/")):
        if part in LAYERS:
            return part
    return None


def place(operation):
    """The device of an operation, as tf.device takes it: with tf.device(place): ..."""
    layer = layer_of(operation.name)
    return LAYERS[layer] if layer else ""


def update_device(variable):
    """The device on which the plan updates a variable."""
    return UPDATES.get(variable, "/device:GPU:0")


def limit_memory(tf):
    """Call it before the first operation runs."""
    gpu = tf.config.list_physical_devices("GPU")[0]
    limit = tf.config.LogicalDeviceConfiguration(memory_limit=MEMORY_LIMIT_MIB)
    tf.config.set_logical_device_configuration(gpu, [limit])
)";

std::vector<std::string> tensorflow_remarks(const Plan& plan, const LayerPlacement& layers,
                                            const std::map<std::string, Device>& updates) {
  std::vector<std::string> lines;
  if (!plan.transfers.empty()) {
    Bytes moved;
    for (const Transfer& transfer : plan.transfers) moved += plan.bytes(transfer.storage);
    lines.push_back(
        fmt::format("{} copies of {} that free memory of the GPU: TensorFlow copies where a "
                    "layer's input is on "
                    "the other device, and frees nothing earlier for it",
                    plan.transfers.size(), format_bytes(moved)));
  }
  const auto list = [&](const std::vector<std::string>& names, std::string_view what) {
    if (names.empty()) return;
    const std::size_t shown = std::min<std::size_t>(names.size(), 5);
    lines.push_back(fmt::format(
        "{} layers {}: {}{}", names.size(), what,
        fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        names.size() > shown ? " and others" : ""));
  };
  list(layers.split, "with forward kernels on both devices, placed where the first of them is");
  list(layers.backward,
       "whose backward is elsewhere than their forward, which TensorFlow colocates");
  if (std::ranges::any_of(updates, [](const auto& row) { return row.second == Device::cpu; })) {
    lines.emplace_back(
        "updates on the CPU: a variable's slots are where the variable is, so that the variable is "
        "made on the device that update_device says");
  }
  const LoweringSettings& settings = plan.step.graph->settings;
  if (settings.micro_batches > 1) {
    lines.push_back(
        fmt::format("{} micro-batches: the training loop runs them", settings.micro_batches));
  }
  if (!settings.recomputed.empty()) {
    lines.push_back(
        fmt::format("{} values that backward makes again: tf.recompute_grad is of whole "
                    "functions",
                    settings.recomputed.size()));
  }
  lines.emplace_back("addresses, and when a copy begins: TensorFlow chooses them");
  return lines;
}

}  // namespace

Result<PlanText> tensorflow_placement(const Plan& plan) {
  if (const std::string mismatch = two_sides_mismatch(plan.machine); !mismatch.empty()) {
    return failure("a plan for another machine than one GPU and its host is not exported: " +
                   mismatch);
  }
  const LayerPlacement layers = layer_placement(plan);
  const std::map<std::string, Device> updates = update_placement(plan);
  const Bytes limit =
      plan.inputs.budget.is_limited() ? plan.inputs.budget.bytes : plan.inputs.card.cuda_total;
  constexpr std::int64_t mebibyte = 1 << 20;
  std::string text =
      fmt::format("MEMORY_LIMIT_MIB = {}\n\n# By layer, in the order of the step.\nLAYERS = {{\n",
                  std::max<std::int64_t>(1, limit.count() / mebibyte));
  for (const auto& [layer, device] : layers.layers) text += python_row(layer, device);
  text += "}\n\n# By variable: where it is updated.\nUPDATES = {\n";
  for (const auto& [name, device] : updates) text += python_row(name, device);
  text += "}\n\n# (first, second): second waits for first, tf.control_dependencies.\nORDER = [\n";
  for (const auto& [first, second] : ordered_layers(plan)) {
    text +=
        fmt::format("    ({}, {}),\n", step_text::json_text(first), step_text::json_text(second));
  }
  text += "]\n";
  text += functions;
  std::vector<bool> on_gpu(plan.step.graph->storages.size(), true);
  // A parameter that is updated on the CPU is made there, and visits the GPU.
  for (std::size_t i = 0; i < on_gpu.size(); ++i) {
    const Storage& storage = plan.step.graph->storages[i];
    const auto update = updates.find(storage.name);
    on_gpu[i] = update == updates.end() || update->second == Device::gpu;
  }
  return PlanText{.body = std::move(text),
                  .remarks = tensorflow_remarks(plan, layers, updates),
                  .gpu_peak = peak_without_plan(plan, on_gpu)};
}

}  // namespace stowage
