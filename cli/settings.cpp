#include "cli/settings.hpp"

#include <fmt/format.h>

namespace stowage {

namespace {

// The settings that each framework's documentation shows.
OptimizerSettings named_optimizer(const std::string& name) {
  OptimizerSettings settings;
  if (name == "momentum") {
    settings.momentum = 0.9;
  } else if (name != "sgd") {
    settings.name = name;
    settings.learning_rate = 1e-3;
  }
  if (name == "adamw") settings.weight_decay = 0.01;
  return settings;
}

}  // namespace

Result<RequestedModel> requested_model(const Arguments& arguments, const ConfigDirectory& configs) {
  auto source = find_model(arguments.positionals().front(), configs.models());
  if (!source) return tl::unexpected(std::move(source.error()));
  ModelOptions options{.seq = arguments.integer("seq"), .arguments = arguments.assignments("set")};
  auto graph = load_model(*source, options);
  if (!graph) return tl::unexpected(std::move(graph.error()));
  return RequestedModel{std::move(*source), std::move(options), std::move(*graph)};
}

Result<LoweringSettings> requested_lowering(const Arguments& arguments, const ModelGraph& model,
                                            KernelSet kernels) {
  const bool trains = model.loss.valid();
  const std::string mode = arguments.text("mode").value_or(trains ? "train" : "inference");
  if (mode == "train" && !trains) {
    return failure(
        command_line_error(fmt::format("--mode train: the model '{}' has no loss", model.name),
                           "give its description a loss, or say --mode inference"));
  }
  LoweringSettings settings;
  settings.kernels = kernels;
  settings.mode = mode == "train" ? Mode::train : Mode::inference;
  const auto optimizer = arguments.text("optimizer");
  settings.optimizer = optimizer ? named_optimizer(*optimizer) : model.optimizer;
  return settings;
}

}  // namespace stowage
