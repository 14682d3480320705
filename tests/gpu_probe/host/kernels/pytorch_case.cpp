#include "tests/gpu_probe/host/kernels/pytorch_case.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/source_directory.hpp"

namespace stowage::test {

using nlohmann::json;

namespace {

const json& reference() {
  static const json content =
      json::parse(std::ifstream(testing::source_path("/tests/reference/operators.json")));
  return content;
}

Tensor tensor_of(const json& value) {
  if (value.is_null()) return {};
  const auto shape = value["shape"].get<Sizes>();
  if (value["dtype"] == "int64") {
    return integer_tensor(shape, value["values"].get<std::vector<std::int64_t>>());
  }
  REQUIRE(value["dtype"] == "float32");
  return tensor(shape, value["values"].get<std::vector<float>>());
}

std::vector<std::pair<std::string, Tensor>> tensors_of(const json& owner, const char* key) {
  std::vector<std::pair<std::string, Tensor>> result;
  if (!owner.contains(key)) return result;
  for (const auto& [name, value] : owner[key].items()) result.emplace_back(name, tensor_of(value));
  return result;
}

AttributeValue attribute_of(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_array()) return value.get<Sizes>();
  return value.get<std::string>();
}

Attributes optimizer_attributes(const json& object, const std::string& op) {
  Attributes attributes;
  for (const auto& [name, value] : object.items()) {
    if (name == "lr") {
      attributes.set("learning_rate", value.get<double>());
    } else if (name == "eps") {
      attributes.set("epsilon", value.get<double>());
    } else if (name == "betas") {
      attributes.set("beta1", value[0].get<double>());
      attributes.set("beta2", value[1].get<double>());
    } else {
      attributes.set(name, attribute_of(value));
    }
  }
  if (op != "sgd") attributes.set("decoupled", op == "adamw");
  return attributes;
}

double worst = 0;

}  // namespace

Attributes json_attributes(const json& object) {
  Attributes attributes;
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) continue;
    attributes.set(name == "padding_idx" ? "padding_index" : name, attribute_of(value));
  }
  return attributes;
}

Tensor* Case::parameter(const std::string& name) {
  for (auto& [existing, value] : parameters) {
    if (existing == name) return &value;
  }
  return nullptr;
}

std::vector<Case> cases_of(const std::string& op) {
  std::vector<Case> result;
  for (const json& entry : reference()["cases"]) {
    if (entry["op"] != op) continue;
    Case c;
    c.name = entry["name"];
    c.op = op;
    c.attributes = json_attributes(entry["attributes"]);
    for (const json& input : entry["inputs"]) c.inputs.push_back(tensor_of(input));
    c.parameters = tensors_of(entry, "parameters");
    c.buffers_before = tensors_of(entry, "buffers_before");
    c.buffers_after = tensors_of(entry, "buffers_after");
    c.parameter_gradients = tensors_of(entry, "grad_parameters");
    c.output = tensor_of(entry["output"]);
    c.output_gradient = tensor_of(entry["grad_output"]);
    for (const json& gradient : entry["grad_inputs"]) {
      c.input_gradients.push_back(tensor_of(gradient));
    }
    result.push_back(std::move(c));
  }
  REQUIRE(!result.empty());
  return result;
}

std::vector<std::string> reference_operators() {
  std::set<std::string> names;
  for (const json& entry : reference()["cases"]) names.insert(entry["op"].get<std::string>());
  return {names.begin(), names.end()};
}

std::vector<OptimizerCase> table_optimizer_cases() {
  const json file =
      json::parse(std::ifstream(testing::source_path("/tests/reference/optimizers.json")));
  std::vector<OptimizerCase> result;
  for (const json& entry : file["values"]) {
    OptimizerCase c;
    c.op = entry["optimizer"];
    for (const auto& [name, value] : entry["settings"].items()) {
      c.attributes.set(name, attribute_of(value));
    }
    c.parameter = tensor_of(entry["parameter_before"]);
    c.name =
        c.op + " " + entry["settings"].dump() + " " + entry["parameter_before"]["shape"].dump();
    for (const json& step : entry["steps"]) {
      c.steps.push_back(
          {tensor_of(step["gradient"]), tensor_of(step["parameter"]), tensors_of(step, "state")});
    }
    result.push_back(std::move(c));
  }
  REQUIRE(!result.empty());
  return result;
}

std::vector<OptimizerCase> optimizer_cases() {
  std::vector<OptimizerCase> result;
  for (const json& entry : reference()["optimizers"]) {
    OptimizerCase c;
    c.name = entry["name"];
    c.op = entry["op"];
    c.attributes = optimizer_attributes(entry["attributes"], c.op);
    c.parameter = tensor_of(entry["parameter_before"]);
    for (const json& step : entry["steps"]) {
      c.steps.push_back(
          {tensor_of(step["gradient"]), tensor_of(step["parameter"]), tensors_of(step, "state")});
    }
    result.push_back(std::move(c));
  }
  return result;
}

double distance(const Tensor& actual, const Tensor& expected) {
  REQUIRE(actual.shape == expected.shape);
  REQUIRE(!expected.floats.empty());
  double difference = 0, magnitude = 0;
  for (std::size_t i = 0; i < expected.floats.size(); ++i) {
    const double gap = std::abs(static_cast<double>(actual.floats[i]) - expected.floats[i]);
    difference =
        std::isnan(gap) ? std::numeric_limits<double>::infinity() : std::max(difference, gap);
    magnitude = std::max(magnitude, std::abs(static_cast<double>(expected.floats[i])));
  }
  const double relative = difference == 0 ? 0 : difference / magnitude;
  worst = std::max(worst, relative);
  return relative;
}

double worst_distance() { return worst; }

}  // namespace stowage::test
