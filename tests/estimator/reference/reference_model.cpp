#include "tests/estimator/reference/reference_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "estimator/model/load_model.hpp"
#include "estimator/step/lower.hpp"

namespace stowage::reference {

std::vector<ReferenceModel> reference_models() {
  std::vector<ReferenceModel> models;
  const std::filesystem::path folder =
      std::filesystem::path(STOWAGE_SOURCE_DIR) / "tests/reference/models";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    ReferenceModel model{.file = entry.path().stem().string(), .json = nlohmann::json::parse(file)};
    model.batch = model.json.at("batch").get<std::int64_t>();
    const auto name = model.json.at("model").get<std::string>();
    model.model = name == "gpt2-nodropout" ? "gpt2" : name;
    models.push_back(std::move(model));
  }
  std::sort(models.begin(), models.end(),
            [](const auto& a, const auto& b) { return a.file < b.file; });
  return models;
}

ModelGraph our_model(const ReferenceModel& reference) {
  ModelOptions options;
  const nlohmann::json& seq = reference.json.at("settings").at("seq");
  if (!seq.is_null()) options.seq = seq.get<std::int64_t>();
  if (reference.json.at("model") == "gpt2-nodropout") options.arguments["dropout"] = "0.0";
  if (reference.model == "unet") {
    options.arguments["size"] =
        std::to_string(reference.json.at("inputs").at("input").at("shape").at(2).get<int>());
  }
  const std::string folder = std::string(STOWAGE_SOURCE_DIR) + "/configs/models";
  const auto source = find_model(reference.model, folder);
  if (!source) throw std::runtime_error(render(source.error()));
  auto model = load_model(source->source, overridden(source->options, options));
  if (!model) throw std::runtime_error(render(model.error()));
  return *std::move(model);
}

SizedStep our_step(const ModelGraph& model, const ReferenceModel& reference,
                   const OptimizerSettings& optimizer) {
  auto graph = lower(model, {.kernels = KernelSet::pytorch, .optimizer = optimizer});
  if (!graph) throw std::runtime_error(render(graph.error()));
  auto sized = size_storages(std::make_shared<const StepGraph>(*std::move(graph)), reference.batch);
  if (!sized) throw std::runtime_error(render(sized.error()));
  return *std::move(sized);
}

std::string surplus(const Multiset& a, const Multiset& b) {
  std::string text;
  for (const auto& [bytes, count] : a) {
    const auto other = b.find(bytes);
    const int more = count - (other == b.end() ? 0 : other->second);
    if (more > 0) text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", more, bytes);
  }
  return text;
}

}  // namespace stowage::reference
