#include "tests/estimator/reference/reference_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "estimator/adapt/adapt.hpp"
#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::reference {

namespace {

using nlohmann::json;

const std::string our_models = testing::source_path("/configs/models");

std::string text_of(const json& value) { return value.is_string() ? value : json(value.dump()); }

std::int64_t bytes_at(const json& object, const char* key) {
  return object.at(key).get<std::int64_t>();
}

/// Reads the settings with which a reference was traced, and the arguments that its model needs.
void read_settings(const json& file, ReferenceModel& model) {
  const json& settings = file.at("settings");
  model.model = file.at("model").get<std::string>();
  model.precision = settings.value("precision", "fp32");
  model.options.precision = parse_precision(model.precision);
  if (settings.value("layout", "nchw") == "nhwc") model.layout = TensorLayout::channels_last;
  if (settings.contains("variant") && !settings.at("variant").is_null()) {
    model.variant = settings.at("variant").get<std::string>();
  }
  if (!settings.at("seq").is_null()) {
    model.seq = bytes_at(settings, "seq");
    model.options.seq = model.seq;
  }
  if (settings.contains("fine_tuning")) {
    const json& said = settings.at("fine_tuning");
    const auto take = [&](const char* key, std::optional<std::string>& text) {
      if (said.contains(key)) text = said.at(key).get<std::string>();
    };
    take("lora", model.options.fine_tuning.lora);
    take("base", model.options.fine_tuning.base);
    take("checkpoint", model.options.fine_tuning.checkpoint);
    take("chunked_loss", model.options.fine_tuning.chunked_loss);
    take("offload_activations", model.options.fine_tuning.offload_activations);
    take("optimizer_in_backward", model.options.fine_tuning.optimizer_in_backward);
    model.is_fine_tuned = true;
    model.trained_parameters = bytes_at(file, "trained_parameters");
  }
  if (settings.contains("arguments")) {
    for (const auto& [name, value] : settings.at("arguments").items()) {
      model.options.arguments[name] = text_of(value);
    }
  }
  if (model.model == "gpt2-nodropout") {
    model.model = "gpt2";
    model.options.arguments["dropout"] = "0.0";
  }
  if (model.model == "small-clip") {
    model.options.arguments["pairs"] = fmt::format("{}", model.batch);
  }
  if (model.model == "unet") {
    const json& shape = file.at("inputs").at("input").at("shape");
    model.options.arguments["size"] = shape.at(2).dump();
  }
}

void read_layers(const json& file, ReferenceModel& model) {
  if (file.contains("layers")) {
    model.layers_in_order = true;
    for (const json& layer : file.at("layers")) {
      model.layers.push_back({layer.at("type"), layer.at("output_shape")});
    }
  } else if (file.contains("layer_shapes")) {
    for (const json& row : file.at("layer_shapes")) {
      model.layers.push_back({row.at(0), row.at(1), row.at(2).get<int>()});
    }
  }
}

void read_saved(const json& file, ReferenceModel& model) {
  if (file.contains("saved_cuda")) {
    for (const json& saved : file.at("saved_cuda")) {
      std::string uses;
      for (const json& use : saved.at("saved_by")) {
        uses += fmt::format("{}{}.{}", uses.empty() ? "" : ", ", text_of(use.at("node")),
                            text_of(use.at("attribute")));
      }
      model.saved.push_back({saved.at("kind"), bytes_at(saved, "storage_bytes"), 1, uses});
    }
  } else if (file.contains("saved_multiset")) {
    for (const json& row : file.at("saved_multiset")) {
      model.saved.push_back({row.at(0), row.at(1).get<std::int64_t>(), row.at(2).get<int>(),
                             row.at(3).get<std::string>()});
    }
  }
}

void read_traces(const json& file, ReferenceModel& model) {
  for (const auto& [optimizer, trace] : file.at("step_trace_cuda").items()) {
    StepTrace read{.optimizer = optimizer,
                   .first_peak = bytes_at(trace, "step1_peak"),
                   .rounded_peak = bytes_at(trace, "step2_peak_rounded_512")};
    for (const auto& [phase, peak] : trace.at("step2_phases").items()) {
      read.phases[phase] = {bytes_at(peak, "peak"), text_of(peak.at("op"))};
    }
    model.traces.push_back(std::move(read));
  }
}

ReferenceModel read_reference(const std::filesystem::path& path) {
  std::ifstream stream(path);
  const json file = json::parse(stream);
  ReferenceModel model{.file = path.stem().string(), .batch = bytes_at(file, "batch")};
  read_settings(file, model);
  model.parameters = bytes_at(file, "parameters");
  model.parameter_bytes = bytes_at(file, "parameter_bytes");
  model.buffer_bytes = bytes_at(file, "buffer_bytes");
  read_layers(file, model);
  read_saved(file, model);
  read_traces(file, model);
  return model;
}

/// The configuration of transformers under tests/hf that a reference is of: all are called so.
bool is_traced_configuration(const std::string& model) { return model.starts_with("small-"); }

std::filesystem::path configuration_of(const std::string& model) {
  return testing::source_path("/tests/hf/") + model + "/config.json";
}

void read_traced_configurations(std::vector<ReferenceModel>& models) {
  const std::filesystem::path folder = testing::source_path("/tests/hf/traces");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    models.push_back(read_reference(entry.path()));
  }
}

std::vector<ReferenceModel> read_all() {
  std::vector<ReferenceModel> models;
  read_traced_configurations(models);
  const std::filesystem::path folder = testing::source_path("/tests/reference/models");
  const std::vector<std::string> described = model_names(our_models);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    ReferenceModel model = read_reference(entry.path());
    if (std::binary_search(described.begin(), described.end(), model.model)) {
      models.push_back(std::move(model));
    }
  }
  std::sort(models.begin(), models.end(),
            [](const auto& a, const auto& b) { return a.file < b.file; });
  return models;
}

}  // namespace

const std::vector<ReferenceModel>& reference_models() {
  static const std::vector<ReferenceModel> models = read_all();
  return models;
}

bool is_plain(const ReferenceModel& reference) {
  return reference.precision == "fp32" && reference.variant.empty() &&
         reference.layout == TensorLayout::contiguous && !reference.is_fine_tuned;
}

ModelGraph our_model(const ReferenceModel& reference) {
  return our_model(reference.model, reference.options);
}

ModelGraph our_model(const std::string& name, const ModelOptions& options) {
  if (is_traced_configuration(name)) {
    auto imported = import_model(read_file_head(configuration_of(name)),
                                 {.seq = options.seq, .values = options.arguments});
    if (!imported) throw std::runtime_error(render(imported.error()));
    auto model = load_model(imported->value().description, options);
    if (!model) throw std::runtime_error(render(model.error()));
    return *std::move(model);
  }
  const auto source = find_model(name, our_models);
  if (!source) throw std::runtime_error(render(source.error()));
  auto model = load_adapted(source->source, overridden(source->options, options));
  if (!model) throw std::runtime_error(render(model.error()));
  return *std::move(model);
}

SizedStep our_step(const ModelGraph& model, const ReferenceModel& reference,
                   const OptimizerSettings& optimizer) {
  auto graph = lower_step(model, {.kernels = KernelSet::pytorch, .optimizer = optimizer});
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
