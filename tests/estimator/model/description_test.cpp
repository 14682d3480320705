// The language, a small description at a time.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "estimator/base/bytes.hpp"
#include "estimator/model/load_model.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

Result<ModelGraph> read(const std::string& text, const ModelOptions& options = {}) {
  return load_model(std::make_shared<const SourceText>(SourceText{"net.yaml", text}), options);
}

ModelGraph load(const std::string& text, const ModelOptions& options = {}) {
  auto model = read(text, options);
  if (!model) FAIL(render(model.error()));
  return std::move(*model);
}

std::string refusal(const std::string& text, const ModelOptions& options = {}) {
  const auto model = read(text, options);
  return model ? "accepted" : render(model.error());
}

// "conv1(image) relu_1(conv1)": every operator with its inputs, in order of execution.
std::string wiring(const ModelGraph& model) {
  std::string text;
  for (const Operator& op : model.operators) {
    if (!text.empty()) text += " ";
    text += op.name + "(";
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      text += (i > 0 ? " " : "") + model.tensor(op.inputs[i]).name;
    }
    text += ")";
  }
  return text;
}

std::string output(const ModelGraph& model) {
  const ModelTensor& tensor = model.tensor(model.output);
  return tensor.name + " " + to_string(tensor.type.shape);
}

const std::string head = "model: net\ninputs: {x: {shape: [batch, 12]}}\n";

}  // namespace

TEST_CASE("a layer reads the one before, and is called after its operator") {
  const ModelGraph model =
      load(head + "layers: [relu, linear: {features: 4}, relu, relu: {name: r}, relu]");
  CHECK(wiring(model) == "relu_1(x) linear_1(relu_1) relu_2(linear_1) r(relu_2) relu_4(r)");
  CHECK(output(model) == "relu_4 [batch, 4]");
  CHECK_FALSE(model.loss.valid());
}

TEST_CASE("from takes a name, a list, or an output of several") {
  const ModelGraph model = load(head + R"(layers:
  - split: {name: thirds, parts: 3}
  - add: {name: sum, from: [thirds.0, thirds.2]}
  - concat: {from: [sum, thirds.1, sum]}
)");
  CHECK(wiring(model) == "thirds(x) sum(thirds.0 thirds.2) concat_1(sum thirds.1 sum)");
  CHECK(output(model) == "concat_1 [batch, 12]");
}

TEST_CASE("a layer may be named before it is written: the order is the nearest that works") {
  const ModelGraph model = load(head + R"(layers:
  - relu: {name: a}
  - add: {name: sum, from: [c, a]}
  - relu: {name: b, from: x}
  - relu: {name: c}
output: sum
)");
  CHECK(wiring(model) == "a(x) b(x) c(b) sum(c a)");
  CHECK(output(model) == "sum [batch, 12]");
}

TEST_CASE("blocks have arguments, inputs and outputs, and their layers its name before theirs") {
  const ModelGraph model = load(head + R"(blocks:
  unit:
    arguments: {features: , factor: 2, wide: factor * features}
    layers:
      - linear: {name: up, features: wide}
      - linear: {name: down, features: features}
      - add: {from: [down, input]}
  cross:
    layers:
      - add: {name: sum, from: [input.0, input.1]}
      - mul: {name: product, from: [input.0, input.1]}
    output: [product, sum]
layers:
  - unit: {name: first, features: 12}
  - unit: {features: 12, factor: 3}
  - cross: {name: both, from: [first, unit_2]}
  - add: {from: [both.0, both.1]}
)");
  CHECK(wiring(model) ==
        "first.up(x) first.down(first.up) first.add_1(first.down x) "
        "unit_2.up(first.add_1) unit_2.down(unit_2.up) unit_2.add_1(unit_2.down first.add_1) "
        "both.sum(first.add_1 unit_2.add_1) both.product(first.add_1 unit_2.add_1) "
        "add_1(both.product both.sum)");
  CHECK(parameter_count(model) == 12 * 24 + 24 + 24 * 12 + 12 + 12 * 36 + 36 + 36 * 12 + 12);
}

TEST_CASE("repeat chains instances; index counts them, from the innermost repetition") {
  const ModelGraph model = load(head + R"(blocks:
  pair: {layers: [linear: {name: fc, features: 4 + index}]}
  twice: {layers: [pair: {name: p, repeat: 2}, pair: {name: q}]}
layers:
  - linear: {name: fc, features: index + 1, repeat: 3}
  - twice: {name: t, repeat: 2}
  - add: {from: [fc.0, fc.0]}
  - relu: {name: last, from: t.0}
output: last
)");
  CHECK(wiring(model) ==
        "fc.0(x) fc.1(fc.0) fc.2(fc.1) t.0.p.0.fc(fc.2) t.0.p.1.fc(t.0.p.0.fc) "
        "t.0.q.fc(t.0.p.1.fc) t.1.p.0.fc(t.0.q.fc) t.1.p.1.fc(t.1.p.0.fc) t.1.q.fc(t.1.p.1.fc) "
        "add_1(fc.0 fc.0) last(t.0.q.fc)");
  CHECK(model.operators[2].attributes.integer("features") == 3);
  CHECK(model.operators[4].attributes.integer("features") == 5);
  CHECK(model.operators[5].attributes.integer("features") == 4);
  CHECK(model.operators[8].attributes.integer("features") == 5);
}

TEST_CASE("the first inputs of an instance are the outputs of the one before; the rest stay") {
  const ModelGraph model = load(head + R"(blocks:
  mix: {layers: [add: {name: sum, from: [input.0, input.1]}]}
layers:
  - relu: {name: memory}
  - mix: {name: m, from: [x, memory], repeat: 3}
)");
  CHECK(wiring(model) ==
        "memory(x) m.0.sum(x memory) m.1.sum(m.0.sum memory) m.2.sum(m.1.sum memory)");
}

TEST_CASE("an instance of a dense chain takes the outputs of all before it as well") {
  const ModelGraph model = load(head + R"(blocks:
  layer:
    layers:
      - concat: {name: joined, from: input.*}
      - linear: {name: fc, features: 4}
layers:
  - relu: {name: first}
  - layer: {name: d, repeat: 3, dense: true}
  - concat: {name: all, from: [first, d.*, d]}
)");
  CHECK(wiring(model) ==
        "first(x) d.0.joined(first) d.0.fc(d.0.joined) d.1.joined(first d.0.fc) "
        "d.1.fc(d.1.joined) d.2.joined(first d.0.fc d.1.fc) d.2.fc(d.2.joined) "
        "all(first d.0.fc d.1.fc d.2.fc d.2.fc)");
  CHECK(output(model) == "all [batch, 28]");
}

TEST_CASE("a layer of several inputs that is left out stands for the first") {
  const ModelGraph model = load(
      "model: m\ninputs: {x: {shape: [batch, 4]}}\nlayers:\n"
      "  - relu: {name: a, from: x}\n"
      "  - add: {name: s, from: [a, x], when: false}\n"
      "  - relu: {name: b}\n");
  REQUIRE(model.operators.size() == 2);
  CHECK(model.tensor(model.operators[1].inputs[0]).name == "a");
}

TEST_CASE("a layer that is left out stands for its input") {
  const std::string text = head + R"(arguments: {project: false}
blocks:
  unit:
    arguments: {project: }
    layers:
      - relu: {name: main}
      - linear: {name: down, from: input, when: project, features: 12}
      - layer_norm: {name: shortcut, when: project}
      - add: {name: sum, from: [main, shortcut]}
layers:
  - unit: {name: u, project: project}
  - unit: {name: v, project: index, repeat: 0}
  - relu: {name: last}
)";
  CHECK(wiring(load(text)) == "u.main(x) u.sum(u.main x) last(u.sum)");
  CHECK(wiring(load(text, {.arguments = {{"project", "true"}}})) ==
        "u.main(x) u.down(x) u.shortcut(u.down) u.sum(u.main u.shortcut) last(u.sum)");
}

TEST_CASE("values reach blocks: words, lists, conditions, sizes") {
  const ModelGraph model = load(R"(model: net
arguments: {act: none, p: 0.25}
inputs: {x: {shape: [batch, 4, 8, 8]}}
defaults: {conv2d: {bias: false}}
blocks:
  unit:
    arguments: {kernel: 3, padding: 0, pad: same, act: none, bias: pad == 1}
    layers:
      - conv2d: {name: a, channels: 4, kernel: kernel, padding: padding}
      - conv2d: {name: b, channels: 4, kernel: 3, padding: pad, bias: bias}
      - gelu: {name: g, approximate: act}
      - dropout: {name: d, p: p}
layers:
  - unit: {name: u, kernel: [1, 7], padding: [0, 3], act: tanh, bias: false}
  - unit: {name: v, kernel: 1 if index == 0 else 3, pad: 1}
)");
  const auto attributes = [&](const std::string& name) {
    std::string text;
    for (const Operator& op : model.operators) {
      if (op.name != name) continue;
      for (const auto& [key, value] : op.attributes.entries())
        text += key + "=" + to_string(value) + " ";
    }
    return text;
  };
  CHECK(
      attributes("u.a") ==
      "channels=4 kernel=[1, 7] stride=[1, 1] padding=[0, 3] dilation=[1, 1] groups=1 bias=false ");
  CHECK(attributes("u.b") ==
        "channels=4 kernel=[3, 3] stride=[1, 1] padding=same dilation=[1, 1] groups=1 bias=false ");
  CHECK(attributes("u.g") == "approximate=tanh ");
  CHECK(attributes("v.g") == "approximate=none ");
  CHECK(
      attributes("v.a") ==
      "channels=4 kernel=[1, 1] stride=[1, 1] padding=[0, 0] dilation=[1, 1] groups=1 bias=false ");
  CHECK(
      attributes("v.b") ==
      "channels=4 kernel=[3, 3] stride=[1, 1] padding=[1, 1] dilation=[1, 1] groups=1 bias=true ");
  CHECK(attributes("v.d") == "p=0.25 in_place=false ");
}

TEST_CASE("seq and the model's arguments come from outside") {
  const std::string text = R"(model: net
arguments: {width: 8, rate: 0.5, bias: true, form: none}
symbols: {seq: 16, half: seq // 2}
inputs: {x: {shape: [batch, seq, half, width]}}
layers: [linear: {features: width, bias: bias}, dropout: {p: rate}, gelu: {approximate: form}]
)";
  CHECK(output(load(text)) == "gelu_1 [batch, 16, 8, 8]");
  CHECK(load(text).default_seq == 16);
  const ModelGraph model =
      load(text,
           {.seq = 32,
            .arguments = {{"width", "2 * 3"}, {"rate", "0"}, {"bias", "false"}, {"form", "tanh"}}});
  CHECK(output(model) == "gelu_1 [batch, 32, 16, 6]");
  CHECK(model.default_seq == 16);
  CHECK(parameter_count(model) == 36);
  CHECK(refusal(text, {.arguments = {{"widht", "3"}}}) ==
        "<arguments>:1:1: error: the model has no argument or symbol 'widht'\n"
        "  widht=3\n"
        "  ^~~~~\n"
        "  did you mean 'width'?\n");
  CHECK(refusal(text, {.arguments = {{"rate", "true"}}}) ==
        "<arguments>:1:6: error: 'rate' takes a value like its default, the number 0.5, not "
        "'true'\n"
        "  rate=true\n"
        "       ^~~~\n");
  CHECK(refusal(head + "layers: [relu]", {.seq = 4}) ==
        "<seq>:1:1: error: the model has no symbol 'seq'\n  4\n  ^\n");
}

TEST_CASE("frozen layers and tied parameters") {
  const ModelGraph model = load(R"(model: net
inputs: {x: {shape: [batch], dtype: int64}}
blocks:
  pair:
    arguments: {frozen_first: false}
    layers:
      - linear: {name: a, features: 4, frozen: frozen_first}
      - linear: {name: b, features: 4, tie: {weight: a.weight}}
layers:
  - embedding: {name: wte, count: 10, features: 4}
  - pair: {name: p, frozen_first: true}
  - pair: {name: q, frozen: true}
  - linear: {name: head, features: 10, bias: false, tie: {weight: wte.weight}}
)");
  std::string text;
  for (const Parameter& parameter : model.parameters) {
    text += parameter.name + (parameter.trainable ? " " : "* ");
  }
  CHECK(text == "wte.weight p.a.weight* p.a.bias* p.b.bias q.a.weight* q.a.bias* q.b.bias* ");
  CHECK(parameter_count(model) == 40 + 16 + 4 + 4 + 16 + 4 + 4);
  CHECK(trainable_parameter_count(model) == 44);
}

TEST_CASE("train gives the optimizer, each with its own defaults") {
  const auto train = [](const std::string& text) {
    return load(head + "layers: [relu]\ntrain: " + text).optimizer;
  };
  CHECK(load(head + "layers: [relu]").optimizer == OptimizerSettings{});
  CHECK(train("{momentum: 0.9, nesterov: true}") ==
        OptimizerSettings{.momentum = 0.9, .nesterov = true});
  CHECK(train("{optimizer: adam, beta1: 0.8, epsilon: 1e-6}") ==
        OptimizerSettings{.name = "adam", .learning_rate = 0.001, .beta1 = 0.8, .epsilon = 1e-6});
  CHECK(train("{optimizer: adamw, learning_rate: 1 / 4.0}") ==
        OptimizerSettings{.name = "adamw", .learning_rate = 0.25, .weight_decay = 0.01});
}

TEST_CASE("the model's output is what the loss reads first, unless it is named") {
  const std::string text = R"(model: net
inputs: {x: {shape: [batch, 12]}, y: {shape: [batch, 4]}}
layers: [linear: {name: fc, features: 4}, relu: {name: act}]
loss: {mse: {from: [fc, y]}}
)";
  const ModelGraph model = load(text);
  CHECK(model.operators.back().name == "loss");
  CHECK(output(model) == "fc [batch, 4]");
  CHECK(render(model.warnings) ==
        "net.yaml:3:43: warning: the output of 'act' is never used\n"
        "  layers: [linear: {name: fc, features: 4}, relu: {name: act}]\n"
        "                                            ^~~~\n");
  CHECK(output(load(text + "output: act")) == "act [batch, 4]");
}

TEST_CASE("an integer that a symbol's product overflows is a mistake, not a number") {
  CHECK(
      refusal(head + "symbols: {n: 1000000000000}\nlayers: [reshape: {shape: [n * n * batch]}]") ==
      "net.yaml:4:30: error: the result leaves the 64-bit range\n"
      "  layers: [reshape: {shape: [n * n * batch]}]\n"
      "                               ^\n");
}

TEST_CASE("blocks nest 64 deep, and no deeper") {
  const auto nested = [](int depth) {
    std::string text = head + "blocks:\n  b1: {layers: [relu]}\n";
    for (int i = 2; i <= depth; ++i) {
      text += "  b" + std::to_string(i) + ": {layers: [b" + std::to_string(i - 1) + "]}\n";
    }
    return text + "layers: [b" + std::to_string(depth) + "]\n";
  };
  CHECK(load(nested(64)).operators.size() == 1);
  CHECK(refusal(nested(65)) ==
        "net.yaml:68:3: error: blocks nest deeper than 64\n    b65: {layers: [b64]}\n    ^~~\n");
  CHECK(refusal(nested(100000)).find("net.yaml:68:3: error: blocks nest deeper than 64\n") == 0);
}

TEST_CASE("bombs of layers that are left out, or of blocks that double, are refused") {
  std::string text = head + "blocks:\n  b0: {layers: [relu: {when: 0}]}\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string inner = "b" + std::to_string(i - 1);
    text += "  b" + std::to_string(i) + ": {layers: [" + inner + ", " + inner + "]}\n";
  }
  CHECK(refusal(text + "layers: [b40]\n").find("the model has more than 130000 layers") !=
        std::string::npos);
  CHECK(
      refusal(head +
              "blocks: {b: {layers: [relu, relu: {repeat: 1000}]}}\nlayers: [b: {repeat: 1000000}]")
          .find("net.yaml:4:10: error: the model has more than 130000 layers") !=
      std::string::npos);
  // A hundred bytes may not become gigabytes: the first repetition too many is the place.
  CHECK(refusal(head + "layers: [linear: {features: 4, repeat: 500000}]") ==
        "net.yaml:3:10: error: the model has more than 130000 layers\n"
        "  layers: [linear: {features: 4, repeat: 500000}]\n"
        "           ^~~~~~\n"
        "  every layer of every repetition and of every instance of a block counts\n");
  CHECK(
      refusal(head + "blocks: {b: {layers: [relu: {repeat: 400}]}}\nlayers: [b: {repeat: 400}]") ==
      "net.yaml:3:23: error: the model has more than 130000 layers\n"
      "  blocks: {b: {layers: [relu: {repeat: 400}]}}\n"
      "                        ^~~~\n"
      "  every layer of every repetition and of every instance of a block counts\n");
  std::string written = head + "layers:\n";
  for (int i = 0; i <= 130'000; ++i) written += "  - relu\n";
  CHECK(refusal(written).find("net.yaml:130004:5: error: the model has more than 130000 layers") ==
        0);
  // The inputs of a dense chain grow with the square of its length.
  CHECK(refusal(head + "layers: [concat: {name: d, repeat: 1000000, dense: true}]")
            .find("net.yaml:3:10: error: the model has more than 130000 layers") !=
        std::string::npos);
}

TEST_CASE("a message is as long as can be read, whatever it quotes") {
  std::string shape = "2";
  for (int i = 0; i < 10'000; ++i) shape += ", 2";
  const std::string shown =
      refusal("model: m\ninputs:\n  x: {shape: [" + shape + "]}\nlayers: [relu]\n");
  CHECK(shown.find("error: 'relu_1': a size of this layer leaves the 64-bit range") !=
        std::string::npos);
  CHECK(shown.size() < 2000);
}

TEST_CASE("of many mistakes twenty are shown") {
  std::string text = head + "layers:\n  - relu\n";
  for (int i = 0; i < 500; ++i) text += "  - rellu: {from: nowhere}\n";
  const std::string shown = refusal(text);
  CHECK(shown.find("net.yaml:14:5: error: unknown operator or block 'rellu'") != std::string::npos);
  CHECK(shown.find("net.yaml:15:5") == std::string::npos);
  CHECK(shown.find("... and 980 more") != std::string::npos);
}

TEST_CASE("a block's argument may have a model's argument as its default") {
  const ModelGraph model = testing::described(
      "model: m\n"
      "arguments: {width: 6, act: relu}\n"
      "inputs: {x: {shape: [batch, 4]}}\n"
      "blocks:\n"
      "  b: {arguments: {features: width, doubled: 2 * features}, layers: [linear: {features: "
      "doubled}]}\n"
      "layers: [b: {from: x}]\n");
  CHECK(model.tensor(model.output).type.shape == Shape{batch_symbol, 12});
}

}  // namespace stowage
