// Every tensor of every configuration under tests/hf, by name and shape, against transformers
// itself (tests/hf/counts.json, written by tests/reference/hf_counts.py).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "estimator/model/operator_row.hpp"
#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

using nlohmann::json;

/// "model.layers.N.mlp.up_proj.weight [160, 64]", and how often.
using TensorCounts = std::map<std::string, int>;

std::string with_numbers_left_out(std::string name) {
  static const std::regex digits("[0-9]+");
  name = std::regex_replace(name, digits, "N");
  // A list of different modules is one of layers with numbers in their names here.
  for (const char* const list : {"layers", "layer", "norms"}) {
    const std::regex numbered(fmt::format("\\.{}_N\\.", list));
    name = std::regex_replace(name, numbered, fmt::format(".{}.N.", list));
  }
  // The bias by distance stands beside the layers of T5's stacks, which all read it.
  static const std::regex bias("(encoder|decoder)\\.relative_attention_bias");
  return std::regex_replace(name, bias, "$1.block.N.layer.N.SelfAttention.relative_attention_bias");
}

/// A parameter that is no module's weight has the name of a layer here.
std::string bare_name(const std::string& name, const ModelGraph& model) {
  const auto owner = std::ranges::find_if(model.operators, [&](const Operator& op) {
    return name == op.name + ".weight" && (op.row->name == "parameter" || op.row->name == "scale");
  });
  return owner == model.operators.end() ? name : owner->name;
}

TensorCounts our_tensors(const ModelGraph& model, const json& row, const std::string& folder) {
  const bool base = row.at("class").get<std::string>().ends_with("Model") && folder != "gpt2" &&
                    folder != "distilgpt2" && folder != "gpt2-xl" && folder != "small-gpt2" &&
                    row.at("class") != "CLIPModel";
  std::map<std::string, std::string> first_name;
  for (const auto& [name, others] : row.at("alias").items()) {
    for (const json& other : others) first_name[other.get<std::string>()] = name;
  }
  TensorCounts counts;
  for (const Parameter& parameter : model.parameters) {
    if (parameter.is_buffer) continue;
    std::string name = with_numbers_left_out(bare_name(parameter.name, model));
    // The base class alone lacks the name under which the others have it.
    if (base) name = name.substr(name.find('.') + 1);
    if (const auto found = first_name.find(name); found != first_name.end()) name = found->second;
    Shape shape = parameter.type.shape;
    // GPT-2's Conv1D keeps its weight as [in, out].
    const bool conv1d = row.at("class").get<std::string>().starts_with("GPT2") &&
                        shape.size() == 2 && name.find(".c_") != std::string::npos;
    if (conv1d) std::swap(shape[0], shape[1]);
    ++counts[fmt::format("{} {}", name, to_string(shape))];
  }
  return counts;
}

TensorCounts their_tensors(const json& row) {
  TensorCounts counts;
  for (const json& tensor : row.at("tensors")) {
    Shape shape;
    for (const json& dimension : tensor.at(1)) shape.push_back(dimension.get<std::int64_t>());
    counts[fmt::format("{} {}", tensor.at(0).get<std::string>(), to_string(shape))] +=
        tensor.at(2).get<int>();
  }
  return counts;
}

std::string difference(const TensorCounts& a, const TensorCounts& b) {
  std::string text;
  for (const auto& [tensor, count] : a) {
    const auto other = b.find(tensor);
    if (other == b.end() || other->second != count) text += fmt::format("{} x {}; ", count, tensor);
  }
  return text;
}

json read_counts() {
  std::ifstream stream(testing::source_path("/tests/hf/counts.json"));
  return json::parse(stream);
}

}  // namespace

TEST_CASE("a configuration's tensors are transformers', by name and shape") {
  const json counts = read_counts();
  int published = 0;
  for (const auto& entry : counts.at("models").items()) {
    const std::string& folder = entry.key();
    const json& row = entry.value();
    CAPTURE(folder);
    // Whatever version a file states, the counts are of this one.
    const ModelGraph model =
        testing::hugging_face_model(folder, {.values = {{"transformers", "5.24"}}});
    CHECK(parameter_count(model) == row.at("parameters").get<std::int64_t>());
    CHECK(trainable_parameter_count(model) == row.at("trainable").get<std::int64_t>());
    const TensorCounts ours = our_tensors(model, row, folder), theirs = their_tensors(row);
    CHECK(difference(ours, theirs) == "");
    CHECK(difference(theirs, ours) == "");
    if (!folder.starts_with("small-") && !folder.starts_with("tiny-")) ++published;
  }
  CHECK(published >= 40);
}

}  // namespace stowage
