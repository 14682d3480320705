#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "estimator/base/name_match.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/text/yaml_document.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

const std::string shipped = testing::source_path("/configs/models");

std::string outcome(const std::string& argument) {
  const auto source = find_model(argument, shipped);
  if (!source) return render(source.error());
  const SourceText& text = *source->source;
  return text.text.find("\nmodel: ") == std::string::npos ? "another text" : text.name;
}

}  // namespace

TEST_CASE("a model is a file, else a shipped name") {
  CHECK(outcome("gpt2") == shipped + "/gpt2.yaml");
  CHECK(outcome(shipped + "/mlp.yaml") == shipped + "/mlp.yaml");
  CHECK(outcome("GPT_2") == shipped + "/gpt2.yaml");
  CHECK(outcome("ResNet-50") == shipped + "/resnet50.yaml");
  CHECK(outcome("gtp2") == "error: there is no model 'gtp2'\n  did you mean 'gpt2'?\n");
  CHECK(outcome("something-else") ==
        "error: there is no model 'something-else'\n"
        "  a model is a file, '-' or one that 'stowage models' lists\n");
  CHECK(outcome("nets/none.yaml") == "error: there is no file 'nets/none.yaml'\n");
  CHECK(outcome(shipped) == "error: '" + shipped + "' is a folder\n");
  CHECK(outcome("") == "error: the model's name is empty\n");
}

TEST_CASE("other names of models, and beginnings of one name alone, are understood") {
  CHECK(outcome("bert-base-uncased") == shipped + "/bert-base.yaml");
  CHECK(outcome("GPT2-small") == shipped + "/gpt2.yaml");
  CHECK(outcome("squeezenet") == shipped + "/squeezenet1_0.yaml");
  CHECK(outcome("xcept") == shipped + "/xception.yaml");
}

TEST_CASE("the beginning of several names lists them") {
  CHECK(outcome("bert") == "error: there is no model 'bert'\n  there are bert-base, bert-large\n");
  CHECK(outcome("llama3") ==
        "error: there is no model 'llama3'\n  there are llama-3-8b, llama-3.2-1b\n");
  CHECK(outcome("vit") ==
        "error: there is no model 'vit'\n"
        "  there are vit_b_16, vit_b_32, vit_base_patch16_224, vit_h_14, vit_l_16, "
        "vit_small_patch16_224, vit_tiny_patch16_224\n");
  CHECK(outcome("mnasnet") ==
        "error: there is no model 'mnasnet'\n"
        "  there are mnasnet0_5, mnasnet0_75, mnasnet1_0, mnasnet1_3\n");
}

TEST_CASE("every alias means a model that is there, and is no model's own name") {
  const auto source = std::make_shared<const SourceText>(
      SourceText{"model-aliases.yaml",
                 testing::file_text(testing::source_path("/configs/model-aliases.yaml"))});
  const auto document = read_yaml(source);
  REQUIRE(document);
  const std::vector<std::string> names = model_names(shipped);
  REQUIRE(document->root->entry_count() > 0);
  for (std::size_t i = 0; i < document->root->entry_count(); ++i) {
    const std::string alias = document->root->key(i).text;
    CAPTURE(alias);
    CHECK(std::count(names.begin(), names.end(), document->root->value(i).text) == 1);
    CHECK(std::none_of(names.begin(), names.end(), [&](const std::string& name) {
      return folded_name(name) == folded_name(alias);
    }));
  }
}

TEST_CASE("the shipped names are sorted") {
  const std::vector<std::string> names = model_names(shipped);
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::find(names.begin(), names.end(), "keras-deep-16x16") != names.end());
  CHECK(model_names("/nowhere").empty());
}

}  // namespace stowage
