// Every optimizer, setting and implementation against PyTorch's, timm's and transformers' own:
// state tensors, when they appear, and the peaks of optimizer.step(), to the byte
// (tests/reference/optimizers.json, measured by tests/reference/optimizers.py).
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "estimator/memory/sized_step.hpp"
#include "tests/estimator/optimizer/lone_update.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

using nlohmann::ordered_json;

const ordered_json& reference() {
  static const ordered_json content =
      ordered_json::parse(std::ifstream(testing::source_path("/tests/reference/optimizers.json")));
  return content;
}

OptimizerSettings settings_of(const ordered_json& entry) {
  const OptimizerRow* row = find_optimizer(entry.at("optimizer").get<std::string>());
  REQUIRE(row != nullptr);
  OptimizerSettings settings = default_settings(*row);
  for (const auto& [name, value] : entry.at("settings").items()) {
    const OptimizerSetting* setting =
        find_setting(name == "max_grad_norm" ? "max_gradient_norm" : name);
    REQUIRE(setting != nullptr);
    // timm's None is our 0.
    if (value.is_boolean()) {
      set_value(settings, *setting, value.get<bool>());
    } else {
      set_value(settings, *setting, value.is_null() ? 0.0 : value.get<double>());
    }
  }
  for (const OptimizerImplementation implementation : implementations(*row)) {
    if (to_string(implementation) == entry.at("implementation").get<std::string>()) {
      settings.implementation = implementation;
    }
  }
  REQUIRE(settings.implementation != OptimizerImplementation::usual);
  return settings;
}

std::vector<NamedShape> parameters_of(const ordered_json& file) {
  std::vector<NamedShape> parameters;
  for (const auto& [name, shape] : file.at("shapes").items()) {
    parameters.push_back({name, shape.get<std::vector<std::int64_t>>()});
  }
  return parameters;
}

using StateRows = std::map<std::string, std::string>;  // by "fc1.weight.exp_avg"

std::string row_text(std::int64_t elements, std::string_view type) {
  return std::to_string(elements) + " " + std::string(type);
}

/// What the reference keeps on the device; `host_bytes` gets the rest.
StateRows expected_state(const ordered_json& entry, const std::vector<NamedShape>& parameters,
                         std::int64_t& host_bytes) {
  StateRows rows;
  for (const auto& [name, tensor] : entry.at("state").items()) {
    const auto type = parse_data_type(tensor.at("dtype").get<std::string>());
    REQUIRE(type.has_value());
    for (const NamedShape& parameter : parameters) {
      const ordered_json& shapes = tensor.at("shapes");
      std::vector<std::int64_t> shape;
      if (shapes == "parameter") {
        shape = parameter.shape;
      } else if (shapes.is_object()) {
        if (!shapes.contains(parameter.name)) continue;
        shape = shapes.at(parameter.name).get<std::vector<std::int64_t>>();
      }
      const std::int64_t elements = element_count({.shape = shape});
      if (tensor.at("device") == "cpu") {
        host_bytes += elements * element_size(*type);
      } else {
        rows[parameter.name + "." + name] = row_text(elements, to_string(*type));
      }
    }
  }
  return rows;
}

StateRows our_state(const StepGraph& graph) {
  StateRows rows;
  for (const KernelNode& node : graph.nodes) {
    for (const TensorView& view : node.writes) {
      const Storage& storage = graph.storage(view.storage);
      if (storage.storage_class != StorageClass::optimizer_state) continue;
      rows[storage.name] = row_text(element_count(view.shape).constant, to_string(view.type));
    }
  }
  return rows;
}

/// RAdam's first five steps have no variance to rectify, and so fewer temporaries than later ones.
bool has_lighter_first_steps(const ordered_json& entry) {
  return entry.at("optimizer") == "radam" && entry.at("implementation") == "for-loop";
}

void compare(const ordered_json& entry) {
  CAPTURE(entry.at("optimizer").get<std::string>());
  CAPTURE(entry.at("settings").dump());
  CAPTURE(entry.at("implementation").get<std::string>());
  CAPTURE(entry.at("dtype").get<std::string>());
  const std::vector<NamedShape> parameters = parameters_of(reference());
  const auto type = parse_data_type(entry.at("dtype").get<std::string>());
  const StepGraph graph = lone_update(parameters, *type, settings_of(entry));
  const auto bytes = [&](const char* key) { return entry.at(key).get<std::int64_t>(); };

  std::int64_t host_bytes = 0;
  CHECK(our_state(graph) == expected_state(entry, parameters, host_bytes));
  CHECK(graph.host_state_bytes == host_bytes);
  CHECK(state_bytes(graph, true) == bytes("constructed"));
  CHECK(state_bytes(graph, false) == bytes("after_step"));
  CHECK(update_peak(graph, StepNumber::steady) == bytes("late_peak"));
  if (has_lighter_first_steps(entry)) {
    CHECK(update_peak(graph, StepNumber::first) > bytes("step1_peak"));
    CHECK(bytes("late_peak") > bytes("step2_peak"));
  } else {
    CHECK(update_peak(graph, StepNumber::first) == bytes("step1_peak"));
    CHECK(bytes("late_peak") == bytes("step2_peak"));
  }
}

}  // namespace

TEST_CASE("state and step peaks of every optimizer are the library's own, to the byte") {
  std::set<std::string> compared;
  for (const ordered_json& entry : reference().at("cases")) {
    compare(entry);
    compared.insert(entry.at("optimizer").get<std::string>());
  }
  for (const OptimizerRow& row : optimizer_table()) {
    const bool needs_a_gpu = row.source.starts_with("bitsandbytes");
    CHECK_MESSAGE((compared.count(std::string(row.name)) == 1) != needs_a_gpu, row.name);
  }
}

TEST_CASE("the implementation taken where none is asked for is the library's own choice") {
  for (const auto& entry : reference().at("defaults").items()) {
    const OptimizerRow* row = find_optimizer(entry.key());
    REQUIRE(row != nullptr);
    CHECK_MESSAGE(to_string(row->usual) == entry.value().get<std::string>(), entry.key());
  }
}

}  // namespace stowage
