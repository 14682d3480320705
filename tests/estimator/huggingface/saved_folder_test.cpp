// Folders as save_pretrained leaves them: adapters, quantised weights.
#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/huggingface/quantised_weights.hpp"
#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

std::string refusal_of(const std::string& argument) {
  const auto imported = import_model(read_file_head(argument), {});
  return imported ? "read" : render(imported.error());
}

std::string notes_of(const std::string& quantization) {
  const auto imported = testing::imported_text(
      "{\"model_type\": \"llama\", \"quantization_config\": " + quantization + "}");
  return imported ? render(imported->notes) : render(imported.error());
}

}  // namespace

TEST_CASE("adapters alone are refused with their model and their settings") {
  const testing::TemporaryFolder folder;
  const std::string file = folder.file(
      "adapter_config.json",
      R"({"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-2-7b-hf", "r": 16,
          "lora_alpha": 32, "lora_dropout": 0.05, "target_modules": ["v_proj", "q_proj"]})");
  const std::string reason =
      "holds adapters of peft's kind LORA, and no network\n  name the model that they belong to, "
      "hf:meta-llama/Llama-2-7b-hf, and train adapters of "
      "r=16,alpha=32,dropout=0.05,targets=q_proj+v_proj\n";
  CHECK(refusal_of(file) == "error: '" + file + "' " + reason);
  CHECK(refusal_of(folder.path()) == "error: '" + folder.path() + "' " + reason);
}

TEST_CASE("what adapters' files leave open is left open") {
  const testing::TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) {
    return refusal_of(folder.file("adapter_config.json", text));
  };
  CHECK(refusal(R"({"peft_type": "IA3"})")
            .ends_with("holds adapters of peft's kind IA3, and no network\n  name the model that "
                       "they belong to\n"));
  CHECK(refusal(R"({"peft_type": "LORA", "base_model_name_or_path": "/models/x; rm",
                    "target_modules": "q_.*"})")
            .ends_with("name the model that they belong to, and train adapters of "
                       "targets=NAME+NAME\n"));
  CHECK(refusal(R"({"peft_type": "LORA", "base_model_name_or_path": "./x", "r": 8,
                    "lora_dropout": 0.0, "target_modules": "all-linear"})")
            .ends_with("belong to, ./x, and train adapters of r=8,targets=all-linear\n"));
}

TEST_CASE("quantised weights are told with the base that has their layout") {
  CHECK(notes_of(R"({"quant_method": "gptq", "bits": 4, "group_size": 128})")
            .find("warning: the weights on disk are quantised ('gptq', 4 bits); the network is "
                  "read as it was before that\n") != std::string::npos);
  CHECK(notes_of(R"({"quant_method": "fp8"})").find("quantised ('fp8');") != std::string::npos);
  const auto has_base = [](const std::string& quantization, const std::string& base) {
    CAPTURE(quantization);
    const std::string notes = notes_of(quantization);
    CHECK(notes.find("quantised ('bitsandbytes');") != std::string::npos);
    CHECK(notes.find("\n  take its linear layers as a frozen base of " + base +
                     " for the layout of these weights\n") != std::string::npos);
  };
  has_base(R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", "int8");
  has_base(R"({"load_in_4bit": true})", "fp4,double_quant=false");
  has_base(R"({"quant_method": "bitsandbytes", "_load_in_4bit": true,
               "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true})",
           "nf4");
}

TEST_CASE("the warning of quantised weights is answered by a base of their layout alone") {
  const auto answered = [](const std::string& quantization, std::string_view base) {
    const auto imported = testing::imported_text(
        "{\"model_type\": \"llama\", \"quantization_config\": " + quantization + "}");
    REQUIRE(imported);
    return std::ranges::any_of(imported->notes, [&](const Diagnostic& note) {
      return answers_quantisation(*parse_base(base), note);
    });
  };
  const std::string int8 = R"({"load_in_8bit": true})", nf4 = R"({"load_in_4bit": true,
      "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true})";
  CHECK(answered(int8, "int8"));
  CHECK_FALSE(answered(int8, "nf4"));
  CHECK(answered(nf4, "nf4"));
  CHECK_FALSE(answered(nf4, "nf4,double_quant=false"));
  CHECK_FALSE(answered(nf4, "fp4"));
  CHECK_FALSE(answered(R"({"quant_method": "gptq", "bits": 4})", "nf4"));
}

}  // namespace stowage
