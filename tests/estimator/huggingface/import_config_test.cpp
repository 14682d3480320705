// What a config.json says beside sizes, and what is wrong with one.
#include "estimator/huggingface/import_config.hpp"

#include <doctest/doctest.h>

#include "estimator/formats/import_model.hpp"
#include "estimator/model/operator_row.hpp"
#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

constexpr std::string_view small_llama =
    R"("vocab_size": 100, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
  "num_attention_heads": 2, "max_position_embeddings": 32)";

std::string config_text(const std::string& more) {
  return "{\n  \"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"],\n  " +
         std::string(small_llama) + (more.empty() ? "" : ",\n  " + more) + "\n}\n";
}

std::string mistakes_in(const std::string& text, const ImportOptions& options = {}) {
  const auto imported = testing::imported_text(text, options);
  return imported ? render(imported->notes) : render(imported.error());
}

ModelGraph model_of(const std::string& more, const ImportOptions& options = {}) {
  const auto imported = testing::imported_text(config_text(more), options);
  REQUIRE(imported);
  auto model = load_model(imported->description, {.arguments = options.values});
  REQUIRE_MESSAGE(model, render(model.error()));
  return *std::move(model);
}

bool has_operator(const ModelGraph& model, std::string_view name) {
  for (const Operator& op : model.operators) {
    if (op.name == name) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a sequence longer than a configuration's learned positions is refused") {
  struct Limit {
    const char* folder;
    std::int64_t positions;
  };
  for (const Limit limit :
       {Limit{"bert-base", 512}, Limit{"roberta-base", 512}, Limit{"distilbert-base", 512},
        Limit{"opt-125m", 2048}, Limit{"bart-base", 1024}, Limit{"whisper-small", 448},
        Limit{"gpt2", 1024}}) {
    CAPTURE(limit.folder);
    CHECK_NOTHROW((void)testing::hugging_face_model(limit.folder, {.seq = limit.positions}));
    CHECK_THROWS((void)testing::hugging_face_model(limit.folder, {.seq = limit.positions + 1}));
  }
}

TEST_CASE("a configuration's notes name the version, the attention and the head") {
  CHECK(mistakes_in(config_text("")) ==
        "note: as transformers 5.24 runs it: attention 'sdpa', head 'causal-lm'\n"
        "  run it as another version of transformers does\n");
  CHECK(mistakes_in(config_text(R"("transformers_version": "4.30.1", "torch_dtype": "float16")")) ==
        "note: as transformers 4.30 runs it, which the file states: attention 'eager', head "
        "'causal-lm', precision fp32 unless another is asked for, in which versions before 5 load "
        "fp16 weights\n"
        "  run it as another version of transformers does\n"
        "note: transformers 4.30 is older than 4.36, the oldest whose sources were read: the step "
        "is sized as 4.36's\n");
  CHECK(mistakes_in(config_text(R"("dtype": "bfloat16")")) ==
        "note: as transformers 5.24 runs it: attention 'sdpa', head 'causal-lm', precision bf16 "
        "unless another is asked for\n"
        "  run it as another version of transformers does\n");
}

TEST_CASE("what a model returns besides its result is said not to be counted") {
  const std::string said =
      mistakes_in(config_text("\"output_hidden_states\": true, \"output_attentions\": false, "
                              "\"output_router_logits\": true"));
  CHECK(said.find("note: `output_hidden_states`: what the model keeps and computes for it is not "
                  "counted\n") != std::string::npos);
  CHECK(said.find("note: `output_router_logits`: ") != std::string::npos);
  CHECK(said.find("output_attentions") == std::string::npos);
}

TEST_CASE("a version outside those whose sources were read is sized as the nearest, and says so") {
  const auto noted = [](const std::string& version) {
    const std::string text = mistakes_in(config_text(""), {.values = {{"transformers", version}}});
    const std::size_t at = text.find("note: transformers");
    return at == std::string::npos ? std::string() : text.substr(at);
  };
  CHECK(noted("2.1") ==
        "note: transformers 2.1 is older than 4.36, the oldest whose sources were read: the step "
        "is sized as 4.36's\n");
  CHECK(noted("4.36").empty());
  CHECK(noted("5.24").empty());
  CHECK(noted("5.25") ==
        "note: transformers 5.25 is newer than 5.24, the newest whose sources were read: the step "
        "is sized as 5.24's\n");
}

TEST_CASE("values of --set choose the version, the attention and the head") {
  const ModelGraph older = model_of("", {.values = {{"transformers", "4.40"}}});
  CHECK(has_operator(older, "shift_logits"));
  CHECK_FALSE(has_operator(older, "padded_labels"));
  CHECK(has_operator(model_of(""), "padded_labels"));
  CHECK(has_operator(model_of("", {.values = {{"attention", "eager"}}}),
                     "model.layers.0.self_attn.weights"));
  const ModelGraph classifier = model_of("", {.values = {{"head", "sequence-classification"}}});
  CHECK(has_operator(classifier, "score"));
  CHECK(mistakes_in(config_text(""), {.values = {{"head", "masked-lm"}}}) ==
        "error: the argument 'head' takes causal-lm, sequence-classification, none, not "
        "'masked-lm'\n");
}

TEST_CASE("the note names the attention that is asked for, and what it is sized as") {
  const auto note = [](const std::string& more, const ImportOptions& options = {}) {
    return mistakes_in(config_text(more), options);
  };
  CHECK(note(R"("_attn_implementation": "flash_attention_2")") ==
        "note: as transformers 5.24 runs it: attention 'flash_attention_2', sized as 'sdpa', head "
        "'causal-lm'\n  run it as another version of transformers does\n");
  CHECK(note(R"("attn_implementation": "eager")").find("attention 'eager'") != std::string::npos);
  CHECK(note(R"("attn_implementation": "eager")", {.values = {{"attention", "sdpa"}}})
            .find("attention 'sdpa', head") != std::string::npos);
  CHECK(note(R"("transformers_version": "4.34.0")", {.values = {{"attention", "sdpa"}}})
            .find("attention 'sdpa', which llama has from 4.36 on, head") != std::string::npos);
  CHECK(note(R"("_attn_implementation": "flex_attention")") ==
        "config.json:5:27: error: the attention 'flex_attention' is not sized for llama\n"
        "    \"_attn_implementation\": \"flex_attention\"\n"
        "                            ^~~~~~~~~~~~~~~~\n"
        "  the argument 'attention' takes another: sdpa or eager\n");
  CHECK(note("", {.values = {{"attention", "flex_attention"}}}) ==
        "error: the argument 'attention' takes sdpa or eager, not 'flex_attention'\n");
}

TEST_CASE("attention that transformers does not have for a type is refused") {
  const auto mistakes = [](const std::string& type, const std::string& attention) {
    return mistakes_in("{\"model_type\": \"" + type + "\"}",
                       {.values = {{"attention", attention}}});
  };
  CHECK(mistakes("gemma2", "sdpa") ==
        "error: the argument 'attention' takes eager for gemma2, not 'sdpa'\n");
  CHECK(mistakes("gemma2", "flash_attention_2") ==
        "error: the argument 'attention' takes eager for gemma2, not 'flash_attention_2'\n");
  CHECK(mistakes("gpt_oss", "sdpa") ==
        "error: the argument 'attention' takes eager for gpt_oss, not 'sdpa'\n");
  CHECK(mistakes("gpt_oss", "flash_attention_3") ==
        "error: the argument 'attention' takes eager for gpt_oss, not 'flash_attention_3'\n");
  for (const char* const type : {"t5", "swin"}) {
    CHECK(mistakes(type, "flash_attention_2") ==
          "error: the argument 'attention' takes sdpa or eager, not 'flash_attention_2'\n");
  }
}

TEST_CASE("layers that slide beside others want a window") {
  for (const char* const type : {"gpt_oss", "gemma2", "gemma3_text"}) {
    CAPTURE(type);
    const std::string text = std::string("{\"model_type\": \"") + type +
                             "\", \"num_hidden_layers\": 12, \"sliding_window\": null}";
    const std::string sliding = std::string_view(type) == "gemma3_text" ? "10" : "6";
    CHECK(
        mistakes_in(text).find("error: " + sliding +
                               " of 12 layers have sliding attention, and there is no window\n") !=
        std::string::npos);
  }
  for (const char* const more :
       {R"("model_type": "mistral")", R"("model_type": "qwen2", "use_sliding_window": true)"}) {
    CAPTURE(more);
    const std::string text = std::string("{") + more + ", \"sliding_window\": null}";
    CHECK(mistakes_in(text).find("error") == std::string::npos);
    CHECK(mistakes_in(text, {.values = {{"attention", "eager"}}}).find("error") ==
          std::string::npos);
  }
}

TEST_CASE("of gpt-oss the experts of transformers 4 are said to be sized as those of 5.0") {
  const std::string note =
      "note: transformers before 5.0 runs all experts for all tokens in inference, and one expert "
      "after another in training: both are sized in the grouped products of 5.0\n";
  const auto says = [&](const std::string& more, const std::string& version) {
    const std::string text = "{\"model_type\": \"gpt_oss\"" + more + "}";
    const std::string notes = mistakes_in(text, {.values = {{"transformers", version}}});
    return notes.find(note) != std::string::npos;
  };
  CHECK(says("", "4.57"));
  CHECK_FALSE(says("", "5.0"));
  CHECK_FALSE(says(R"(, "quantization_config": {"quant_method": "mxfp4"})", "4.57"));
  CHECK(says(R"(, "quantization_config": {"quant_method": "mxfp4", "dequantize": true})", "4.57"));
}

TEST_CASE("T5's learned bias reaches fused kernels as a copy from transformers 5.20 on") {
  struct Calls {
    int copied = 0, by_products = 0, chosen = 0;
    bool operator==(const Calls&) const = default;
  };
  const auto calls = [](const std::string& version) {
    const ModelGraph model = testing::hugging_face_model(
        "t5-small", {.values = {{"transformers", version}, {"attention", "sdpa"}}});
    Calls found;
    for (const Operator& op : model.operators) {
      if (op.row->name != "scaled_dot_product_attention") continue;
      found.copied += op.attributes.boolean("copy_bias") ? 1 : 0;
      found.by_products += op.attributes.text("implementation") == "math" ? 1 : 0;
      found.chosen += op.attributes.text("implementation") == "auto" ? 1 : 0;
    }
    return found;
  };
  CHECK(calls("5.24") == Calls{12, 0, 18});
  CHECK(calls("5.20") == Calls{12, 0, 18});
  CHECK(calls("5.19") == Calls{0, 12, 6});  // attention to the encoder has a bias of zeros
}

TEST_CASE("a Swin whose windows are larger than a stage's images is refused, as it fails there") {
  CHECK(
      mistakes_in(R"({"model_type": "swin", "image_size": 64, "depths": [2, 2],
  "num_heads": [3, 6], "window_size": 12})")
          .find("error: windows of 12 x 12 patches are larger than stage 1's images of 8 x 8\n") !=
      std::string::npos);
}

TEST_CASE("a class with a head of another kind is no bare model") {
  const auto heads = [](const std::string& name) {
    return mistakes_in("{\"model_type\": \"llama\", \"architectures\": [\"" + name + "\"]}");
  };
  CHECK(heads("LlamaForRewardModel")
            .find("the head of 'LlamaForRewardModel' is not one of those that are read of llama") !=
        std::string::npos);
  CHECK(heads("LlamaModel").find("head 'none'") != std::string::npos);
}

TEST_CASE("the checkpoint's format is the usual precision from transformers 5 on") {
  CHECK(model_of(R"("torch_dtype": "bfloat16")").precision == Precision::bf16);
  CHECK(model_of(R"("torch_dtype": "bfloat16", "transformers_version": "4.40.0")").precision ==
        Precision::fp32);
}

TEST_CASE("mistakes in a configuration have their place") {
  CHECK(mistakes_in(config_text(R"("rms_norm_eps": "small")")) ==
        "config.json:5:19: error: 'rms_norm_eps' must be a number from 0 to 1000000000000, not "
        "'small'\n"
        "    \"rms_norm_eps\": \"small\"\n"
        "                    ^~~~~~~\n");
  CHECK(mistakes_in("{\"model_type\": \"lama\"}") ==
        "config.json:1:16: error: model type 'lama' is not one of those that are read\n"
        "  {\"model_type\": \"lama\"}\n"
        "                 ^~~~~~\n"
        "  did you mean 'llama'?; `python -m stowage record transformers:config.json -o step.json` "
        "records any that transformers has\n");
  CHECK(
      mistakes_in("{\"architectures\": [\"LlamaForCausalLM\"]}").find("there is no 'model_type'") !=
      std::string::npos);
  CHECK(
      mistakes_in(config_text(R"("hiden_size": 32)"))
          .starts_with("config.json:5:3: warning: 'hiden_size' is no key of LlamaConfig and is not "
                       "read\n    \"hiden_size\": 32\n    ^~~~~~~~~~~~\n"
                       "  did you mean 'hidden_size'?\n"));
  CHECK(mistakes_in(config_text(R"("num_key_value_heads": 3)"))
            .find("2 heads are not a multiple of 3 key and value heads") != std::string::npos);
  CHECK(mistakes_in(config_text(R"("hidden_act": "wavy")"))
            .find("activation 'wavy' is not one of those that are read") != std::string::npos);
  CHECK(mistakes_in(config_text(R"("hidden_size": 16)")).find("error") != std::string::npos);
}

TEST_CASE("an unknown model type is told which are read and how to record it") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.file("config.json", "{\"model_type\": \"zamba\"}");
  const auto result = import_hugging_face_model(read_file_head(path), {});
  REQUIRE_FALSE(result);
  const std::string& hint = result.error().front().hint;
  CHECK(hint.starts_with("read are llama, mistral, mixtral, "));
  CHECK(hint.ends_with("clip_vision_model; `python -m stowage record transformers:" + path +
                       " -o step.json` records any that transformers has"));
}

TEST_CASE("a model that joins others is refused with what it joins") {
  CHECK(mistakes_in("{\"model_type\": \"llava\", \"text_config\": {\"model_type\": \"llama\"}, "
                    "\"vision_config\": {\"model_type\": \"clip_vision_model\"}}") ==
        "config.json:1:16: error: model type 'llava' joins several models (text_config 'llama', "
        "vision_config 'clip_vision_model') and is not one of those that are read\n"
        "  {\"model_type\": \"llava\", \"text_config\": {\"model_type\": \"llama\"}, "
        "\"vision_config\": {\"model_type\": \"clip_vision_model\"}}\n"
        "                 ^~~~~~~\n"
        "  its text_config alone, with \"model_type\": \"llama\", is; `python -m stowage record "
        "transformers:config.json -o step.json` records any that transformers has\n");
  CHECK(mistakes_in("{\"model_type\": \"gemma3\", \"text_config\": {}, \"vision_config\": {}}")
            .find("its text_config alone, with \"model_type\": \"gemma3_text\", is") !=
        std::string::npos);
}

TEST_CASE("a configuration may state sizes at the edges") {
  for (const char* const value :
       {"0", "-1", "1e3", "99999999999999999999", "true", "null", "[16]"}) {
    CAPTURE(value);
    const std::string text =
        "{\"model_type\": \"llama\", \"hidden_size\": " + std::string(value) + "}";
    CHECK(mistakes_in(text).find("'hidden_size' must be an integer") != std::string::npos);
  }
}

TEST_CASE("pairs fix CLIP's step, and give it its loss") {
  const std::string file = testing::source_path("/tests/hf/small-clip/config.json");
  const auto read = [&](const std::string& pairs) {
    return import_model(read_file_head(file), {.values = {{"pairs", pairs}}});
  };
  const auto imported = read("64");
  REQUIRE(imported.has_value());
  REQUIRE(imported->has_value());
  const std::string& text = (*imported)->description->text;
  CHECK(text.find("pixel_values: {shape: [pairs, 3, 64, 64]}") != std::string::npos);
  CHECK(text.find("batch") == std::string::npos);
  CHECK((*imported)->notes.back().message ==
        "the step is of 64 pairs, whatever the batch: its logits grow with their square");
  for (const std::string wrong : {"0", "-1", "many", "6.5", "64 ", "", "99999999999999999999"}) {
    CAPTURE(wrong);
    const auto refused = read(wrong);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().front().message ==
          "the argument 'pairs' takes a number from 1 to 1048576, not '" + wrong + "'");
  }
}

}  // namespace stowage
