// Settings of fine-tuning: as one line of text, and in `train:`.
#include "estimator/model/fine_tuning.hpp"

#include <doctest/doctest.h>

#include <string>

#include "estimator/model/layer_match.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

template <typename T>
std::string fine_tuning_mistakes(const Result<T>& read) {
  return read ? std::string() : render(read.error());
}

std::string tuned_description(const std::string& train) {
  return "model: m\n"
         "inputs: {x: {shape: [batch, 4]}, y: {shape: [batch, 4]}}\n"
         "layers:\n"
         "  - linear: {name: a, from: x, features: 4}\n"
         "loss:\n"
         "  mse: {from: [a, y]}\n"
         "train: {" +
         train + "}\n";
}

std::string mistakes_in(const std::string& train) {
  const auto model = load_model(
      std::make_shared<const SourceText>(SourceText{"net.yaml", tuned_description(train)}), {});
  return fine_tuning_mistakes(model);
}

}  // namespace

TEST_CASE("adapters are said in one line") {
  const auto lora = parse_lora(
      "r=16,alpha=32,dropout=0.05,targets=q_proj+v_proj,dtype=bf16,bias=lora_only,use_rslora,"
      "modules_to_save=head,dora=false");
  REQUIRE(lora);
  CHECK(lora->rank == 16);
  CHECK(lora->dropout == 0.05);
  CHECK(lora->targets == std::vector<std::string>{"q_proj", "v_proj"});
  CHECK(lora->modules_to_save == std::vector<std::string>{"head"});
  CHECK(lora->type == DataType::bfloat16);
  CHECK(lora->bias == LoraBias::lora_only);
  CHECK(scaling_of(*lora) == 8);
  CHECK_FALSE(lora->decomposed);
  CHECK(parse_lora("targets=a,use_dora")->decomposed);
  CHECK(parse_lora("targets=a,dora=true")->decomposed);
  const auto usual = parse_lora("targets=all-linear");
  REQUIRE(usual);
  CHECK(usual->rank == 8);
  CHECK(scaling_of(*usual) == 1);
}

TEST_CASE("a layer may have a rank and an alpha of its own: the first pattern that fits") {
  const auto lora = parse_lora(
      "r=8,targets=all-linear,rank_pattern=mlp.up:32+up:4+layers.1.*:2,alpha_pattern=up:64");
  REQUIRE(lora);
  CHECK(settings_of_layer(*lora, "layers.0.mlp.up").rank == 32);
  CHECK(settings_of_layer(*lora, "layers.0.up").rank == 4);
  CHECK(settings_of_layer(*lora, "layers.1.down").rank == 2);
  CHECK(settings_of_layer(*lora, "layers.0.down").rank == 8);
  CHECK(settings_of_layer(*lora, "layers.0.up").alpha == 64);
  CHECK(scaling_of(settings_of_layer(*lora, "layers.0.up")) == 16);
  CHECK(scaling_of(settings_of_layer(*lora, "layers.0.down")) == 1);
}

TEST_CASE("settings of adapters that do not suit are refused") {
  const auto refusal = [](std::string_view text) { return fine_tuning_mistakes(parse_lora(text)); };
  CHECK(refusal("r=16") ==
        "error: 'targets' is missing\n"
        "  say which layers get adapters: targets=q_proj+v_proj, or targets=all-linear\n");
  CHECK(refusal("") == "error: nothing is said\n");
  CHECK(refusal("r=0,targets=a") == "error: 'r' takes a whole number of at least 1, not '0'\n");
  CHECK(refusal("r=99999999999999999999,targets=a") ==
        "error: 'r' takes a whole number of at least 1, not '99999999999999999999'\n");
  CHECK(refusal("alpha=nan,targets=a") ==
        "error: 'alpha' takes a number of at least 0, not 'nan'\n");
  CHECK(refusal("dropout=1,targets=a") ==
        "error: 'dropout' takes a probability below 1, not '1'\n");
  CHECK(refusal("target=a") == "error: unknown setting 'target'\n  did you mean 'targets'?\n");
  CHECK(refusal("targets=a+,r=2") == "error: 'targets' takes names joined by '+', not 'a+'\n");
  CHECK(refusal("targets=a,r=2,r=3") == "error: 'r' is said twice\n");
  CHECK(refusal("targets=a,,r=2") == "error: '' is no setting\n  settings are key=value\n");
  CHECK(refusal("targets=a,dtype=int8") ==
        "error: 'dtype' takes fp32, bf16, fp16 or fp64, not 'int8'\n");
  CHECK(refusal("targets=a,use_dora=yes") == "error: 'use_dora' takes true or false, not 'yes'\n");
  CHECK(refusal("targets=a,use_dor") ==
        "error: unknown setting 'use_dor'\n  did you mean 'use_dora'?\n");
  CHECK(refusal("targets=a,rank_pattern=a") ==
        "error: 'rank_pattern' takes LAYER:RANK joined by '+', not 'a'\n");
  CHECK(refusal("targets=a,rank_pattern=a:1.5") ==
        "error: 'rank_pattern' takes LAYER:RANK joined by '+', not 'a:1.5'\n");
  CHECK(refusal("targets=a,alpha_pattern=:4") ==
        "error: 'alpha_pattern' takes LAYER:ALPHA joined by '+', not ':4'\n");
  CHECK(refusal(std::string(5000, 'a')) == "error: it is longer than 4096 bytes\n");
}

TEST_CASE("a base and checkpoints are said in one line") {
  CHECK(parse_base("nf4")->double_quantised);
  CHECK_FALSE(parse_base("fp4,double_quant=false")->double_quantised);
  CHECK(parse_base("int8,skip=head+tail")->skipped == std::vector<std::string>{"head", "tail"});
  CHECK(fine_tuning_mistakes(parse_base("nf5")) ==
        "error: unknown format 'nf5'\n  did you mean 'nf4'?\n");
  CHECK(fine_tuning_mistakes(parse_base("int8,double_quant=true")) ==
        "error: 'double_quant' is for nf4 and fp4, not for int8\n");
  CHECK(to_string(*parse_base("gptq")) == "GPTQ, 4 bits, groups of 128");
  CHECK(to_string(*parse_base("gptq,bits=8,group=-1")) == "GPTQ, 8 bits, a scale a row");
  CHECK(to_string(*parse_base("awq,group=64")) == "AWQ, 4 bits, groups of 64");
  CHECK(to_string(*parse_base("int4")) == "torchao's int4, 4 bits, groups of 128");
  CHECK(to_string(*parse_base("fp8")) == "fp8");
  CHECK(fine_tuning_mistakes(parse_base("gptq,bits=5")) ==
        "error: 'bits' takes 2, 3, 4 or 8, not '5'\n");
  CHECK(fine_tuning_mistakes(parse_base("awq,bits=8")) == "error: awq has 4 bits\n");
  CHECK(fine_tuning_mistakes(parse_base("int4,group=0")) ==
        "error: 'group' takes a whole number of at least 1, or -1 for whole rows, not '0'\n");
  CHECK(fine_tuning_mistakes(parse_base("nf4,group=64")) ==
        "error: 'group' is for gptq, awq and int4, not for nf4\n");
  CHECK(fine_tuning_mistakes(parse_base("gguf")) ==
        "error: unknown format 'gguf'\n  formats are nf4, fp4, int8, fp8, gptq, awq, int4\n");
  CHECK(parse_checkpoint("every=2,selective=attention+matmul")->every == 2);
  CHECK(parse_checkpoint("selective=attention")->kept.attention);
  CHECK_FALSE(parse_checkpoint("selective=attention")->kept.products);
  CHECK(fine_tuning_mistakes(parse_checkpoint("selective=relu")) ==
        "error: 'selective' takes attention, matmul or attention+matmul, not 'relu'\n");
  CHECK(fine_tuning_mistakes(parse_checkpoint("every=2,layers=a.*")) ==
        "error: 'every' counts the repeated blocks, and 'layers' names others\n");
  CHECK(fine_tuning_mistakes(parse_checkpoint("al")) ==
        "error: unknown setting 'al'\n  did you mean 'all'?\n");
  CHECK(parse_layer_types("*norm*=fp32,head=bf16")->size() == 2);
  CHECK(fine_tuning_mistakes(parse_layer_types("head=int8")) ==
        "error: 'head' takes fp32, bf16, fp16 or fp64, not 'int8'\n");
}

TEST_CASE("what a script does to save memory is said in one line") {
  CHECK(parse_chunked_loss("8")->chunks == 8);
  CHECK_FALSE(parse_chunked_loss("8")->compiled);
  CHECK(parse_chunked_loss("chunks=4,compiled")->compiled);
  CHECK(parse_chunked_loss("compiled")->chunks == 8);
  CHECK(fine_tuning_mistakes(parse_chunked_loss("0")) ==
        "error: 'chunks' takes 1 to 1024 chunks, not '0'\n");
  CHECK(fine_tuning_mistakes(parse_chunked_loss("8,9")) ==
        "error: unknown setting '9'\n  it takes chunks, compiled\n");
  CHECK(fine_tuning_mistakes(parse_chunked_loss("8,compiled=yes")) ==
        "error: 'compiled' takes true or false, not 'yes'\n");
  CHECK(parse_offload("all")->least_bytes == 1024);
  CHECK(parse_offload("all")->stash == 5);
  CHECK_FALSE(parse_offload("min_bytes=4096,stash=1,streams=false")->streams);
  CHECK(fine_tuning_mistakes(parse_offload("stash=0")) ==
        "error: 'stash' takes a whole number of at least 1, not '0'\n");
  CHECK(fine_tuning_mistakes(parse_offload("stream=false")) ==
        "error: unknown setting 'stream'\n  did you mean 'streams'?\n");
  FineTuning settings;
  const auto read = read_fine_tuning({.optimizer_in_backward = "maybe"}, settings);
  CHECK(fine_tuning_mistakes(read) ==
        "error: optimizer_in_backward: it is true or false, not 'maybe'\n");
  const ModelGraph written = testing::described(
      tuned_description("chunked_loss: 4, offload_activations: true, optimizer_in_backward: true"));
  CHECK(written.fine_tuning.chunked_loss->chunks == 4);
  CHECK(written.fine_tuning.offload->streams);
  CHECK(written.fine_tuning.optimizer_in_backward);
}

TEST_CASE("a description may say them as text or as a mapping") {
  const ModelGraph written = testing::described(
      tuned_description("lora: {r: 4, targets: [a, b]}, checkpoint: true, "
                        "base: {format: nf4, double_quant: false}, layer_dtype: a=fp32"));
  CHECK(written.fine_tuning.lora->targets == std::vector<std::string>{"a", "b"});
  CHECK(written.fine_tuning.lora->rank == 4);
  CHECK(written.fine_tuning.checkpoint->every == 1);
  CHECK_FALSE(written.fine_tuning.base->double_quantised);
  CHECK(written.fine_tuning.layer_types.front().type == DataType::float32);
  CHECK_FALSE(testing::described(tuned_description("checkpoint: false")).fine_tuning.checkpoint);
  CHECK(mistakes_in("lora: {r: 4}") ==
        "net.yaml:7:15: error: lora: 'targets' is missing\n"
        "  train: {lora: {r: 4}}\n"
        "                ^\n"
        "  say which layers get adapters: targets=q_proj+v_proj, or targets=all-linear\n");
  CHECK(mistakes_in("base: [nf4]") ==
        "net.yaml:7:15: error: 'base' takes settings, not a list\n"
        "  train: {base: [nf4]}\n"
        "                ^\n");
}

TEST_CASE("targets are paths, last parts of them, or patterns") {
  CHECK(is_target("layers.0.self_attn.q_proj", "q_proj"));
  CHECK(is_target("layers.0.self_attn.q_proj", "self_attn.q_proj"));
  CHECK(is_target("q_proj", "q_proj"));
  CHECK_FALSE(is_target("layers.0.freq_proj", "q_proj"));
  CHECK_FALSE(is_target("layers.0.q_proj.x", "q_proj"));
  CHECK(is_target("layers.10.q_proj", "layers.1?.*"));
  CHECK(is_target_or_below("layers.3.mlp.up", "layers.3"));
  CHECK_FALSE(is_target_or_below("layers.30.mlp.up", "layers.3"));
  CHECK(last_part("a.b.c") == "c");
}

}  // namespace stowage
