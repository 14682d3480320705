// The models of configs/models: all of them load without a warning and become steps of both kernel
// sets. What they count is held against PyTorch in model_counts_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include "estimator/memory/sized_step.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/step/lower.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

const std::string shipped_models_directory = testing::source_path("/configs/models");

ModelGraph load_shipped(const std::string& name, const ModelOptions& options = {}) {
  const auto text = find_model(name, shipped_models_directory);
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

std::ptrdiff_t line_count(const std::string& name) {
  std::ifstream file(shipped_models_directory + "/" + name + ".yaml");
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

}  // namespace

TEST_CASE("every shipped model loads without a warning") {
  const std::vector<std::string> names = model_names(shipped_models_directory);
  CHECK(names.size() >= 38);
  for (const std::string& name : names) {
    CAPTURE(name);
    const ModelGraph model = load_shipped(name);
    CHECK(render(model.warnings) == "");
    CHECK(model.name == name);
    CHECK(model.source != "");
    CHECK(model.loss.valid());
    CHECK(model.operators.back().outputs[0] == model.loss);
    // Whisper's positions in the encoder are sines that do not train: 1,500 of 768.
    const std::int64_t frozen = name == "whisper-small" ? 1500 * 768 : 0;
    CHECK(trainable_parameter_count(model) == parameter_count(model) - frozen);
    CHECK(line_count(name) <= 150);
  }
}

TEST_CASE("every shipped model loads in every precision, and what it computes has that format") {
  for (const std::string& name : model_names(shipped_models_directory)) {
    CAPTURE(name);
    for (const std::string_view word : precision_names()) {
      CAPTURE(word);
      const Precision precision = parse_precision(word).value();
      // PyTorch refuses binary_cross_entropy under autocast too.
      if (name == "dcgan-discriminator" && autocast_type(precision)) continue;
      const ModelGraph model = load_shipped(name, {.precision = precision});
      if (name != "stable-diffusion-unet" || precision != Precision::fp16) continue;
      // The sines of the time step are of float32, and what they are added to is not.
      for (const Operator& op : model.operators) {
        if (op.row->name != "add") continue;
        CAPTURE(op.name);
        CHECK(model.tensor(op.outputs[0]).type.type == DataType::float16);
      }
    }
  }
}

TEST_CASE("every shipped model is a step of both kernel sets, in training and inference") {
  for (const std::string& name : model_names(shipped_models_directory)) {
    CAPTURE(name);
    const ModelGraph model = load_shipped(name);
    for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
      for (const Mode mode : {Mode::train, Mode::inference}) {
        CAPTURE(to_string(kernels));
        CAPTURE(to_string(mode));
        auto lowered =
            lower(model, {.kernels = kernels, .mode = mode, .optimizer = model.optimizer});
        if (!lowered) FAIL(render(lowered.error()));
        const auto graph = std::make_shared<const StepGraph>(*std::move(lowered));
        for (const std::int64_t batch : {1, 2, 64}) {
          const auto sized = size_storages(graph, batch);
          if (!sized) FAIL(render(sized.error()));
          CHECK(sized->storage_bytes.size() == graph->storages.size());
        }
      }
    }
  }
}

TEST_CASE("networks of hundreds of layers take few lines") {
  CHECK(line_count("resnet152") + line_count("resnet50") < 60);
  CHECK(line_count("densenet121") < 60);
  CHECK(line_count("gpt2-xl") + line_count("gpt2") < 60);
}

TEST_CASE("larger GPT-2 models are the shipped one with other arguments") {
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
