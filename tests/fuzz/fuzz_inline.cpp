// ONNX files with functions: the input is a program that writes their bodies, which call one
// another and name inputs, outputs, attributes and constants that are there or not.
#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/onnx_writer.hpp"

using namespace stowage;
using namespace stowage::fuzz;

namespace {

constexpr std::size_t most_functions = 24, most_nodes = 60;
constexpr const char* layers[] = {"Relu",     "Add",     "MatMul", "Identity",
                                  "Constant", "Reshape", "Concat"};

std::string name_of(Program& program, std::size_t values) {
  switch (program.below(8)) {
    case 0:
      return "x";
    case 1:
      return "w";
    case 2:
      return "";
    case 3:
      return "y";
    default:
      return "t" + std::to_string(program.below(values + 1));
  }
}

// The nodes of a body, or of the graph, up to an end that the program writes.
std::vector<std::string> body(Program& program, std::size_t functions) {
  std::vector<std::string> nodes;
  while (!program.at_end() && nodes.size() < most_nodes) {
    const std::uint8_t what = program.byte();
    if (what < 32) break;
    std::vector<std::string> inputs(1 + what % 3), outputs(1 + what % 2);
    for (std::string& input : inputs) input = name_of(program, nodes.size());
    for (std::string& output : outputs) output = "t" + std::to_string(nodes.size() + 1);
    if (outputs.size() > 1) outputs.back() = name_of(program, nodes.size());
    if (what >= 128) {
      const std::string name = "f" + std::to_string(program.below(functions + 1));
      nodes.push_back(node(name, inputs, outputs, attribute("a", program.number()), "d"));
    } else {
      const char* type = layers[program.below(std::size(layers))];
      std::string attributes = attribute("axis", program.number());
      if (type == std::string_view("Constant")) {
        inputs.clear();
        attributes = what % 2 == 0 ? field(5, field(1, "value_int") + field(21, "a"))
                                   : attribute("value_ints", {program.number(), program.number()});
      }
      nodes.push_back(node(type, inputs, outputs, attributes));
    }
  }
  if (!nodes.empty()) {
    nodes.push_back(node("Identity", {"t" + std::to_string(nodes.size())}, {"y"}));
  }
  return nodes;
}

std::string function(Program& program, std::size_t number, std::size_t functions) {
  std::string out = field(1, "f" + std::to_string(number)) + field(4, "x") + field(5, "y");
  if (program.below(4) == 0) out += field(4, "w");
  if (program.below(4) == 0) out += field(5, "t1");
  if (program.below(4) == 0) out += field(6, "a");
  for (const std::string& each : body(program, functions)) out += field(7, each);
  return out + field(10, "d");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Program program(data, size);
  const std::size_t count = program.below(most_functions);
  std::vector<std::string> functions;
  for (std::size_t i = 0; i < count; ++i) functions.push_back(function(program, i, count));
  const std::string bytes = model(body(program, count), {constant("w", {8, 8}, {2})}, functions);
  const auto source = std::make_shared<const SourceText>(SourceText{"fuzz", bytes});
  const auto imported = import_model(file_head_of(source), {.allow_unknown = true});
  if (!imported) {
    require_shown(imported.error());
    return 0;
  }
  require(imported->has_value());
  const auto loaded = load_model((*imported)->description);
  if (!loaded) require_shown(loaded.error());
  return 0;
}
