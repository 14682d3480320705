// ONNX graphs whose shapes are computed from constants: the input is a program of nodes that fold,
// with numbers at the ends of their types, and the last value is a shape, an index or an addend of
// the network.
#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/onnx_writer.hpp"

using namespace stowage;
using namespace stowage::fuzz;

namespace {

constexpr std::size_t most_nodes = 400;

struct Kind {
  const char* type;
  std::size_t inputs;
  const char* attribute = nullptr;  // of one number
  const char* list = nullptr;       // of several
};

constexpr Kind kinds[] = {{"Add", 2},
                          {"Sub", 2},
                          {"Mul", 2},
                          {"Div", 2},
                          {"Mod", 2, "fmod"},
                          {"Min", 2},
                          {"Max", 2},
                          {"Equal", 2},
                          {"Less", 2},
                          {"LessOrEqual", 2},
                          {"Greater", 2},
                          {"GreaterOrEqual", 2},
                          {"And", 2},
                          {"Or", 2},
                          {"Not", 1},
                          {"Neg", 1},
                          {"Abs", 1},
                          {"Sqrt", 1},
                          {"Floor", 1},
                          {"Ceil", 1},
                          {"Identity", 1},
                          {"Cast", 1, "to"},
                          {"CastLike", 2},
                          {"Where", 3},
                          {"Shape", 1, "start"},
                          {"Size", 1},
                          {"Reshape", 2, "allowzero"},
                          {"Flatten", 1, "axis"},
                          {"Squeeze", 2},
                          {"Unsqueeze", 2},
                          {"Squeeze", 1, nullptr, "axes"},
                          {"Unsqueeze", 1, nullptr, "axes"},
                          {"Expand", 2},
                          {"Tile", 2},
                          {"Concat", 2, "axis"},
                          {"Concat", 3, "axis"},
                          {"Gather", 2, "axis"},
                          {"Slice", 3},
                          {"Slice", 4},
                          {"Slice", 5},
                          {"Transpose", 1, nullptr, "perm"},
                          {"Split", 1, "axis"},
                          {"Split", 2, "axis"},
                          {"Range", 3},
                          {"ConstantOfShape", 1},
                          {"ReduceSum", 1, "keepdims"},
                          {"ReduceProd", 1, nullptr, "axes"},
                          {"ReduceMin", 1, nullptr, "axes"},
                          {"ReduceMax", 1, "keepdims"},
                          {"ReduceMean", 1, nullptr, "axes"},
                          {"Trilu", 2, "upper"},
                          {"CumSum", 2, "reverse"},
                          {"NonZero", 1},
                          {"ScatterND", 3},
                          {"GatherND", 2},
                          {"OneHot", 3, "axis"}};

constexpr const char* uses[] = {"Reshape", "Expand", "Tile",  "Add",       "Mul",    "Gather",
                                "Pad",     "Slice",  "Split", "Unsqueeze", "Resize", "MatMul"};

std::vector<std::int64_t> numbers(Program& program, std::size_t most) {
  std::vector<std::int64_t> values(program.below(most + 1));
  for (std::int64_t& value : values) value = program.number();
  return values;
}

std::string graph_of(Program& program) {
  std::vector<std::string> names{"x"}, nodes, constants;
  for (std::size_t count = 1 + program.below(4); count > 0; --count) {
    const std::string name = "c" + std::to_string(constants.size());
    const std::vector<std::int64_t> values = numbers(program, 4);
    const auto length = static_cast<std::int64_t>(values.size());
    constants.push_back(
        constant(name, values, program.below(4) == 0 ? numbers(program, 2) : std::vector{length}));
    names.push_back(name);
  }
  while (!program.at_end() && nodes.size() < most_nodes) {
    const Kind& kind = kinds[program.below(std::size(kinds))];
    std::vector<std::string> inputs(kind.inputs), outputs{"n" + std::to_string(nodes.size())};
    for (std::string& input : inputs) {
      // The newest values are named most often, so that the program computes on.
      const std::size_t back = program.byte();
      input = back < 192 ? names[names.size() - 1 - back % std::min<std::size_t>(names.size(), 3)]
                         : names[back % names.size()];
    }
    std::string attributes;
    if (kind.attribute != nullptr) attributes += attribute(kind.attribute, program.number());
    if (kind.list != nullptr) attributes += attribute(kind.list, numbers(program, 4));
    if (kind.type == std::string_view("Split")) outputs.push_back(outputs.front() + "b");
    nodes.push_back(node(kind.type, inputs, outputs, attributes));
    names.insert(names.end(), outputs.begin(), outputs.end());
  }
  nodes.push_back(node(uses[program.below(std::size(uses))], {"x", names.back()}, {"y"}));
  return model(nodes, constants);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Program program(data, size);
  const auto source = std::make_shared<const SourceText>(SourceText{"fuzz", graph_of(program)});
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
