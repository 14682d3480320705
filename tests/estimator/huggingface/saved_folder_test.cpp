// Folders as save_pretrained leaves them: adapters.
#include <doctest/doctest.h>

#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

std::string refusal_of(const std::string& argument) {
  const auto imported = import_model(read_file_head(argument), {});
  return imported ? "read" : render(imported.error());
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

}  // namespace stowage
