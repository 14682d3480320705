// Adapters, quantised bases and checkpointed blocks as changes of a model's graph. That their steps
// are peft's, bitsandbytes' and torchao's is in tests/estimator/reference.
#include "estimator/adapt/adapt.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "estimator/memory/sized_step.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/step/choose_step.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

const std::string blocks = R"(model: small
inputs: {tokens: {shape: [batch, 6], dtype: int64}, t: {shape: [batch, 6], dtype: int64}}
blocks:
  block:
    layers:
      - layer_norm: {name: norm}
      - linear: {name: up, features: 64}
      - relu: {name: act}
      - linear: {name: down, features: 32}
      - add: {from: [input, down]}
layers:
  - embedding: {name: table, from: tokens, count: 50, features: 32}
  - block: {name: layers, repeat: 4}
  - linear: {name: head, features: 50}
  - transpose: {axes: [0, 2, 1]}
loss: {cross_entropy: {from: [transpose_1, t]}}
)";

Result<ModelGraph> tuned(const FineTuningTexts& texts, Precision precision = Precision::fp32,
                         const std::string& text = blocks) {
  return load_adapted(std::make_shared<const SourceText>(SourceText{"small.yaml", text}),
                      {.precision = precision, .fine_tuning = texts});
}

ModelGraph tuned_model(const FineTuningTexts& texts, Precision precision = Precision::fp32) {
  auto model = tuned(texts, precision);
  if (!model) FAIL(render(model.error()));
  return *std::move(model);
}

std::string refusal_of(const FineTuningTexts& texts, Precision precision = Precision::fp32,
                       const std::string& text = blocks) {
  const auto model = tuned(texts, precision, text);
  return model ? std::string() : render(model.error());
}

std::string notes_of(const ModelGraph& model) { return render(model.warnings); }

const Operator* operator_named(const ModelGraph& model, std::string_view name) {
  const auto found = std::find_if(model.operators.begin(), model.operators.end(),
                                  [&](const Operator& op) { return op.name == name; });
  return found == model.operators.end() ? nullptr : &*found;
}

std::vector<std::string> trained_names(const ModelGraph& model) {
  std::vector<std::string> names;
  for (const Parameter& parameter : model.parameters) {
    if (parameter.trainable && !parameter.is_buffer) names.push_back(parameter.name);
  }
  return names;
}

int regions_of(const ModelGraph& model) {
  int most = -1;
  for (const Operator& op : model.operators) most = std::max(most, op.region);
  return most + 1;
}

}  // namespace

TEST_CASE("adapters stand behind their layers, and all else is frozen") {
  const ModelGraph model = tuned_model({.lora = "r=2,alpha=4,dropout=0.1,targets=layers.0.up"});
  CHECK(trained_names(model) ==
        std::vector<std::string>{"layers.0.up.lora_A.weight", "layers.0.up.lora_B.weight"});
  const Operator* const sum = operator_named(model, "layers.0.up.lora_sum");
  REQUIRE(sum != nullptr);
  CHECK(sum->attributes.real("factor") == 2);
  CHECK(operator_named(model, "layers.0.act")->inputs == sum->outputs);
  CHECK(model.tensor(sum->outputs.front()).producer.index() ==
        static_cast<std::size_t>(sum - model.operators.data()));
  CHECK(notes_of(model) ==
        "note: adapters on 1 layer: 192 of 20466 parameters are trained (0.9381 percent)\n");
}

TEST_CASE("every linear layer but the output's can be meant at once") {
  const ModelGraph model = tuned_model({.lora = "targets=all-linear,r=1"});
  CHECK(operator_named(model, "layers.3.down.lora_A") != nullptr);
  CHECK(operator_named(model, "head.lora_A") == nullptr);
  CHECK(trained_names(model).size() == 16);
}

TEST_CASE("embeddings and convolutions take adapters") {
  const ModelGraph table = tuned_model({.lora = "r=2,targets=table"});
  CHECK(trained_names(table) ==
        std::vector<std::string>{"table.lora_embedding_A.weight", "table.lora_embedding_B.weight"});
  const std::string images =
      "model: images\n"
      "inputs: {x: {shape: [batch, 4, 8, 8]}, t: {shape: [batch, 6, 4, 4]}}\n"
      "layers:\n"
      "  - conv2d: {name: conv, from: x, channels: 6, kernel: 3, padding: 1, stride: 2}\n"
      "loss: {mse: {from: [conv, t]}}\n";
  const auto model = tuned({.lora = "r=2,targets=conv"}, Precision::fp32, images);
  REQUIRE(model);
  CHECK(trainable_parameter_count(*model) == 2 * 4 * 9 + 6 * 2);
  CHECK(lower_step(*model, {}).has_value());
}

TEST_CASE("biases and whole layers may be trained beside adapters") {
  const ModelGraph targets = tuned_model({.lora = "r=2,targets=layers.0.up,bias=lora_only"});
  CHECK(trained_names(targets).front() == "layers.0.up.bias");
  const ModelGraph all = tuned_model({.lora = "r=2,targets=layers.0.up,bias=all"});
  CHECK(trained_names(all).size() == 2 + 13);
  const ModelGraph saved = tuned_model({.lora = "r=2,targets=up,modules_to_save=head"});
  CHECK(operator_named(saved, "head")->parameters.size() == 2);
  const std::vector<std::string> names = trained_names(saved);
  CHECK(std::count(names.begin(), names.end(), "head.weight.modules_to_save") == 1);
  CHECK(parameter_count(saved) ==
        parameter_count(testing::described(blocks)) + 4 * 8 * (32 + 64) / 4 + 33 * 50);
}

TEST_CASE("beside 16 bits adapters are float32, unless they are to be as the base") {
  const auto type_of_a = [](const std::string& lora, Precision precision) {
    const ModelGraph model = tuned_model({.lora = lora}, precision);
    const Operator* const a = operator_named(model, "layers.0.up.lora_A");
    return model.parameter(a->parameters.front()).type.type;
  };
  CHECK(type_of_a("targets=up", Precision::bf16) == DataType::float32);
  CHECK(type_of_a("targets=up,dtype=bf16", Precision::bf16) == DataType::bfloat16);
  CHECK(type_of_a("targets=up", Precision::mixed_bf16) == DataType::bfloat16);
  CHECK(type_of_a("targets=up", Precision::fp64) == DataType::float64);
}

TEST_CASE("DoRA trains a magnitude for each row of a layer's weight") {
  for (const std::string dropout : {"", ",dropout=0.1"}) {
    const ModelGraph model = tuned_model({.lora = "r=2,use_dora,targets=layers.0.up" + dropout});
    CHECK(trained_names(model) ==
          std::vector<std::string>{"layers.0.up.lora_A.weight", "layers.0.up.lora_B.weight",
                                   "layers.0.up.lora_magnitude_vector.weight"});
    CHECK(trainable_parameter_count(model) == 2 * (32 + 64) + 64);
    const Operator* const last = operator_named(model, "layers.0.up.dora_sum");
    REQUIRE(last != nullptr);
    CHECK(operator_named(model, "layers.0.act")->inputs == last->outputs);
  }
}

TEST_CASE("DoRA is lowered for every base that it is predicted beside, and every kernel set") {
  for (const std::string base : {"", "nf4", "nf4,double_quant=false", "int8"}) {
    for (const std::string dropout : {"", ",dropout=0.1"}) {
      CAPTURE(base + dropout);
      FineTuningTexts texts{.lora = "r=2,use_dora,targets=all-linear" + dropout};
      if (!base.empty()) texts.base = base;
      const ModelGraph model = tuned_model(texts, Precision::bf16);
      for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
        for (const Mode mode : {Mode::train, Mode::inference}) {
          CHECK(lower_step(model, {.kernels = kernels, .mode = mode}).has_value());
        }
      }
    }
  }
}

TEST_CASE("DoRA is refused where it is not predicted, with the layer and what it is") {
  const auto refused = [](const FineTuningTexts& texts) {
    const std::string text = refusal_of(texts, Precision::bf16);
    return text.substr(0, text.find('\n'));
  };
  CHECK(refused({.lora = "use_dora,targets=table"}) ==
        "small.yaml:12:5: error: 'table' is an embedding, beside which DoRA is not predicted");
  CHECK(refused({.lora = "use_dora,targets=up", .base = "fp8"}) ==
        "small.yaml:7:9: error: 'layers.0.up' is a linear layer of float8 weights, beside which "
        "DoRA is not predicted");
}

TEST_CASE("ranks of layers' own are those of their adapters, and a pattern must mean a target") {
  const ModelGraph model =
      tuned_model({.lora = "r=2,targets=up+down,rank_pattern=layers.1.up:5+down:3"});
  const auto rank_of = [&](std::string_view layer) {
    return operator_named(model, std::string(layer) + ".lora_A")->attributes.integer("features");
  };
  CHECK(rank_of("layers.0.up") == 2);
  CHECK(rank_of("layers.1.up") == 5);
  CHECK(rank_of("layers.3.down") == 3);
  CHECK(refusal_of({.lora = "targets=up+down,rank_pattern=dwn:3"}) ==
        "error: 'dwn' of 'rank_pattern' is none of the targets\n  did you mean 'down'?\n");
  CHECK(refusal_of({.lora = "targets=up,alpha_pattern=head:3"}) ==
        "error: 'head' of 'alpha_pattern' is none of the targets\n  targets are up\n");
}

TEST_CASE("beside 4 bits an adapter is added to a copy of the layer's result") {
  const ModelGraph four = tuned_model({.lora = "targets=up", .base = "nf4"}, Precision::bf16);
  CHECK(operator_named(four, "layers.0.up.lora_copy") != nullptr);
  const Operator* const sum = operator_named(four, "layers.0.up.lora_sum");
  CHECK(four.tensor(sum->inputs[1]).type.type == DataType::bfloat16);
  const ModelGraph eight = tuned_model({.lora = "targets=up", .base = "int8"}, Precision::bf16);
  CHECK(operator_named(eight, "layers.0.up.lora_copy") == nullptr);
  CHECK(operator_named(eight, "layers.0.up.lora_output") != nullptr);
}

TEST_CASE("names that mean no layer are refused, with near ones") {
  CHECK(refusal_of({.lora = "targets=dwn"}) ==
        "error: no layer of 'small' is called 'dwn'\n  did you mean 'down'?\n");
  CHECK(refusal_of({.lora = "targets=xyzzy"}) ==
        "error: no layer of 'small' is called 'xyzzy'\n"
        "  what takes an adapter: down, head, table, up\n");
  CHECK(refusal_of({.lora = "targets=layers.0.act"}) ==
        "small.yaml:8:9: error: 'layers.0.act' is relu, which is none that takes an adapter\n"
        "        - relu: {name: act}\n"
        "          ^~~~\n");
  CHECK(refusal_of({.lora = "targets=up,modules_to_save=layers.0.up"}) ==
        "error: 'layers.0.up' is a target and a module to save: one of them\n");
}

TEST_CASE("a quantised base keeps its count of parameters and trains nothing") {
  const ModelGraph plain = testing::described(blocks);
  for (const std::string format : {"nf4", "fp4", "int8", "fp8", "nf4,double_quant=false"}) {
    CAPTURE(format);
    const ModelGraph model = tuned_model({.base = format}, Precision::bf16);
    CHECK(parameter_count(model) == parameter_count(plain));
    CHECK(trainable_parameter_count(model) == 0);
    const auto chosen = choose_step(model, {.mode = Mode::train});
    REQUIRE_FALSE(chosen);
    CHECK(chosen.error().front().message ==
          "a base in " + format.substr(0, format.find(',')) + " is not trained itself");
    for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
      CHECK(lower_step(model, {.kernels = kernels, .mode = Mode::inference}).has_value());
    }
  }
}

TEST_CASE("a weight of 4 bits takes half a byte a value, and its maxima what bitsandbytes makes") {
  const ModelGraph model = tuned_model({.base = "nf4"});
  const Operator* const up = operator_named(model, "layers.0.up");
  CHECK(up->row->name == "linear_4bit");
  std::vector<std::string> state;
  for (const ParameterId id : up->parameters) {
    const Parameter& parameter = model.parameter(id);
    state.push_back(parameter.name.substr(std::string("layers.0.up.").size()) + " " +
                    std::string(to_string(parameter.type.type)) + " " +
                    to_string(parameter.type.shape));
  }
  CHECK(state == std::vector<std::string>{
                     "weight uint8 [1024, 1]", "bias float32 [64]", "weight.absmax uint8 [32]",
                     "weight.quant_map float32 [16]", "weight.nested_absmax float32 [1]",
                     "weight.nested_quant_map float32 [256]", "weight.nested_offset float32 []"});
}

TEST_CASE("what a quantised base leaves alone can be said") {
  const ModelGraph usual = tuned_model({.base = "int8"});
  CHECK(operator_named(usual, "layers.3.down")->row->name == "linear_8bit");
  const ModelGraph skipping = tuned_model({.base = "int8,skip=down"});
  CHECK(operator_named(skipping, "layers.3.down")->row->name == "linear");
  CHECK(notes_of(skipping) ==
        "note: 5 linear layers in int8\n"
        "note: not counted: columns of an int8 layer's input with a value of 6 or more "
        "(LLM.int8()'s outliers), which depend on the values; training keeps such a column beside "
        "the input, 2 bytes a row\n");
  CHECK(refusal_of({.base = "int8,skip=dwn"}) ==
        "error: no layer of 'small' is called 'dwn'\n  did you mean 'down'?\n");
  CHECK(refusal_of({.base = "nf4"}, Precision::amp_bf16) ==
        "error: a base in nf4 computes in the format of its inputs, under fp32, fp16 or bf16, not "
        "under amp-bf16\n");
}

TEST_CASE("the repeated blocks are checkpointed, each or every n-th") {
  const ModelGraph all = tuned_model({.checkpoint = "all"});
  CHECK(regions_of(all) == 4);
  CHECK(operator_named(all, "table")->region == -1);
  CHECK(operator_named(all, "layers.2.act")->region == 2);
  CHECK(notes_of(all) == "note: checkpointed: 4 blocks, layers.0 to layers.3\n");
  const ModelGraph second = tuned_model({.checkpoint = "every=2"});
  CHECK(regions_of(second) == 2);
  CHECK(operator_named(second, "layers.1.act")->region == -1);
  CHECK(operator_named(second, "layers.2.act")->region == 1);
  const ModelGraph named = tuned_model({.checkpoint = "layers=layers.1+*.act"});
  CHECK(notes_of(named) == "note: checkpointed: 4 blocks, layers.0.act to layers.3.act\n");
  const ModelGraph adapters = tuned_model({.lora = "targets=up", .checkpoint = "all"});
  CHECK(operator_named(adapters, "layers.2.up.lora_A")->region == 2);
}

TEST_CASE("products that a selective checkpoint keeps do not run again") {
  const ModelGraph model = tuned_model({.checkpoint = "selective=matmul"});
  CHECK(notes_of(model) ==
        "note: checkpointed: 4 blocks, layers.0 to layers.3, which keep the results of 8 "
        "operators\n");
  const auto step = lower_step(model, {.kernels = KernelSet::pytorch});
  REQUIRE(step);
  const auto again = [&](std::string_view layer) {
    return std::any_of(step->nodes.begin(), step->nodes.end(), [&](const KernelNode& node) {
      return node.name.starts_with(layer) && node.name.ends_with(".recomputed");
    });
  };
  CHECK(again("layers.1.norm"));
  CHECK(again("layers.1.act"));
  CHECK_FALSE(again("layers.1.up"));
  CHECK(refusal_of({.checkpoint = "selective=attention"}) ==
        "error: the checkpointed blocks of 'small' have no attention to keep\n");
}

TEST_CASE("fine-tunes go together, with several micro-batches too") {
  for (const std::string base : {"nf4", "int8", "fp8", "gptq,group=32", "gptq,bits=2,group=32",
                                 "awq,group=32", "int4,group=32"}) {
    for (const std::string checkpoint : {"all", "selective=matmul", "every=3"}) {
      CAPTURE(base);
      CAPTURE(checkpoint);
      const ModelGraph model = tuned_model(
          {.lora = "r=2,dropout=0.1,targets=all-linear", .base = base, .checkpoint = checkpoint},
          Precision::bf16);
      for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
        for (const int micro_batches : {1, 3}) {
          const auto step = lower_step(model, {.kernels = kernels,
                                               .micro_batches = micro_batches,
                                               .in_place = kernels == KernelSet::stowage});
          if (!step) FAIL(render(step.error()));
          CHECK(step->gradients.size() == model.parameters.size());
          CHECK(size_storages(std::make_shared<const StepGraph>(*step), 2).has_value());
        }
      }
    }
  }
}

TEST_CASE("a kept result that is overwritten is refused, as PyTorch refuses it") {
  std::string overwriting = blocks;
  overwriting.replace(overwriting.find("{name: act}"), 11, "{name: act, in_place: true}");
  const auto model = tuned({.checkpoint = "selective=matmul"}, Precision::fp32, overwriting);
  REQUIRE(model);
  const auto step = lower_step(*model, {.kernels = KernelSet::pytorch});
  REQUIRE_FALSE(step);
  CHECK(render(step.error()) ==
        "error: 'layers.0.act' overwrites the result of 'layers.0.up', which a selective "
        "checkpoint is to keep\n");
}

TEST_CASE("a model without blocks is told how to name its layers") {
  const std::string chain =
      "model: chain\n"
      "inputs: {x: {shape: [batch, 4]}, y: {shape: [batch, 4]}}\n"
      "layers:\n"
      "  - linear: {name: fc, from: x, features: 4, repeat: 3}\n"
      "loss: {mse: {from: [fc, y]}}\n";
  CHECK(refusal_of({.checkpoint = "all"}, Precision::fp32, chain) ==
        "error: 'chain' has no repeated block to checkpoint\n"
        "  name layers or blocks by their paths: checkpoint layers=PATTERN\n");
  CHECK(refusal_of({.checkpoint = "layers=fb.*"}, Precision::fp32, chain) ==
        "error: no layer or block of 'chain' fits 'fb.*'\n"
        "  stowage summary lists the layers' paths; '*' stands for any characters\n");
}

TEST_CASE("a layer may have a format of its own, and its input is converted to it") {
  const ModelGraph model = tuned_model({.layer_dtype = "*norm=fp32,head=fp32"}, Precision::bf16);
  const auto type_of = [&](std::string_view name) {
    return model.parameter(operator_named(model, name)->parameters.front()).type.type;
  };
  CHECK(type_of("layers.0.norm") == DataType::float32);
  CHECK(type_of("layers.0.up") == DataType::bfloat16);
  CHECK(operator_named(model, "layers.0.up.input0.to")->attributes.text("dtype") == "bfloat16");
  CHECK(operator_named(model, "head.input0.to")->attributes.text("dtype") == "float32");
  CHECK(model.tensor(model.output).type.type == DataType::float32);
  for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
    CHECK(lower_step(model, {.kernels = kernels}).has_value());
  }
  std::string written = blocks;
  written.replace(written.find("{name: norm}"), 12, "{name: norm, precision: fp64}");
  const auto own = tuned({}, Precision::fp32, written);
  REQUIRE(own);
  CHECK(own->parameter(operator_named(*own, "layers.0.norm")->parameters.front()).type.type ==
        DataType::float64);
}

TEST_CASE("formats that no kernel takes together are refused") {
  const std::string attention =
      "model: attention\n"
      "inputs: {x: {shape: [batch, 1, 6, 8]}, y: {shape: [batch, 1, 6, 8]}}\n"
      "layers:\n"
      "  - linear: {name: q, from: x, features: 8}\n"
      "  - linear: {name: v, from: x, features: 8, precision: fp32}\n"
      "  - scaled_dot_product_attention: {name: mixed, from: [q, q, v]}\n"
      "loss: {mse: {from: [mixed, y]}}\n";
  const std::string refusal = refusal_of({}, Precision::bf16, attention);
  CHECK(
      refusal.substr(0, refusal.find("small.yaml:4")) ==
      "small.yaml:6:62: error: 'mixed': its inputs are bfloat16 and float32, and its kernels read "
      "one format\n"
      "    - scaled_dot_product_attention: {name: mixed, from: [q, q, v]}\n"
      "                                                               ^\n"
      "  give the layers before it one precision, or put a cast behind one\n");
}

}  // namespace stowage
