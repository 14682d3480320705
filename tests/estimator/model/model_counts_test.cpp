// Every shipped model that PyTorch's libraries have: parameters, their shapes, buffers and the
// output's shape are those of tests/reference/counts.json. One subcase a row: -sc="resnet*".
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "estimator/model/load_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

using nlohmann::json;
using ShapeCounts = std::map<std::vector<std::int64_t>, int>;

const std::string models_directory = testing::source_path("/configs/models");

const json& counted_models() {
  static const json rows = [] {
    std::ifstream file(testing::source_path("/tests/reference/counts.json"));
    return json::parse(file).at("models");
  }();
  return rows;
}

ModelGraph described(const json& row) {
  ModelOptions options;
  for (const auto& [name, value] : row.at("arguments").items()) {
    options.arguments[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  if (!row.at("seq").is_null()) options.seq = row.at("seq").get<std::int64_t>();
  if (row.at("model") == "unet") options.arguments["size"] = row.at("input_shape").at(2).dump();
  const auto found = find_model(row.at("model").get<std::string>(), models_directory);
  REQUIRE(found.has_value());
  auto model = load_model(found->source, overridden(found->options, options));
  if (!model) FAIL(render(model.error()));
  return std::move(*model);
}

ShapeCounts parameter_shapes(const ModelGraph& model) {
  ShapeCounts shapes;
  for (const Parameter& parameter : model.parameters) {
    if (!parameter.is_buffer) ++shapes[at_batch(parameter.type.shape, 1)];
  }
  return shapes;
}

std::int64_t buffer_bytes(const ModelGraph& model) {
  std::int64_t bytes = 0;
  for (const Parameter& parameter : model.parameters) {
    if (!parameter.is_buffer) continue;
    bytes += element_count(parameter.type.shape).constant * element_size(parameter.type.type);
  }
  return bytes;
}

/// transformers' GPT-2 has Conv1D for its linear layers, whose weight is the transposed one: there
/// a matrix counts as the same either way.
ShapeCounts with_matrices_either_way(const ShapeCounts& shapes) {
  ShapeCounts result;
  for (const auto& [written, count] : shapes) {
    std::vector<std::int64_t> shape = written;
    if (shape.size() == 2) std::sort(shape.begin(), shape.end());
    result[shape] += count;
  }
  return result;
}

std::string text_of(const ShapeCounts& shapes) {
  std::string text;
  for (const auto& [shape, count] : shapes)
    text += json(shape).dump() + " x " + std::to_string(count) + "\n";
  return text;
}

/// Tokens are one axis here, [batch * seq, vocabulary], and two in transformers.
std::vector<std::int64_t> with_joined_tokens(const std::vector<std::int64_t>& shape) {
  std::int64_t tokens = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) tokens *= shape[i];
  return {tokens, shape.back()};
}

}  // namespace

TEST_CASE("parameters, buffers and outputs are those that PyTorch counts") {
  const std::vector<std::string> shipped = model_names(models_directory);
  for (const json& row : counted_models()) {
    const auto model_name = row.at("model").get<std::string>();
    const bool is_shipped = std::binary_search(shipped.begin(), shipped.end(), model_name);
    if (row.at("arguments").contains("head")) continue;  // described is BertForMaskedLM
    SUBCASE(row.at("name").get<std::string>().c_str()) {
      CHECK(is_shipped);
      const ModelGraph model = described(row);
      CHECK(parameter_count(model) == row.at("parameters").get<std::int64_t>());
      CHECK(trainable_parameter_count(model) == row.at("trainable").get<std::int64_t>());
      CHECK(buffer_bytes(model) == row.at("buffer_bytes").get<std::int64_t>());
      ShapeCounts theirs;
      for (const json& shape : row.at("parameter_shapes")) {
        theirs[shape.at(0).get<std::vector<std::int64_t>>()] = shape.at(1).get<int>();
      }
      ShapeCounts shapes = parameter_shapes(model);
      if (model_name.ends_with("gpt2") || model_name.starts_with("gpt2")) {
        shapes = with_matrices_either_way(shapes);
        theirs = with_matrices_either_way(theirs);
      }
      CHECK(text_of(shapes) == text_of(theirs));
      auto ours = at_batch(model.tensor(model.output).type.shape, row.at("batch"));
      auto output = row.at("output_shapes").at(0).get<std::vector<std::int64_t>>();
      if (!row.at("seq").is_null()) {
        ours = with_joined_tokens(ours);
        output = with_joined_tokens(output);
      }
      CHECK(json(ours) == json(output));
    }
  }
}

}  // namespace stowage
