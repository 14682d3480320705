// The models of configs/models: they load without a warning, and count what PyTorch's count.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "estimator/model/load_model.hpp"

namespace stowage {

namespace {

const std::string models_directory = STOWAGE_SOURCE_DIR "/configs/models";

ModelGraph load_shipped(const std::string& name, const ModelOptions& options = {}) {
  const auto text = find_model(name, models_directory);
  REQUIRE(text.has_value());
  auto model = load_model(text->source, overridden(text->options, options));
  if (!model) FAIL(render(model.error()));
  return std::move(*model);
}

std::string shape_of(const ModelGraph& model, const std::string& tensor) {
  for (const ModelTensor& one : model.tensors) {
    if (one.name == tensor) return to_string(one.type.shape);
  }
  return "no tensor " + tensor;
}

// Of torchvision, transformers and the others named in each file's `source:`.
const std::map<std::string, std::int64_t> published_parameters = {
    {"mlp", 1'863'690},       {"mnist-cnn", 93'322},
    {"vgg16", 138'357'544},   {"resnet18", 11'689'512},
    {"resnet50", 25'557'032}, {"unet", 31'037'698},
    {"gpt2", 124'439'808},    {"keras-deep-16x16", 206'538'153}};

}  // namespace

TEST_CASE("every shipped model loads without a warning and has its published parameters") {
  const std::vector<std::string> names = model_names(models_directory);
  CHECK(names.size() >= published_parameters.size());
  for (const auto& [name, count] : published_parameters) {
    CAPTURE(name);
    const ModelGraph model = load_shipped(name);
    CHECK(parameter_count(model) == count);
    CHECK(trainable_parameter_count(model) == count);
    CHECK(render(model.warnings) == "");
    CHECK(model.name == name);
    CHECK(model.source != "");
    CHECK(model.loss.valid());
    CHECK(model.operators.back().outputs[0] == model.loss);
  }
}

TEST_CASE("the larger GPT-2s are arguments away") {
  // Hugging Face: gpt2-medium, gpt2-large, gpt2-xl.
  const auto count = [](const char* hidden, const char* layers, const char* heads) {
    return parameter_count(load_shipped(
        "gpt2", {.arguments = {{"hidden", hidden}, {"layers", layers}, {"heads", heads}}}));
  };
  CHECK(count("1024", "24", "16") == 354'823'168);
  CHECK(count("1280", "36", "20") == 774'030'080);
  CHECK(count("1600", "48", "25") == 1'557'611'200);
}

TEST_CASE("output shapes") {
  const ModelGraph resnet = load_shipped("resnet50");
  CHECK(shape_of(resnet, "layer1.0.shortcut") == "[batch, 256, 56, 56]");
  CHECK(shape_of(resnet, "layer4.2.conv3") == "[batch, 2048, 7, 7]");
  CHECK(shape_of(resnet, "layer4.2.shortcut") == "no tensor layer4.2.shortcut");
  CHECK(to_string(resnet.tensor(resnet.output).type.shape) == "[batch, 1000]");
  const ModelGraph unet = load_shipped("unet", {.arguments = {{"size", "64"}}});
  CHECK(shape_of(unet, "up1.join") == "[batch, 1024, 8, 8]");
  CHECK(shape_of(unet, "outc") == "[batch, 2, 64, 64]");
  const ModelGraph gpt2 = load_shipped("gpt2", {.seq = 128});
  CHECK(gpt2.default_seq == 1024);
  CHECK(shape_of(gpt2, "h.11.attention") == "[batch, 12, 128, 64]");
  CHECK(shape_of(gpt2, "logits") == "[128*batch, 50257]");
}

TEST_CASE("the tied head has the embedding's own parameter") {
  const ModelGraph model = load_shipped("gpt2");
  ParameterId table, head;
  for (const Operator& op : model.operators) {
    if (op.name == "wte") table = op.parameters.at(0);
    if (op.name == "lm_head") head = op.parameters.at(0);
  }
  CHECK(table.valid());
  CHECK(table == head);
  CHECK(model.parameter(head).name == "wte.weight");
}

}  // namespace stowage
